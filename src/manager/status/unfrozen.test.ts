import { expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { table } from "../../../test/support/route-table.ts";
import { createStatusWorld, type StatusWorld } from "../../../test/support/status-world.ts";
import type { AppStatus } from "../../api/app-status.ts";
import { CLUSTER_FREEZE, CLUSTER_OBJECTS, CLUSTER_REQUESTS, CLUSTER_SERVERS, FREEZE } from "../../mesh/contract/route-type.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { conditionOf } from "./facts.ts";

const undivided = { selector: { matchLabels: { component: "app" } } };

/** An app that divides nothing, whose pods enforce what they were sent. */
function settledWorld(...pods: readonly string[]) {
  const world = createStatusWorld(
    undivided,
    ["prod"],
    pods.map((name) => appPod(name)),
  );
  world.settle();
  return world;
}

const freeze = (world: StatusWorld) => {
  world.spec = { ...undivided, route: { frozen: { prod: "restore" } } };
};
const converged = (status: AppStatus) => conditionOf(status, "Converged");

it("a freeze has converged once its only pod enforces it", () => {
  const world = settledWorld("a0");
  freeze(world);
  expect(converged(world.reconcile())).toMatchObject({ status: "False", reason: "ProxiesBehind" });
  expect(converged(world.settle())).toMatchObject({ status: "True", reason: "InSync" });
});

it("a freeze has not converged while a write is under way in the namespace, and the message says so", () => {
  const world = settledWorld("a0");
  freeze(world);
  world.reports.set("a0", { backlog: { heldNamespaces: 0, drainingWrites: 1 } });
  expect(converged(world.reconcile())?.message).toMatch(/; pod a0 has 1 write under way that its new route refuses$/);
});

it("a freeze has not converged while a pod without a proxy runs, although no other subset owns anything", () => {
  const world = settledWorld("a0");
  freeze(world);
  world.pods.set("bare", appPod("bare", "", { proxy: "none" }));
  expect(converged(world.settle())).toMatchObject({
    status: "False",
    reason: "PodsWithoutProxy",
    message: "pod bare may write in frozen namespaces, since it carries no proxy: restart it to have it injected",
  });
});

it("a freeze has not converged while a proxy of an earlier version acknowledges it and does not know it", () => {
  const world = settledWorld("a0");
  freeze(world);
  world.reports.set("a0", { capabilities: new Set(["type:routes"]) });
  expect(converged(world.settle())).toMatchObject({
    status: "False",
    reason: "PodsWithoutProxy",
    message:
      "pod a0 may write in frozen namespaces, since it carries no proxy that knows freezes: restart it to have it injected",
  });
});

it("a freeze has not converged while a terminating pod without a connection may write by earlier routes", () => {
  const world = settledWorld("a0", "a1");
  world.pods.set("a1", appPod("a1", "", { terminating: true }));
  world.reports.set("a1", { connected: false });
  freeze(world);
  world.reconcile();
  world.ack("a0");
  expect(converged(world.reconcile())).toMatchObject({
    status: "False",
    reason: "ProxiesBehind",
    message: "pod a1 may write in frozen namespaces: its proxy is behind",
  });
  world.pods.delete("a1");
  expect(converged(world.reconcile())?.status).toBe("True");
});

const eu: ClusterRoute = { name: "eu", servers: ["eu:443"], drainMs: 1, owner: "", upstream: { url: "https://eu" } };
const FULL = new Set([FREEZE, CLUSTER_OBJECTS, CLUSTER_SERVERS, CLUSTER_REQUESTS, CLUSTER_FREEZE]);

function frozenInEu(clusters: readonly ClusterRoute[] | undefined, capabilities: ReadonlySet<string> = FULL) {
  const world = settledWorld("a0");
  world.reports.set("a0", { capabilities });
  world.clusters = clusters && { clusters, clusterTables: new Map([["eu", table([], { prod: [] })]]) };
  world.settle();
  world.spec = { ...undivided, route: { frozen: { "eu/prod": "restore" } } };
  return world;
}

it("a freeze in another cluster has converged once all pods enforce it, and counts among the frozen namespaces", () => {
  const world = frozenInEu([eu]);
  expect(converged(world.reconcile())).toMatchObject({ status: "False", reason: "ProxiesBehind" });
  const status = world.settle();
  expect(converged(status)).toMatchObject({ status: "True", reason: "InSync" });
  expect(status.namespaces?.frozen).toBe(1);
});

it("a freeze in another cluster has not converged while a proxy is of an earlier version", () => {
  const world = frozenInEu([eu], FULL.difference(new Set([CLUSTER_FREEZE])));
  expect(converged(world.settle())).toMatchObject({
    status: "False",
    reason: "PodsWithoutProxy",
    message:
      "pod a0 may write in frozen namespaces of cluster eu, since it carries no proxy that knows freezes in other clusters: restart it to have it injected",
  });
});

it.each<[string, readonly ClusterRoute[] | undefined, string]>([
  ["that the app does not divide", undefined, "the app divides no MeshCluster of this name"],
  ["that is unknown", [{ ...eu, name: "us", upstream: undefined }], "the app divides no MeshCluster of this name"],
  ["with Tunnel", [{ ...eu, upstream: undefined }], "MeshCluster eu has interception Tunnel, and freezes need Terminate"],
  [
    "with None",
    [{ ...eu, upstream: undefined, isOpen: true }],
    "MeshCluster eu has interception None, and freezes need Terminate",
  ],
])("a freeze in a cluster %s is not said to hold", (_what, clusters, why) => {
  const world = frozenInEu(clusters);
  const status = world.settle();
  expect(converged(status)).toMatchObject({
    status: "False",
    reason: "NotFrozen",
    message: `namespace prod of cluster eu is not frozen: ${why}; to take the freeze back: ctrlmesh thaw prod --app app -n shop --cluster eu`,
  });
  expect(conditionOf(status, "Accepted")?.message).toBe("the spec is valid");
  expect(status.namespaces?.frozen).toBeUndefined();
  world.spec = undivided;
  expect(converged(world.settle())?.status).toBe("True");
});
