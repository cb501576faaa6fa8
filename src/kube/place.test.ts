import { describe, expect, it } from "vitest";
import { BUCKETS, CLUSTER_SCOPE, clusterPlace, isBucket, isInClusterScope, nameHash, placeHash } from "./place.ts";

describe("nameHash", () => {
  it.each([
    ["default", 5],
    ["kube-system", 25],
    ["ns-canary", 12],
    ["operator-demo", 30],
    ["foo-01", 18],
    ["test-mysql", 3],
    ["", 0],
  ])("of %s is %i, as in KusionStack", (namespace, hash) => {
    expect(nameHash(namespace)).toBe(hash);
  });

  it("is the same for names with the same letters", () => {
    expect([nameHash("team-ab"), nameHash("team-ba")]).toEqual([23, 23]);
  });

  it("equals KusionStack's recurrence over the bytes", () => {
    for (const name of ["a", "shop-eu-17", "n".repeat(63), "ü"]) {
      const recurrence = Buffer.from(name).reduce((hash, byte) => (hash * 33 + byte) % 32, 0);
      expect(nameHash(name)).toBe(recurrence);
    }
  });
});

describe("the place of a cluster-scoped object", () => {
  it("is the bucket of its name's hash, and the cluster scope without a name", () => {
    expect(BUCKETS).toHaveLength(32);
    for (const name of ["default", "n".repeat(253), "system:node"]) {
      expect(clusterPlace(name)).toBe(BUCKETS[nameHash(name)]);
      expect(placeHash(clusterPlace(name))).toBe(placeHash(name));
    }
    expect(clusterPlace("")).toBe(CLUSTER_SCOPE);
  });

  it("is never a namespace", () => {
    for (const place of BUCKETS) expect([place, isBucket(place), isInClusterScope(place)]).toEqual([place, true, true]);
    expect([isBucket(CLUSTER_SCOPE), isInClusterScope(CLUSTER_SCOPE)]).toEqual([false, true]);
    expect([isBucket("default"), isInClusterScope("default")]).toEqual([false, false]);
  });
});
