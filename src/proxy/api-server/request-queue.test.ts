import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createRequestQueue } from "./request-queue.ts";

const NEVER = new AbortController().signal;

function setup() {
  const clock = createFakeClock();
  const queue = createRequestQueue({ limit: 2, patienceMs: 100, max: 4 }, clock, (run) => run());
  const entered: string[] = [];
  const enter = (name: string, signal = NEVER) => {
    const turn = queue.enter(signal);
    if (turn === undefined) entered.push(name);
    else
      turn.then(
        () => entered.push(name),
        (error: Error) => entered.push(`${name} refused: ${error.message}`),
      );
  };
  return { clock, queue, entered, enter };
}

it("lets the first requests in at once, and one more when one leaves, in their order", async () => {
  const { clock, queue, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d"]) enter(name);
  expect([entered, queue.waiting]).toEqual([["a", "b"], 2]);
  queue.leave();
  enter("e");
  await clock.flush();
  expect(entered).toEqual(["a", "b", "c"]);
  queue.leave();
  queue.leave();
  await clock.flush();
  expect([entered, queue.waiting]).toEqual([["a", "b", "c", "d", "e"], 0]);
  expect(clock.pending).toBe(0);
});

it("lets a request in that has waited for long, up to the maximum", async () => {
  const { clock, queue, entered, enter } = setup();
  for (const name of ["a", "b", "c"]) enter(name);
  await clock.advance(50);
  for (const name of ["d", "e"]) enter(name);
  await clock.advance(49);
  expect(entered).toEqual(["a", "b"]);
  await clock.advance(1);
  expect(entered).toEqual(["a", "b", "c"]);
  await clock.advance(50);
  expect(entered).toEqual(["a", "b", "c", "d"]);
  await clock.advance(60_000);
  expect([entered.length, clock.pending]).toEqual([4, 0]);
  queue.leave();
  await clock.flush();
  expect(entered.at(-1)).toBe("e");
});

it("lets no further request in while the queue moves quickly", async () => {
  const { clock, queue, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d", "e", "f"]) enter(name);
  for (let index = 0; index < 4; index++) {
    await clock.advance(24);
    queue.leave();
  }
  await clock.advance(1_000);
  expect([entered.length, queue.waiting]).toEqual([6, 0]);
});

it("has the same limit again once the late requests have left", async () => {
  const { clock, queue, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d"]) enter(name);
  await clock.advance(100);
  expect(entered).toHaveLength(4);
  for (let index = 0; index < 4; index++) queue.leave();
  for (const name of ["e", "f", "g"]) enter(name);
  expect([entered.length, queue.waiting]).toEqual([6, 1]);
});

it("forgets a request whose client goes, before or while it waits", async () => {
  const { clock, queue, entered, enter } = setup();
  enter("a");
  enter("b");
  const client = new AbortController();
  enter("c", client.signal);
  client.abort();
  enter("d", client.signal);
  await clock.flush();
  expect(entered.filter((name) => name.includes("aborted"))).toHaveLength(2);
  expect([queue.waiting, clock.pending]).toEqual([0, 0]);
  queue.leave();
  enter("e");
  expect(entered.at(-1)).toBe("e");
});

it("fails all waiting requests when there is no server", async () => {
  const { clock, queue, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d"]) enter(name);
  queue.refuseWaiting(new Error("unreachable"));
  await clock.flush();
  expect(entered).toEqual(["a", "b", "c refused: unreachable", "d refused: unreachable"]);
  expect([queue.waiting, clock.pending]).toEqual([0, 0]);
});
