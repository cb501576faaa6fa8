import { describe, expect, it } from "vitest";
import { NEVER, WITHOUT_END } from "../../kube/resource-version.ts";
import { LOST_MOVES, movesFromContent, movesToContent, type StoredMoves } from "./stored-moves.ts";

const MOVES: StoredMoves = {
  hasLostOthers: false,
  resources: new Map([
    ["/pods", { horizon: NEVER, namespacesHorizon: WITHOUT_END, departed: [] }],
    ["apps/deployments", { horizon: 2n ** 64n, namespacesHorizon: 9n, departed: ["a", "__proto__"] }],
    ["__proto__", { horizon: NEVER, namespacesHorizon: NEVER, departed: [] }],
  ]),
};

describe("stored moves", () => {
  it("come back as they were", () => {
    for (const hasLostOthers of [true, false]) {
      const moves = { ...MOVES, hasLostOthers };
      expect(movesFromContent(JSON.parse(JSON.stringify(movesToContent(moves))))).toEqual(moves);
    }
  });

  const pods = { horizon: "0", namespacesHorizon: "0", departed: [] };
  it.each<[string, unknown]>([
    ["a version that is no number", [["/pods", { ...pods, horizon: "x" }]]],
    ["a negative version", [["/pods", { ...pods, horizon: "-1" }]]],
    ["a number in the place of its text", [["/pods", { ...pods, horizon: 7 }]]],
    ["no version", [["/pods", { ...pods, namespacesHorizon: undefined }]]],
    ["a departed namespace without a name", [["/pods", { ...pods, departed: [7] }]]],
    ["no departed namespaces", [["/pods", { ...pods, departed: undefined }]]],
    ["no resource", [["/pods", null]]],
    ["an older form", { "/pods": { horizon: "0", namespacesHorizon: "0", moves: [] } }],
    ["no resources", undefined],
  ])("with %s are lost", (_, resources) => {
    expect(movesFromContent({ hasLostOthers: false, resources })).toBe(LOST_MOVES);
  });

  it("without the word on other resources, or none at all, are lost", () => {
    for (const content of [{ resources: [] }, undefined, null, 7]) expect(movesFromContent(content)).toBe(LOST_MOVES);
  });
});
