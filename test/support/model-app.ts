// One app for unit tests of the manager's decisions: the pods as on the API server, the proxies as in the registry, and the real
// plan and versions in between. The test delivers each message; nothing runs by itself.

import { CLUSTER_SCOPE } from "../../src/kube/place.ts";
import { NO_REPORTS } from "../../src/mesh/contract/messages.ts";
import type { AppPod } from "../../src/mesh/handover/app-pod.ts";
import { type Issue, nextIssue } from "../../src/mesh/handover/issue.ts";
import { type AppPlan, planApp } from "../../src/mesh/handover/plan-app.ts";
import { isDissolved, planDissolution } from "../../src/mesh/handover/plan-dissolution.ts";
import { type ProxyFacts, podKey } from "../../src/mesh/handover/proxy-facts.ts";
import { NO_CALLER_POLICY, readViewOf, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { ResourceMatch, RouteTable } from "../../src/mesh/ownership/table.ts";
import { viewOf } from "../../src/mesh/ownership/view-of.ts";
import { sharded as shardedRule, subset as subsetRule, table } from "./route-table.ts";

const APP = { namespace: "shop", name: "app" };

interface ModelPod {
  pod: AppPod;
  enforced: Snapshot | undefined;
  outstanding: Snapshot | undefined;
  wanted: Snapshot | undefined;
  isReported: boolean;
  /** The kubelet has not reported yet that the proxy serves. */
  isStatusLate: boolean;
  /** An older leader may have served the pod so recently that the pod's status does not count (see OlderPods). */
  isOlder: boolean;
}

/** The namespaces that each subset should own; all others belong to the default subset. */
type Wish = Readonly<Record<string, readonly string[]>>;

interface ModelAppOptions {
  readonly onLoss?: "Restart" | "InPlace";
  readonly subsets?: readonly string[];
  /** The resources that a sharded family names; default: the app is none. The cluster scope is one of its namespaces, as "". */
  readonly sharded?: readonly ResourceMatch[];
}

/** @param namespaces the existing namespaces; `wish` may name no others */
export function modelApp(
  namespaces: readonly string[],
  wish: Wish,
  { onLoss = "Restart", subsets = ["", "canary", "beta"], sharded = [] }: ModelAppOptions = {},
) {
  const tableOf = (of: Wish) => tableFor(known, of, sharded);
  const pods = new Map<string, ModelPod>();
  let known = [...namespaces];
  let asked = wish;
  let isPaused = false;
  let maxMovingPercent: number | undefined;
  let keptSubsets: readonly string[] | undefined;
  const young = new Set<string>();
  let deletion: { readonly specIsBad: boolean } | undefined;
  let issue: Issue | undefined;
  let routeVersion = 0;
  /** As in the status. */
  let ownersHashes: readonly string[] | undefined;

  const factsOf = (key: string): ProxyFacts | undefined => {
    const model = [...pods.values()].find(({ pod }) => podKey(pod) === key);
    if (model === undefined || !model.isReported || model.pod.proxy !== "own") return undefined;
    const { enforced, outstanding } = model;
    const version = Math.max(enforced?.version ?? 0, outstanding?.version ?? 0);
    const rest = { inDoubt: [], mayHoldMore: false, problems: {}, capabilities: new Set<string>(), ...NO_REPORTS };
    return { ...rest, connected: true, acknowledged: enforced, outstanding, version };
  };
  const appPods = () =>
    [...pods.values()].map(({ pod, enforced, isStatusLate, isOlder }) => {
      const saysSo = enforced !== undefined && !isStatusLate;
      return { ...pod, running: pod.running || isOlder || saysSo };
    });
  const plan = (): AppPlan => {
    const facts = { app: APP, words: undefined, pods: appPods(), factsOf };
    if (deletion !== undefined) {
      const lockName = deletion.specIsBad ? undefined : "lock";
      return planDissolution({ ...facts, lockName, namespaces: known.filter((name) => name !== CLUSTER_SCOPE) });
    }
    const common = {
      subsets,
      lockName: "lock",
      callers: NO_CALLER_POLICY,
      isPaused,
      maxMovingPercent,
      keptSubsets,
      retainsLosses: onLoss === "Restart",
    };
    return planApp({ ...facts, ...common, ownersHashes, isYoung: (name) => young.has(name), bySpec: tableOf(asked) });
  };
  const send = (model: ModelPod) => {
    if (model.outstanding === undefined && model.wanted?.digest !== model.enforced?.digest) model.outstanding = model.wanted;
  };
  const add = (name: string, of: string, more: Partial<AppPod>) => {
    const pod: AppPod = {
      namespace: APP.namespace,
      name,
      uid: name,
      subset: of,
      proxy: "own",
      running: false,
      ended: false,
      ready: true,
      terminating: false,
      controlled: true,
      ...more,
    };
    const nothing = { enforced: undefined, outstanding: undefined, wanted: undefined };
    pods.set(name, { pod, ...nothing, isReported: true, isStatusLate: false, isOlder: false });
  };
  const modelOf = (name: string): ModelPod => {
    const model = pods.get(name);
    if (model === undefined) throw new Error(`no pod has the name ${name}`);
    return model;
  };

  const app = {
    pod(name: string, of: string, more: Partial<AppPod> = {}) {
      add(name, of, more);
      return app;
    },
    /** A running pod without a proxy. */
    bare(name: string) {
      add(name, "", { proxy: "none", running: true });
      return app;
    },
    relabel(name: string, of: string) {
      modelOf(name).pod = { ...modelOf(name).pod, subset: of };
      return app;
    },
    gone(name: string) {
      pods.delete(name);
      return app;
    },
    wish(next: Wish, more: readonly string[] = []) {
      asked = next;
      known = [...known, ...more];
      return app;
    },
    /** Records that a namespace has just been created. */
    young(namespace: string) {
      young.add(namespace);
      return app;
    },
    pause(value: boolean) {
      isPaused = value;
      return app;
    },
    /** Undefined: no limit, or the moves are confirmed. */
    limitMoves(percent: number | undefined) {
      maxMovingPercent = percent;
      return app;
    },
    /** The subsets with which the limit keeps namespaces. */
    keepOnly(...names: readonly string[]) {
      keptSubsets = names;
      return app;
    },
    delete({ specIsBad = false } = {}) {
      deletion = { specIsBad };
    },
    /** Another manager becomes leader without any registration. Messages on their way are lost. */
    failOver() {
      issue = undefined;
      for (const model of pods.values())
        Object.assign(model, { outstanding: undefined, wanted: undefined, isReported: false, isOlder: true });
    },
    /** The pod's status does not yet show that the pod has started. */
    lateStatus(name: string) {
      modelOf(name).isStatusLate = true;
      return app;
    },
    /** Half a minute passes, so that every status is written and counts. */
    statusesWritten() {
      for (const model of pods.values()) Object.assign(model, { isStatusLate: false, isOlder: false });
      return app;
    },
    /** The pod's proxy registers a table that no manager has made, in the version after its own. */
    forge(name: string, wanted: Wish, more: Partial<RouteTable> = {}) {
      const model = modelOf(name);
      const { version } = app.enforced(name);
      const forged = { ...tableOf(wanted), ...more };
      const snapshot = { ...app.enforced(name), table: forged, version: version + 1, digest: "forged" };
      Object.assign(model, { enforced: snapshot, outstanding: undefined });
      return app;
    },
    report(name: string) {
      modelOf(name).isReported = true;
      return app;
    },
    /** One reconcile of the manager: it plans, assigns versions and sends. */
    reconcile() {
      const made = plan();
      issue = nextIssue(issue, routeVersion, made, appPods(), factsOf);
      routeVersion = issue.version;
      ownersHashes = made.ownersHashes;
      for (const model of pods.values()) {
        if (model.pod.proxy !== "own" || !model.isReported) continue;
        model.wanted = issue.snapshots.get(made.rulesFor(model.pod).digest);
        send(model);
      }
      return made;
    },
    /** The pod applies its messages and acknowledges them. */
    deliver(name: string) {
      const model = modelOf(name);
      if (model.outstanding === undefined) return;
      model.enforced = model.outstanding;
      model.outstanding = undefined;
      send(model);
    },
    /** Delivers everything until no message is on its way. */
    settle() {
      for (let round = 0; round < 20; round++) {
        app.reconcile();
        const busy = [...pods].filter(([, { outstanding }]) => outstanding !== undefined);
        if (busy.length === 0) return;
        for (const [name] of busy) while (modelOf(name).outstanding !== undefined) app.deliver(name);
      }
      throw new Error("messages never end");
    },
    plan,
    isDissolved: () => isDissolved(plan(), appPods(), factsOf),
    enforced(name: string): Snapshot {
      const { enforced } = modelOf(name);
      if (enforced === undefined) throw new Error(`pod ${name} enforces nothing`);
      return enforced;
    },
    /** The subsets of all pods that may write to the namespace at present. */
    writers(namespace: string): string[] {
      const found = [...pods.values()].flatMap(({ pod, enforced }) => {
        if (pod.proxy === "none") return [""];
        return enforced !== undefined && viewOf(enforced, "", "pods").ownershipOf(namespace) === "own" ? [enforced.subset] : [];
      });
      return [...new Set(found)].sort();
    },
    /** True if the pod's operator sees the namespace. */
    reads: (name: string, namespace: string, resource = "pods") =>
      readViewOf(viewOf(app.enforced(name), "", resource)).ownershipOf(namespace) === "own",
    /** True if the pod's operator is refused all of the resource: it sees nothing, and does not take it for deleted. */
    isRefused: (name: string, resource: string) => viewOf(app.enforced(name), "", resource).isMoving === true,
  };
  return app;
}

function tableFor(namespaces: readonly string[], wish: Wish, named: readonly ResourceMatch[]): RouteTable {
  const subsets = Object.keys(wish);
  const first = named.length === 0 ? [] : [shardedRule(...named)];
  const members = namespaces.map((name) => {
    const at = subsets.findIndex((each) => wish[each]?.includes(name));
    return [name, at < 0 ? [] : [first.length + at]] as const;
  });
  return table([...first, ...subsets.map((name) => subsetRule(name))], Object.fromEntries(members));
}
