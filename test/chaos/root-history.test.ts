// Tests root-history.ts with constructed versions of a root, and what the ownership check makes of them.
import { describe, expect, it } from "vitest";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import { balancedMap, countNamespaces } from "../../src/manager/sharding/balanced-map.ts";
import { formatPlacement } from "../../src/manager/sharding/stored-placement.ts";
import type { PodWrite } from "../support/mesh/pod-writes.ts";
import { samplePlacement, sampleShardingRoot } from "../support/sharding-config.ts";
import { checkOwnership } from "./ownership-check.ts";
import { createRootHistory } from "./root-history.ts";

/** A version of the root whose canary has these namespaces, and whose only active shard is this one. */
function rootWith(version: number, active: number, inNamespaces: readonly string[] = ["c"]): ShardingConfig {
  const sample = sampleShardingRoot({
    placement: "Balanced",
    canary: { replicas: 1, inNamespaces },
  }) as unknown as ShardingConfig;
  const map = balancedMap(undefined, [active], countNamespaces([]));
  const placement = formatPlacement(samplePlacement({ active: [active], map }));
  return { ...sample, metadata: { ...sample.metadata, resourceVersion: `${version}` }, status: { placement } };
}

describe("createRootHistory", () => {
  it("has the shards of a namespace in order, without repetitions", () => {
    const history = createRootHistory("bar");
    for (const [index, shard] of [1, 1, 2, 1].entries()) history.add(rootWith(index + 1, shard));
    expect(history.ownersOf("a").map(({ subset }) => subset)).toEqual(["bar-1-normal", "bar-2-normal", "bar-1-normal"]);
    expect(history.ownersOf("c").map(({ subset }) => subset)).toEqual(["bar-0-canary"]);
    expect(history.ownerOf("a")).toBe("bar-1-normal");
  });
  it("follows the canary of the spec", () => {
    const history = createRootHistory("bar");
    history.add(rootWith(1, 1, ["c"]));
    history.add(rootWith(2, 1, ["a"]));
    expect([history.ownerOf("a"), history.ownerOf("c")]).toEqual(["bar-0-canary", "bar-1-normal"]);
  });
  it("dates a version after the last get that did not have it yet", () => {
    const history = createRootHistory("bar");
    history.add(rootWith(1, 1));
    history.noteRead(rootWith(1, 1), 100);
    history.noteRead(rootWith(1, 1), 300);
    history.noteRead(rootWith(4, 2), 500); // the get was faster than the watch
    history.add(rootWith(4, 2));
    expect(history.ownersOf("a").map(({ sinceMs }) => sinceMs)).toEqual([0, 300]);
  });
  it("ignores a root without a placement", () => {
    const history = createRootHistory("bar");
    history.add(sampleShardingRoot() as unknown as ShardingConfig);
    expect(history.ownerOf("a")).toBeUndefined();
  });
});

describe("the ownership check of a family", () => {
  const write = (pod: string, receivedMs: number): PodWrite => ({
    pod,
    verb: "update",
    resource: "configmaps",
    namespace: "a",
    name: "x",
    code: 200,
    receivedMs,
    answeredMs: receivedMs + 1,
  });
  const violationsOf = (writes: readonly PodWrite[]) => {
    const history = createRootHistory("bar");
    history.add(rootWith(1, 1));
    history.noteRead(rootWith(1, 1), 300);
    history.add(rootWith(2, 2));
    const subsetOf = (pod: string) => `bar-${pod.slice(-1)}-normal`;
    return checkOwnership({ writes, subsetOf, ownersOf: history.ownersOf, placeOf: () => "a" }).violations;
  };

  it("allows a new shard to write after the placement has changed", () => {
    expect(violationsOf([write("bar-1", 200), write("bar-2", 400)])).toEqual([]);
  });
  it("finds a shard that writes before the placement has changed", () => {
    expect(violationsOf([write("bar-1", 200), write("bar-2", 250)])).toMatchObject([{ kind: "not-owner" }]);
  });
  it("finds a shard that writes after it has lost the namespace", () => {
    expect(violationsOf([write("bar-1", 200), write("bar-2", 400), write("bar-1", 500)])).toMatchObject([{ kind: "not-owner" }]);
  });
});
