import { describe, expect, it } from "vitest";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { MAX_SLICE_CLUSTERS } from "../../api/ownership-slice.ts";
import { MAX_CLUSTERS } from "../../mesh/contract/route-type.ts";
import type { ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";
import { ownershipOfClusters } from "./cluster-ownership.ts";
import { ownershipByPlace } from "./place-ownership.ts";
import { readSlice, sliceObject } from "./slice-object.ts";

const route = (name: string, owner: string, isFenced?: true): ClusterRoute => ({
  name,
  servers: [`${name}:443`],
  drainMs: 1,
  owner,
  ...(isFenced && { isFenced }),
});

/** Only the owner's routes have the fence. */
function planOf(clusters: readonly ClusterRoute[], clusterWaits: readonly ClusterWait[] = []): OwnershipPlan {
  const rulesFor = (subset: string) => ({
    ...snapshot(table([], { a: [] }), { subset }),
    clusters: clusters.map((cluster) => (cluster.owner === subset ? cluster : { ...cluster, isFenced: undefined })),
  });
  const rules = new Map(["", "v2"].map((subset) => [subset, rulesFor(subset)])) as OwnershipPlan["rules"];
  return { desired: table([], { a: [] }), subsets: ["", "v2"], rules, digest: "", waits: [], clusterWaits };
}
const wait = (subset: string | undefined, ...clusters: string[]): ClusterWait => ({
  podName: "p",
  subset,
  cause: "holds",
  clusters,
});

describe("the ownership of other clusters", () => {
  it("is that of the plan, and clusters with the same one share an object", () => {
    const owned = ownershipOfClusters(planOf([route("eu-1", "v2"), route("eu-2", "v2"), route("us-1", "")]));
    expect(Object.fromEntries(owned)).toEqual({
      "cluster/eu-1": { state: "Owned", owners: [{ subset: "v2" }] },
      "cluster/eu-2": { state: "Owned", owners: [{ subset: "v2" }] },
      "cluster/us-1": { state: "Owned", owners: [{ subset: "default" }] },
    });
    expect(owned.get("cluster/eu-1")).toBe(owned.get("cluster/eu-2"));
  });

  it("names the subsets whose pods may still write, and is Fenced while they are not known", () => {
    const clusters = [route("eu-1", "v2", true), route("eu-2", "v2", true), route("eu-3", "v2")];
    const owned = ownershipOfClusters(planOf(clusters, [wait("", "eu-1", "eu-3"), wait(undefined, "eu-2"), wait("v2", "eu-1")]));
    expect(owned.get("cluster/eu-1")).toEqual({ state: "Moving", owners: [{ subset: "v2" }], from: ["default"] });
    expect(owned.get("cluster/eu-2")).toEqual({ state: "Fenced", owners: [{ subset: "v2" }] });
    // The owner has it: pods that are not enforced are the business of the MeshCluster's status.
    expect(owned.get("cluster/eu-3")?.state).toBe("Owned");
  });

  it("is published beside that of namespaces, and read again", () => {
    const plan = planOf([route("eu-1", "v2")]);
    const ownership = new Map([...ownershipByPlace(plan), ...ownershipOfClusters(plan)]);
    const entries = [...ownership].map(([place, of]) => ({
      ownership: { ...of, since: "2026-01-01T00:00:00Z" },
      places: [place],
    }));
    const app = { ref: { kind: "VirtualApp", namespace: "ops", name: "shop" }, object: { metadata: {} } } as never;
    const object = sliceObject(
      app,
      { group: "", version: "v1", kind: "VirtualApp" } as never,
      { name: "shop-0", entries },
      undefined,
    );
    expect(object.places).toBe(3);
    expect(object.ownership.map(({ namespaces, clusterScope, clusters }) => namespaces ?? clusters ?? clusterScope)).toEqual([
      true,
      ["a"],
      ["eu-1"],
    ]);
    expect(readSlice(object).entries).toEqual(entries);
  });

  it("has room for all clusters of a namespace", () => {
    expect(MAX_SLICE_CLUSTERS).toBe(MAX_CLUSTERS);
  });
});
