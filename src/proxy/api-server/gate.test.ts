import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createGate } from "./gate.ts";

const NEVER = new AbortController().signal;

function setup(growOn: "wait" | "standstill" = "wait") {
  const clock = createFakeClock();
  const gate = createGate({ base: 2, max: 4, patienceMs: 100, growOn }, clock, (run) => run());
  const entered: string[] = [];
  const enter = (name: string, signal = NEVER) => {
    const turn = gate.enter(signal);
    if (turn === undefined) entered.push(name);
    else
      turn.then(
        () => entered.push(name),
        (error: Error) => entered.push(`${name} refused: ${error.message}`),
      );
  };
  return { clock, gate, entered, enter };
}

it("lets the first ones in at once, the next when one leaves, in their order", async () => {
  const { clock, gate, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d"]) enter(name);
  expect([entered, gate.waiting]).toEqual([["a", "b"], 2]);
  gate.leave();
  enter("e");
  await clock.flush();
  expect(entered).toEqual(["a", "b", "c"]);
  gate.leave();
  gate.leave();
  await clock.flush();
  expect([entered, gate.waiting]).toEqual([["a", "b", "c", "d", "e"], 0]);
  expect(clock.pending).toBe(0);
});

it("lets one more in for each time that the first one waits in vain, up to the most", async () => {
  const { clock, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d", "e"]) enter(name);
  await clock.advance(99);
  expect(entered).toHaveLength(2);
  await clock.advance(1);
  expect(entered).toHaveLength(3);
  await clock.advance(99);
  expect(entered).toHaveLength(3);
  await clock.advance(1);
  expect(entered).toEqual(["a", "b", "c", "d"]);
  await clock.advance(60_000);
  expect([entered.length, clock.pending]).toEqual([4, 0]);
});

it("as long as the queue moves lets nobody else in, if that is desired", async () => {
  const { clock, gate, entered, enter } = setup("standstill");
  for (let index = 0; index < 12; index++) enter(`${index}`);
  for (let index = 0; index < 5; index++) {
    await clock.advance(90);
    gate.leave();
  }
  await clock.advance(99);
  expect(entered).toHaveLength(7);
  await clock.advance(1);
  expect(entered).toHaveLength(8);
  await clock.advance(100);
  expect(entered).toHaveLength(9);
});

it("but not when the first one has waited for a second, though another slot moves all the time", async () => {
  const { clock, gate, entered, enter } = setup("standstill");
  for (let index = 0; index < 40; index++) enter(`${index}`);
  for (let index = 0; index < 11; index++) {
    await clock.advance(50);
    gate.leave();
  }
  await clock.flush();
  expect(entered).toHaveLength(2 + 11);
  // The head came with the others, so a second after that it has waited for long.
  for (let index = 0; index < 10; index++) {
    await clock.advance(50);
    gate.leave();
  }
  await clock.flush();
  expect(entered).toHaveLength(2 + 21 + 1);
});

it("goes back to few once there is no need", async () => {
  const { clock, gate, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d"]) enter(name);
  await clock.advance(200);
  expect(entered).toHaveLength(4);
  for (let index = 0; index < 4; index++) gate.leave();
  for (const name of ["e", "f", "g"]) enter(name);
  expect(entered).toHaveLength(7);
  for (let index = 0; index < 3; index++) gate.leave();
  await clock.advance(60_000);
  for (const name of ["h", "i", "j"]) enter(name);
  expect([entered.length, gate.waiting]).toEqual([9, 1]);
});

it("forgets who is gone, before and while waiting", async () => {
  const { clock, gate, entered, enter } = setup();
  enter("a");
  enter("b");
  const client = new AbortController();
  enter("c", client.signal);
  client.abort();
  enter("d", client.signal);
  await clock.flush();
  expect(entered.filter((name) => name.includes("aborted"))).toHaveLength(2);
  expect([gate.waiting, clock.pending]).toEqual([0, 0]);
  gate.leave();
  enter("e");
  expect(entered.at(-1)).toBe("e");
});

it("tells all who wait that it is of no use", async () => {
  const { clock, gate, entered, enter } = setup();
  for (const name of ["a", "b", "c", "d"]) enter(name);
  gate.refuseWaiting(new Error("unreachable"));
  await clock.flush();
  expect(entered).toEqual(["a", "b", "c refused: unreachable", "d refused: unreachable"]);
  expect([gate.waiting, clock.pending]).toEqual([0, 0]);
});
