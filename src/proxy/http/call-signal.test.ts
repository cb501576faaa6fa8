import { describe, expect, it } from "vitest";
import { CallAbort, type CallSignal } from "./call-signal.ts";

const ofNode = () => {
  const control = new AbortController();
  return { signal: control.signal as CallSignal, abort: () => control.abort(new Error("over")) };
};
const ours = () => {
  const signal = new CallAbort();
  return { signal: signal as CallSignal, abort: () => signal.abort(new Error("over")) };
};

describe.each([
  ["CallAbort", ours],
  ["AbortSignal, which it stands for", ofNode],
])("%s", (_, make) => {
  it("calls its listeners once, in order, and not those that were removed, also by one called before", () => {
    const { signal, abort } = make();
    const seen: string[] = [];
    const removed = () => void seen.push("removed");
    const first = () => {
      seen.push("first");
      signal.removeEventListener("abort", first);
      signal.removeEventListener("abort", removed);
    };
    signal.addEventListener("abort", first);
    signal.addEventListener("abort", removed);
    signal.addEventListener("abort", () => void seen.push("last"));
    abort();
    abort();
    expect([seen, signal.aborted]).toEqual([["first", "last"], true]);
  });

  it("does not call a listener that is added once it has fired, also while it fires", () => {
    const { signal, abort } = make();
    const seen: string[] = [];
    signal.addEventListener("abort", () => signal.addEventListener("abort", () => void seen.push("during")));
    abort();
    signal.addEventListener("abort", () => void seen.push("after"));
    expect(seen).toEqual([]);
  });
});

it("a listener that throws does not keep the others from running; its error comes out at the end", () => {
  const { signal, abort } = ours();
  let ran = 0;
  for (const message of ["first", "second"]) {
    signal.addEventListener("abort", () => {
      ran++;
      throw new Error(message);
    });
  }
  signal.addEventListener("abort", () => void ran++);
  expect(abort).toThrow("first");
  expect(ran).toBe(3);
});
