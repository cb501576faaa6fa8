import { expect, it } from "vitest";
import { onAbort } from "./abort.ts";

it("a listener on a signal that has fired runs immediately", () => {
  const seen: unknown[] = [];
  const signal = AbortSignal.abort("gone");
  onAbort(signal, () => seen.push(signal.reason));
  expect(seen).toEqual(["gone"]);
});

it("a listener runs once when the signal fires, and never after it was removed", () => {
  const controller = new AbortController();
  const seen: string[] = [];
  onAbort(controller.signal, () => seen.push("kept"));
  onAbort(controller.signal, () => seen.push("removed"))();
  controller.abort();
  expect(seen).toEqual(["kept"]);
});
