import { expect, it } from "vitest";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { subset, table } from "../../../test/support/route-table.ts";
import { canarySpec, createStatusWorld } from "../../../test/support/status-world.ts";
import type { AppStatus } from "../../api/app-status.ts";
import { CLUSTER_OBJECTS, CLUSTER_REQUESTS, CLUSTER_SERVERS, FREEZE } from "../../mesh/contract/route-type.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { conditionOf } from "./facts.ts";
import { paceProgress } from "./pacing.ts";

const FULL = new Set([FREEZE, CLUSTER_OBJECTS, CLUSTER_SERVERS, CLUSTER_REQUESTS]);
const eu: ClusterRoute = { name: "eu", servers: ["eu:443"], drainMs: 1, owner: "", upstream: { url: "https://eu" } };
const us: ClusterRoute = { name: "us", servers: ["us:443"], drainMs: 1, owner: "" };
const BEFORE = table([subset("canary")], { a: [], b: [0], "": [] });
const AFTER = table([subset("canary")], { a: [0], b: [0], "": [] });
const inEu = (of: typeof BEFORE) => ({ clusters: [eu], clusterTables: new Map([["eu", of]]) });

function settledWorld(clusters: ReturnType<typeof createStatusWorld>["clusters"]) {
  const world = createStatusWorld(canarySpec([]), ["prod"], [appPod("a0"), appPod("c0", "canary")]);
  for (const name of ["a0", "c0"]) world.reports.set(name, { capabilities: FULL });
  world.clusters = clusters;
  expect(converged(world.settle())).toMatchObject({ status: "True", reason: "InSync" });
  return world;
}
const converged = (status: AppStatus) => conditionOf(status, "Converged");

it("a namespace that moves in a cluster has converged when both pods enforce it, and the message names the cluster", () => {
  const world = settledWorld(inEu(BEFORE));
  world.clusters = inEu(AFTER);
  expect(converged(world.reconcile())).toMatchObject({
    status: "False",
    reason: "Moving",
    message: "cluster eu: pod a0 has not given up the cluster yet",
  });
  world.ack("a0", "c0");
  expect(converged(world.reconcile())).toMatchObject({ status: "False", reason: "ProxiesBehind" });
  world.ack("a0", "c0");
  expect(converged(world.settle())?.status).toBe("True");
});

it("a whole cluster has converged when the pods of the last owner have given it up", () => {
  const world = settledWorld({ clusters: [us] });
  world.clusters = { clusters: [{ ...us, owner: "canary" }] };
  expect(converged(world.reconcile())).toMatchObject({
    reason: "Moving",
    message: expect.stringMatching(/^cluster us: pod a0 /),
  });
  expect(converged(world.settle())?.status).toBe("True");
});

it("a removed pod counts while its last requests may run in the cluster", () => {
  const world = settledWorld(inEu(BEFORE));
  const facts = proxyFacts({ capabilities: FULL, mayHoldMore: true });
  const goneAbroad = [{ pod: appPod("gone"), facts }];
  world.clusters = { ...inEu(AFTER), goneAbroad };
  world.reconcile();
  world.ack("a0", "c0");
  expect(converged(world.settle())).toMatchObject({
    status: "False",
    reason: "Moving",
    message: "cluster eu: pod gone was removed, and its last requests may still run",
  });
  world.clusters = inEu(AFTER);
  expect(converged(world.settle())?.status).toBe("True");
});

it("a pod whose connections to clusters the mesh does not see has no proxy for them", () => {
  const world = settledWorld(inEu(BEFORE));
  world.reports.set("a0", { capabilities: new Set([FREEZE, CLUSTER_OBJECTS]) });
  expect(converged(world.settle())).toMatchObject({
    status: "False",
    reason: "PodsWithoutProxy",
    message: expect.stringMatching(/^cluster eu: pod a0 has a proxy that does not see .*egress and restart it/),
  });
});

it("a cluster that is down has converged if pods know its namespaces, also while the manager does not", () => {
  const world = settledWorld(inEu(BEFORE));
  world.reports.set("a0", {
    capabilities: FULL,
    clusters: { unreachable: [{ cluster: "eu", reason: "refused" }] } as never,
  });
  world.clusters = { clusters: [eu] };
  expect(converged(world.settle())?.status).toBe("True");
});

it("a cluster whose namespaces nobody knows stops nobody who waits, since it is closed to every pod, and the message names it", () => {
  const world = settledWorld(undefined);
  world.clusters = { clusters: [eu, { ...eu, name: "eu-2", servers: ["eu-2:443"] }] };
  expect(converged(world.settle())).toMatchObject({
    status: "True",
    reason: "InSync",
    message: expect.stringMatching(
      /enforce route \d+; the namespaces of cluster eu and 1 more are not known, so no pod can write there: see Ready of the MeshCluster$/,
    ),
  });
  world.clusters = inEu(BEFORE);
  expect(converged(world.settle())?.message).not.toContain("cluster");
});

it.each([inEu(BEFORE), { clusters: [us] }])("a failover leaves Converged True where nothing moves", (clusters) => {
  const world = settledWorld(clusters);
  world.clusters = { ...clusters, goneAbroad: ["unknown"] };
  expect(converged(world.reconcile())?.status).toBe("True");
});

it("a move without an edit is written when it begins and when it ends, and the same facts give the same status", () => {
  const world = settledWorld(inEu(BEFORE));
  let written = world.reconcile();
  const shown: (string | undefined)[] = [];
  const look = () => {
    const next = world.reconcile();
    expect(world.reconcile()).toEqual(next);
    const { status } = paceProgress(written, next, 1_000);
    if (JSON.stringify(status) !== JSON.stringify(written)) shown.push(converged(status)?.reason);
    written = status;
    return next;
  };
  world.clusters = inEu(AFTER);
  const reasons = ["", "a0", "c0", "c0"].map((pod) => {
    world.ack(pod);
    return converged(look())?.reason;
  });
  expect([reasons[0], reasons.at(-1), shown]).toEqual(["Moving", "InSync", ["Moving", "InSync"]]);
});

it("a whole cluster that moves by its label is not shown as converged, not even for a moment", () => {
  const world = settledWorld({ clusters: [us] });
  const written = world.reconcile();
  world.clusters = { clusters: [{ ...us, owner: "canary" }] };
  expect(converged(paceProgress(written, world.reconcile(), 0).status)).toMatchObject({ status: "False", reason: "Moving" });
});

it("a namespace that is new in a cluster writes no status before all pods know it, if that is soon", () => {
  const world = settledWorld(inEu(BEFORE));
  const written = world.reconcile();
  world.clusters = inEu(table([subset("canary")], { a: [], b: [0], born: [0], "": [] }));
  const next = world.reconcile();
  expect(converged(next)?.status).toBe("False");
  expect(paceProgress(written, next, 1_000).status).toBe(written);
});
