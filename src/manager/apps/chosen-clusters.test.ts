import { expect, it } from "vitest";
import type { PlacementDecision } from "../../api/placement-decision.ts";
import { chosenClusters } from "./chosen-clusters.ts";

const slice = (key: string | undefined, names: readonly (string | { name: string; namespace?: string })[], more: object = {}) =>
  ({
    metadata: { namespace: "fleet", labels: key === undefined ? {} : { "multicluster.x-k8s.io/decision-key": key } },
    decisions: names.map((each) => ({ clusterProfileRef: typeof each === "string" ? { name: each } : each })),
    ...more,
  }) as PlacementDecision;
const read = (...objects: readonly PlacementDecision[]) =>
  Object.fromEntries([...chosenClusters(objects)].map(([key, names]) => [key, [...names]]));

it("joins the slices of a decision, which have one key", () => {
  expect(read(slice("a", ["eu-1", "eu-2"]), slice("b", ["us-1"]), slice("a", ["eu-2", "eu-3"]))).toEqual({
    a: ["eu-1", "eu-2", "eu-3"],
    b: ["us-1"],
  });
});

it("knows a decision that names no cluster, and none without a key", () => {
  expect(read(slice("a", []), slice(undefined, ["eu-1"]))).toEqual({ a: [] });
});

it("takes a profile of another namespace for none of the clusters here", () => {
  expect(
    read(
      slice("a", [
        { name: "eu-1", namespace: "fleet" },
        { name: "eu-2", namespace: "other" },
      ]),
    ),
  ).toEqual({ a: ["eu-1"] });
});

it("never reads what the manager has published, also when somebody has edited it", () => {
  const labels = { "ctrlmesh.kruise.io/app": "shop", "multicluster.x-k8s.io/decision-key": "shop.blue" };
  const labelled = slice("shop.blue", ["eu-1"], { metadata: { namespace: "fleet", labels } });
  expect(read(labelled, slice("shop.blue", ["eu-1"], { schedulerName: "ctrlmesh-manager" }))).toEqual({});
});

it("does not count a slice that is being deleted", () => {
  const { metadata } = slice("a", []);
  expect(read(slice("a", ["eu-1"], { metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }))).toEqual({});
});

// The CRD of another program may allow them.
it.each([
  undefined,
  null,
  "eu-1",
  5,
  {},
  [null],
  ["eu-1"],
  [{}],
  [{ clusterProfileRef: null }],
  [{ clusterProfileRef: { name: 5 } }],
])("takes decisions of a wrong form for none, and reads the other slices: %j", (decisions) => {
  expect(read(slice("a", [], { decisions }), slice("a", ["eu-1"]))).toEqual({ a: ["eu-1"] });
});
