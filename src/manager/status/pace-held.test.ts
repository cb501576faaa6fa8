import { expect, it } from "vitest";
import { paceHeld } from "./pace-held.ts";

const saying = (held: number) => ({ routeVersion: 1, namespaces: { total: 3, moving: 0, held } });

it("the first other number is said at once, and the next one not before its time", () => {
  expect(paceHeld(saying(0), saying(7), Number.POSITIVE_INFINITY)).toEqual({ status: saying(7) });
  expect(paceHeld(saying(7), saying(0), 4_000)).toEqual({ status: saying(7), dueMs: 1_000 });
  expect(paceHeld(saying(7), saying(0), 5_000)).toEqual({ status: saying(0) });
});

it("all else of a status is said at once, and a number that came back waits for nothing", () => {
  expect(paceHeld(saying(7), { ...saying(3), routeVersion: 2 }, 0)).toEqual({
    status: { ...saying(7), routeVersion: 2 },
    dueMs: 5_000,
  });
  expect(paceHeld(saying(7), saying(7), 0)).toEqual({ status: saying(7) });
  expect(paceHeld(undefined, saying(7), 0)).toEqual({ status: saying(7) });
  expect(paceHeld({ routeVersion: 1 }, saying(7), 0)).toEqual({ status: saying(7) });
});
