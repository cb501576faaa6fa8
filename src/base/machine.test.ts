import { expect, it } from "vitest";
import { runMachine } from "./machine.ts";

it("carries out all effects of an event before the next event, also if an effect brings that", () => {
  const done: string[] = [];
  const machine = runMachine(
    0,
    (count, event: string) => ({ state: count + 1, effects: [`${event}-1`, `${event}-2`] }),
    (effect) => {
      done.push(effect);
      if (effect === "a-1") machine.enter("b");
    },
  );
  machine.enter("a");
  expect(done).toEqual(["a-1", "a-2", "b-1", "b-2"]);
  expect(machine.state).toBe(2);
});

it("ends with the first error, since its state would be ahead of what was carried out", () => {
  const done: string[] = [];
  const machine = runMachine(
    0,
    (count, event: string) => ({ state: count + 1, effects: [event, "end"] }),
    (effect) => {
      done.push(effect);
      if (effect === "a") throw new Error("the disk is gone");
    },
  );
  expect(() => machine.enter("a")).toThrow("the disk is gone");
  expect(() => machine.enter("b")).toThrow("the disk is gone");
  expect(done).toEqual(["a"]);
});
