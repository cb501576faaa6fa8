import { expect, it } from "vitest";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { createStore } from "../../runtime/store.ts";
import { createKnownClusters } from "./known-clusters.ts";

const owners = () => new Map([["eu", ""]]);
const EU: MeshCluster = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "MeshCluster",
  metadata: { namespace: "fleet", name: "eu", uid: "1", resourceVersion: "1" },
  spec: { servers: ["https://eu.example"], drainSeconds: 5 },
};

it("says nothing of owners before the clusters are listed, and assumes the default time for requests until then", () => {
  const store = createStore<MeshCluster>((error) => expect.fail(String(error)));
  const known = createKnownClusters({ store: () => store as never });
  expect([known.routes("fleet", owners), known.longestDrainMs("fleet")]).toEqual([undefined, 60_000]);
  store.replace([EU]);
  expect([known.routes("fleet", owners), known.longestDrainMs("fleet")]).toEqual([
    [{ name: "eu", servers: ["eu.example:443"], drainMs: 5_000, owner: "" }],
    5_000,
  ]);
});
