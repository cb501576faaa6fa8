import { describe, expect, it } from "vitest";
import { NEVER, WITHOUT_END } from "../../kube/resource-version.ts";
import { movesFromContent, movesToContent, type StoredMoves } from "./stored-moves.ts";

const MOVES: StoredMoves = {
  hasLostOthers: false,
  resources: new Map([
    ["/pods", { horizon: NEVER, namespacesHorizon: WITHOUT_END, moves: [] }],
    [
      "apps/deployments",
      {
        horizon: 2n ** 64n,
        namespacesHorizon: 9n,
        moves: [
          { name: "a", version: 7n, isDeparted: false },
          { name: "b", version: WITHOUT_END, isDeparted: true },
          { name: "__proto__", version: NEVER, isDeparted: false },
        ],
      },
    ],
    ["__proto__/constructor", { horizon: NEVER, namespacesHorizon: NEVER, moves: [] }],
  ]),
};

describe("stored moves", () => {
  it("come back as they were", () => {
    for (const hasLostOthers of [true, false])
      expect(movesFromContent(JSON.parse(JSON.stringify(movesToContent({ ...MOVES, hasLostOthers }))))).toEqual({
        ...MOVES,
        hasLostOthers,
      });
  });

  const pods = { horizon: "0", namespacesHorizon: "0", moves: [] };
  it.each<[string, unknown]>([
    ["a version that is no number", { "/pods": { ...pods, horizon: "x" } }],
    ["a negative version", { "/pods": { ...pods, horizon: "-1" } }],
    ["a number in the place of its text", { "/pods": { ...pods, horizon: 7 } }],
    ["no version", { "/pods": { ...pods, namespacesHorizon: undefined } }],
    ["a move without a version", { "/pods": { ...pods, moves: [["a"]] } }],
    ["a move without a name", { "/pods": { ...pods, moves: [[7, "7"]] } }],
    ["a move that is no pair", { "/pods": { ...pods, moves: [7] } }],
    ["no moves", { "/pods": { ...pods, moves: undefined } }],
    ["no resource", { "/pods": null }],
    ["no resources", undefined],
  ])("with %s are an error", (_, resources) => {
    expect(() => movesFromContent({ hasLostOthers: false, resources } as never)).toThrow();
  });

  it("without the word on other resources have lost them", () => {
    expect(movesFromContent({ resources: {} } as never).hasLostOthers).toBe(true);
  });
});
