import { expect, it } from "vitest";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { createStore } from "../../runtime/store.ts";
import type { AppSpec } from "../apps/app.ts";
import { createKnownDecisions } from "../decisions/known-decisions.ts";
import { createKnownClusters } from "./known-clusters.ts";

const ref = { kind: "VirtualApp", namespace: "fleet", name: "shop" };
const appWith = (spec: Partial<AppSpec>) => ({ ref, spec: spec as AppSpec });
const app = appWith({ clusterOwners: () => new Map([["eu", ""]]) });
const EU: MeshCluster = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "MeshCluster",
  metadata: { namespace: "fleet", name: "eu", uid: "1", resourceVersion: "1" },
  spec: { servers: ["https://eu.example"], drainSeconds: 5 },
};

it("says nothing of owners before the clusters are listed, and assumes the default time for requests until then", () => {
  const store = createStore<MeshCluster>((error) => expect.fail(String(error)));
  const known = createKnownClusters({ store: () => store as never }, createKnownDecisions());
  expect([known.routes(app), known.longestDrainMs("fleet")]).toEqual([undefined, 60_000]);
  store.replace([EU]);
  expect([known.routes(app), known.longestDrainMs("fleet")]).toEqual([
    [{ name: "eu", servers: ["eu.example:443"], drainMs: 5_000, owner: "" }],
    5_000,
  ]);
});

it("says nothing of owners that a PlacementDecision decides before these are listed", () => {
  const store = createStore<MeshCluster>((error) => expect.fail(String(error)));
  const decisions = createKnownDecisions();
  const known = createKnownClusters({ store: () => store as never }, decisions);
  const chosen = appWith({ ...app.spec, decisionKeys: ["key"] });
  store.replace([EU]);
  expect([known.routes(chosen), known.routes(app)?.length]).toEqual([undefined, 1]);
  decisions.set("fleet", new Map());
  expect(known.routes(chosen)).toHaveLength(1);
});

it("names the present owners by the last plan, and by the statuses until there is one", () => {
  const store = createStore<MeshCluster>((error) => expect.fail(String(error)));
  const known = createKnownClusters({ store: () => store as never }, createKnownDecisions());
  store.replace([{ ...EU, status: { owners: [{ app: "shop", subset: "blue" }] } }]);
  const stays = appWith({ clusterOwners: ([eu]) => new Map([["eu", eu?.owners?.get("shop") ?? "none"]]) });
  const plan = (owner: string) => ({ rules: new Map([[owner, { clusters: [{ name: "eu", owner }] }]]) }) as never;
  expect([undefined, plan("green"), { rules: new Map() } as never].map((each) => known.routes(stays, each)?.[0]?.owner)).toEqual([
    "blue",
    "green",
    "none",
  ]);
});
