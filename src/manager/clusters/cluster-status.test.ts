import { describe, expect, it } from "vitest";
import { fleetCluster as meshCluster } from "../../../test/support/mesh-cluster.ts";
import { table } from "../../../test/support/route-table.ts";
import type { ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import type { RouteRule } from "../../mesh/ownership/table.ts";
import type { NamespacesState } from "../cluster-namespaces/namespaces-state.ts";
import { type AppOfCluster, clusterStatus } from "./cluster-status.ts";

const NONE: ReadonlySet<string> = new Set();

describe("the status of a MeshCluster", () => {
  const object = meshCluster("eu", { servers: ["https://eu.example"] }, { generation: 3 });
  const now = "2026-01-03T00:00:00.000Z";
  const app = (waits: readonly ClusterWait[], isFenced?: true): AppOfCluster => ({
    app: "shop",
    route: { name: "eu", servers: ["eu.example:443"], drainMs: 60_000, owner: "blue", ...(isFenced && { isFenced }) },
    waits,
    troubles: [],
  });
  const reasons = (apps: readonly AppOfCluster[]) =>
    Object.fromEntries(
      clusterStatus({ object, refused: undefined, unplanned: NONE, apps, now }).conditions?.map(({ type, reason }) => [
        type,
        reason,
      ]) ?? [],
    );

  it("says whether each cluster has one writer", () => {
    const wait: ClusterWait = { podName: "p", subset: "", cause: "not-enforced", clusters: ["eu"] };
    expect(reasons([])).toEqual({
      Ready: "NotDivided",
      Identified: "Unique",
      Enforced: "NotDivided",
      Decided: "NotDivided",
      Reachable: "NotDivided",
    });
    expect(reasons([app([])])).toEqual({
      Ready: "OneOwner",
      Identified: "Unique",
      Enforced: "OneOwner",
      Decided: "ByRules",
      Reachable: "NoFailures",
    });
    expect(reasons([app([wait])])).toMatchObject({ Ready: "PodsNotEnforcing" });
    expect(reasons([app([]), app([wait], true)])).toMatchObject({ Ready: "Moving" });
  });

  it("says that a pod of the owner cannot reach the cluster, which changes nothing of Ready", () => {
    const trouble = { podName: "p", cluster: "eu", reason: "connecting to eu.example:443: connect ECONNREFUSED" };
    const { conditions = [] } = clusterStatus({
      object,
      refused: undefined,
      unplanned: NONE,
      apps: [app([]), { ...app([]), troubles: [trouble, trouble] }],
      now,
    });
    expect(conditions.map(({ type, status }) => `${type} ${status}`)).toEqual([
      "Ready True",
      "Identified True",
      "Enforced True",
      "Decided True",
      "Reachable False",
    ]);
    expect(conditions[4]).toMatchObject({
      reason: "Unreachable",
      message: "shop: pod p, and 1 more: connecting to eu.example:443: connect ECONNREFUSED",
    });
  });

  it("says that the mesh does not limit connections to a cluster, once each pod finds only what its subset owns", () => {
    const wait: ClusterWait = { podName: "p", subset: "", cause: "holds", clusters: ["eu"] };
    const objects = [{ group: "", resource: "secrets", name: "eu" }];
    const open = (waits: readonly ClusterWait[]): AppOfCluster => ({
      ...app(waits),
      route: { ...app([]).route, isOpen: true, objects },
    });
    const { conditions = [] } = clusterStatus({ object, refused: undefined, unplanned: NONE, apps: [open([])], now });
    expect(conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual([
      "Ready True NotIntercepted",
      "Identified True Unique",
      "Enforced Unknown NotIntercepted",
      "Decided True ByRules",
      "Reachable Unknown NotIntercepted",
    ]);
    expect(reasons([open([wait])])).toMatchObject({ Ready: "PodsNotEnforcing" });
  });

  it("does not take a cluster for ready that the mesh neither hides nor limits", () => {
    const open: AppOfCluster = { ...app([]), route: { ...app([]).route, isOpen: true } };
    const { conditions = [] } = clusterStatus({ object, refused: undefined, unplanned: NONE, apps: [open], now });
    expect(conditions[0]).toMatchObject({
      type: "Ready",
      status: "Unknown",
      reason: "NotIntercepted",
      message: "interception is None and discoveredBy is empty: every pod finds and reaches the cluster",
    });
  });

  it("names the owner, the pods that are waited for, and what to do", () => {
    const wait: ClusterWait = { podName: "p", subset: "", cause: "not-enforced", clusters: ["eu"] };
    const status = clusterStatus({ object, refused: undefined, unplanned: NONE, apps: [app([wait, wait], true)], now });
    expect(status).toMatchObject({ observedGeneration: 3, owners: [{ app: "shop", subset: "blue" }], waitingOn: ["p"] });
    expect(status.conditions?.[0]?.message).toBe(
      'shop: pod p has a proxy that does not see requests to other servers: set the annotation ctrlmesh.kruise.io/egress and restart it, and 1 more; subset "blue" waits for the cluster',
    );
  });

  it("says that the cluster keeps its owner because a PlacementDecision is missing, which changes nothing of Ready", () => {
    const undecided = { ...app([]), missingDecision: "fleet-eu" };
    const { conditions = [] } = clusterStatus({ object, refused: undefined, unplanned: NONE, apps: [app([]), undecided], now });
    expect(conditions.map(({ type, status }) => `${type} ${status}`)).toContain("Ready True");
    expect(conditions.find(({ type }) => type === "Decided")).toMatchObject({
      status: "False",
      reason: "DecisionMissing",
      message:
        'shop: the namespace has no PlacementDecision with the label multicluster.x-k8s.io/decision-key=fleet-eu; subset "blue" keeps the cluster',
    });
  });

  it("keeps the owner in an app without a plan, and not in an app that is gone", () => {
    const before = {
      ...object,
      status: { owners: ["a-refused", "gone", "shop"].map((name) => ({ app: name, subset: "green" })) },
    };
    const { owners } = clusterStatus({
      object: before,
      refused: undefined,
      unplanned: new Set(["a-refused"]),
      apps: [app([])],
      now,
    });
    expect(owners).toEqual([
      { app: "a-refused", subset: "green" },
      { app: "shop", subset: "blue" },
    ]);
  });

  describe("whose namespaces are divided", () => {
    const upstream = { url: "https://eu.example" };
    const divided = (waits: readonly ClusterWait[], more: Partial<AppOfCluster> = {}): AppOfCluster => ({
      ...app(waits, true),
      route: { ...app([], true).route, owner: "", upstream },
      ...more,
    });
    const stateOf = (watched: NamespacesState, apps: readonly AppOfCluster[]) =>
      Object.fromEntries(
        clusterStatus({ object, refused: undefined, unplanned: NONE, apps, watched, now }).conditions?.map((each) => [
          each.type,
          each,
        ]) ?? [],
      );
    const LISTED: NamespacesState = { reason: "Listed", message: "" };
    const wait = (podName: string, cause: ClusterWait["cause"]): ClusterWait => ({
      podName,
      subset: "",
      cause,
      clusters: ["eu"],
    });

    it("needs them to be known for Ready, but not for Enforced", () => {
      expect(stateOf(LISTED, [divided([])])).toMatchObject({
        Ready: { status: "True", reason: "OneOwner" },
        NamespacesWatched: { status: "True", reason: "Listed" },
      });
      expect(stateOf({ reason: "SecretNotReadable", message: "bind a Role" }, [divided([])])).toMatchObject({
        Ready: { status: "False", reason: "SecretNotReadable", message: "bind a Role" },
        NamespacesWatched: { status: "False" },
        Enforced: { status: "True" },
      });
    });

    it("names a pod that the mesh does not limit before pods from which namespaces move", () => {
      const { Enforced } = stateOf(LISTED, [divided([wait("moves", "holds")])]);
      expect(Enforced).toMatchObject({
        reason: "Moving",
        message: "shop: pod moves has not given up the cluster yet; its namespaces that move wait for that",
      });
      const both = stateOf(LISTED, [divided([wait("moves", "holds"), wait("free", "not-enforced")])]);
      expect(both.Enforced).toMatchObject({
        reason: "PodsNotEnforcing",
        message: expect.stringMatching(/^shop: pod free .*, and 1 more/),
      });
    });

    it("waits for nothing while no app divides it", () => {
      expect(stateOf({ reason: "NotListedYet", message: "" }, [])).toMatchObject({
        Ready: { status: "Unknown", reason: "NotDivided" },
        NamespacesWatched: { status: "Unknown", reason: "NotDivided" },
      });
    });

    it("waits for nothing any more when the last app stops dividing it", () => {
      const facts = { refused: undefined, unplanned: NONE, now };
      const status = clusterStatus({ ...facts, object, apps: [divided([])], watched: LISTED });
      const gone = { reason: "NotListedYet", message: "" } as const;
      const { conditions } = clusterStatus({ ...facts, object: { ...object, status }, apps: [], watched: gone });
      expect(conditions?.find(({ type }) => type === "NamespacesWatched")).toMatchObject({ reason: "NotDivided" });
    });

    it("lists the 32 subsets with the most namespaces", () => {
      const rules = Array.from(
        { length: 40 },
        (_, at): RouteRule => ({
          kind: "subset",
          subset: `s-${at}`,
          resources: [],
          origin: "o",
        }),
      );
      const members = Object.fromEntries([
        ...rules.map((_, at) => [`n-${at}`, [at]]),
        ["last", [39]],
        ["rest", []],
        ["more", []],
        ["also", []],
      ]);
      const apps = [divided([], { table: table(rules, members as Record<string, number[]>) }), divided([], { app: "new" })];
      const { namespaces } = clusterStatus({ object, refused: undefined, unplanned: NONE, apps, watched: LISTED, now });
      expect(namespaces).toMatchObject([{ app: "shop", total: 44 }]);
      expect(namespaces?.[0]?.owned).toHaveLength(32);
      expect(namespaces?.[0]?.owned?.slice(0, 3)).toEqual([
        { subset: "default", count: 3 },
        { subset: "s-39", count: 2 },
        { subset: "s-0", count: 1 },
      ]);
    });
  });

  it("names the rules about namespaces that give nothing of a cluster with one owner", () => {
    const apps = [{ ...app([]), idleRules: ["subRules[a].match[0]", "subRules[a].match[1]"] }];
    const { conditions = [] } = clusterStatus({ object, refused: undefined, unplanned: NONE, apps, now });
    expect(conditions[0]?.message).toBe(
      "no pod of another subset can write to the cluster through its proxy; shop: subRules[a].match[0] and 1 more gives nothing here: namespaces are divided only with interception: Terminate",
    );
  });
});
