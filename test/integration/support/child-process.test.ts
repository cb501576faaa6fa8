import { expect, it } from "vitest";
import { type ChildOptions, startChild } from "../../support/child-process.ts";
import { eventually } from "../../support/eventually.ts";

const start = (script: string, more: Partial<ChildOptions> = {}) =>
  startChild({ name: "it", command: process.execPath, args: ["-e", script], ...more });
const STAY = "setInterval(() => {}, 60_000);";

it("a child has started once it prints its ready line, and its other output is kept", async () => {
  const child = await start(
    `console.log("before"); console.log('{"port":1}'); console.error("err"); console.log("after"); ${STAY}`,
  );
  expect(child.ready).toEqual({ port: 1 });
  await eventually(() => expect(child.output().split("\n").sort()).toEqual(["after", "before", "err"]));
  expect(child.exited).toBe(false);
  expect(await child.stop()).toBeNull();
  expect(child.exited).toBe(true);
  expect(await child.stop()).toBeNull();
});

it("the stop of a child returns its exit code", async () => {
  const child = await start(`process.on("SIGTERM", () => process.exit(7)); console.log("{}"); ${STAY}`);
  expect(await child.stop()).toBe(7);
});

it("a child that ignores SIGTERM, or is suspended, is killed", async () => {
  const ignoring = await start(`process.on("SIGTERM", () => {}); console.log("{}"); ${STAY}`);
  expect(await ignoring.stop(50)).toBeNull();
  const suspended = await start(`console.log("{}"); ${STAY}`);
  suspended.kill("SIGSTOP");
  expect(await suspended.stop()).toBeNull();
});

it("a child that ends before it is ready fails with its last output", async () => {
  await expect(start(`console.error("no config"); process.exit(64)`)).rejects.toThrow("starting it: ended with 64\nno config");
});

it("a child that never becomes ready, prints a bad ready line or is not a program fails", async () => {
  await expect(start(STAY, { readyMs: 50 })).rejects.toThrow("not ready after 50 ms");
  await expect(start(`console.log("{nonsense"); ${STAY}`)).rejects.toThrow("not JSON\n{nonsense");
  await expect(start("", { command: "/no/such/program" })).rejects.toThrow("ENOENT");
  await expect(start("", { command: "/no/such/program", readyLine: false })).rejects.toThrow("ENOENT");
});

it("a child without a ready line has started once it runs", async () => {
  const child = await start(`console.log('{"not":"ready"}'); ${STAY}`, { readyLine: false });
  await eventually(() => expect(child.output()).toBe('{"not":"ready"}'));
  await child.stop();
});
