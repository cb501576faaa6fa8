import fc from "fast-check";
import { expect, test } from "vitest";
import { initialReflectorState, nextReflectorState, type ReflectorInput, type ReflectorState } from "./reflector-state.ts";

const ended = (healthy: boolean, clean: boolean): ReflectorInput => ({
  kind: "watch-ended",
  resourceVersion: "9",
  healthy,
  clean,
});

test("a watch begins at the version of the list", () => {
  expect(nextReflectorState(initialReflectorState, { kind: "listed", resourceVersion: "5" })).toEqual({
    kind: "watching",
    resourceVersion: "5",
    failures: 0,
  });
});

test("a watch that ended after events continues at once from the last one", () => {
  const watching: ReflectorState = { kind: "watching", resourceVersion: "5", failures: 3 };
  expect(nextReflectorState(watching, ended(true, true))).toEqual({ kind: "watching", resourceVersion: "9", failures: 0 });
});

test("a watch that broke, or ended at once, continues after a wait", () => {
  const watching: ReflectorState = { kind: "watching", resourceVersion: "5", failures: 3 };
  expect(nextReflectorState(watching, ended(true, false))).toMatchObject({
    kind: "waiting",
    failures: 1,
    next: { resourceVersion: "9" },
  });
  expect(nextReflectorState(watching, ended(false, true))).toMatchObject({ kind: "waiting", failures: 4 });
});

test("an expired version leads to a list, but not in a tight loop", () => {
  let state: ReflectorState = { kind: "watching", resourceVersion: "5", failures: 0 };
  const kinds: string[] = [];
  for (let round = 0; round < 3; round++) {
    state = nextReflectorState(state, { kind: "watch-expired", healthy: false });
    kinds.push(state.kind);
    state = nextReflectorState(state, { kind: "waited" });
    state = nextReflectorState(state, { kind: "listed", resourceVersion: "6" });
  }
  expect(kinds).toEqual(["listing", "waiting", "waiting"]);
});

test("for all inputs, only a list or a watch sets the version to watch from, and stopped is final", () => {
  const version = fc.integer({ min: 1 }).map(String);
  const input: fc.Arbitrary<ReflectorInput> = fc.oneof(
    fc.record({ kind: fc.constant("listed" as const), resourceVersion: version }),
    fc.constant({ kind: "list-failed" as const }),
    fc.record({
      kind: fc.constant("watch-ended" as const),
      resourceVersion: version,
      healthy: fc.boolean(),
      clean: fc.boolean(),
    }),
    fc.record({ kind: fc.constant("watch-expired" as const), healthy: fc.boolean() }),
    fc.constant({ kind: "waited" as const }),
    fc.constant({ kind: "stop" as const }),
  );
  fc.assert(
    fc.property(fc.array(input), (inputs) => {
      let state: ReflectorState = initialReflectorState;
      const known = new Set<string>();
      for (const next of inputs) {
        const before: ReflectorState = state;
        if ("resourceVersion" in next) known.add(next.resourceVersion);
        state = nextReflectorState(state, next);
        if (before.kind === "stopped") expect(state.kind).toBe("stopped");
        if (state.kind === "watching") expect(known).toContain(state.resourceVersion);
        if (next.kind === "watch-expired" && before.kind === "watching") {
          expect(state.kind === "waiting" ? state.next.kind : state.kind).toBe("listing");
        }
      }
    }),
    { interruptAfterTimeLimit: 2_000 },
  );
});
