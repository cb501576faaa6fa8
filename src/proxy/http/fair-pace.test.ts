import { expect, it } from "vitest";
import type { ByteSink, ByteSource } from "./byte-stream.ts";
import { createFairPace } from "./fair-pace.ts";

const CHUNK = new Uint8Array(64 * 1024);

function setup() {
  const turns: (() => void)[] = [];
  const pace = createFairPace((run) => turns.push(run));
  const resumed: string[] = [];
  /** A body that writes when the test says so. */
  const open = (client: string, isWanted = true) => {
    let sink: ByteSink | undefined;
    const body: ByteSource = {
      cancel: () => undefined,
      open(to) {
        sink = to;
        return { resume: () => resumed.push(client), cancel: () => resumed.push(`${client} cancelled`) };
      },
    };
    const control = pace(client, body).open({ write: () => isWanted, end: () => undefined, abort: () => undefined });
    return { write: (times = 1) => Array.from({ length: times }, () => sink?.write(CHUNK)).at(-1), control };
  };
  const turn = () => turns.splice(0).forEach((run) => void run());
  return { open, turn, turns, resumed };
}

it("a body goes on while a turn has few bytes, and waits for the next turn when it has many", () => {
  const { open, turn, turns, resumed } = setup();
  const a = open("a");
  expect([a.write(4), a.write()]).toEqual([true, false]);
  expect(resumed).toEqual([]);
  turn();
  expect([resumed, a.write(), turns.length]).toEqual([["a"], true, 1]);
  turn();
  expect(turns).toEqual([]); // an idle pace costs nothing
});

it("clients take turns, so one with many bodies delays another by one", () => {
  const { open, turn, resumed } = setup();
  for (let index = 0; index < 20; index++) open("many").write(5);
  open("one").write();
  turn();
  expect(resumed).toEqual(["many", "one", "many", "many"]);
});

it("a body whose reader is full goes on only when both allow it", () => {
  const { open, turn, resumed } = setup();
  const full = open("a", false);
  full.write(5);
  turn();
  expect(resumed).toEqual([]);
  full.control.resume();
  expect(resumed).toEqual(["a"]);
});

it("a reader that wants more does not end the wait for a turn", () => {
  const { open, turn, resumed } = setup();
  const a = open("a", false);
  a.write(5);
  a.control.resume();
  expect(resumed).toEqual([]);
  turn();
  expect(resumed).toEqual(["a"]);
});
