// A mesh for unit tests of the status: a spec, namespaces, pods, and proxies that acknowledge at the request of the test. The plan is
// real, and the test controls the clock.

import type { AppStatus, RestartStatus } from "../../src/api/app-status.ts";
import type { VirtualAppSpec } from "../../src/api/virtual-app.ts";
import { compileNow } from "../../src/manager/apps/compile/compile-now.ts";
import { appStatus } from "../../src/manager/status/app-status.ts";
import type { StatusFacts } from "../../src/manager/status/facts.ts";
import { routeOf } from "../../src/manager/virtual-app/route-rules.ts";
import type { AppFacts } from "../../src/mesh/handover/app-facts.ts";
import type { AppPod } from "../../src/mesh/handover/app-pod.ts";
import { planApp } from "../../src/mesh/handover/plan-app.ts";
import type { ProxyFacts } from "../../src/mesh/handover/proxy-facts.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { proxyFacts } from "./pod-facts.ts";
import { specOf } from "./source-apps.ts";
import { VIRTUAL_APP_WORDS } from "./source-words.ts";

const APP = { namespace: "shop", name: "app" };

/** A spec that gives the namespaces to the subset "canary" and all others to the default subset. */
export function canarySpec(namespaces: readonly string[], route: Partial<VirtualAppSpec["route"]> = {}): VirtualAppSpec {
  const match = namespaces.map((name) => ({ namespaceRegex: `^${name}$` }));
  return {
    selector: { matchLabels: { component: "app" } },
    configuration: { controller: { leaderElectionName: "lock" } },
    route: { subRules: match.length === 0 ? [] : [{ name: "pilot", match }], ...route },
    subsets: [{ name: "canary", labels: { version: "v2" }, routeRules: match.length === 0 ? [] : ["pilot"] }],
  };
}

export interface StatusWorld {
  spec: VirtualAppSpec;
  generation: number;
  namespaces: string[];
  readonly pods: Map<string, AppPod>;
  /** The reports of the proxies. */
  readonly reports: Map<string, Partial<ProxyFacts>>;
  restart: RestartStatus | undefined;
  /** See StatusFacts. */
  labelsAfter: StatusFacts["labelsAfter"];
  /** See StatusFacts. */
  refusedPods: string;
  /** What the app divides of other clusters. Undefined: none. */
  clusters: Pick<AppFacts, "clusters" | "clusterTables" | "goneAbroad"> | undefined;
  /** The last written status, which a new manager reads. */
  status: AppStatus | undefined;
  nowMs: number;
  /** Reconciles once: plans, sends new snapshots, and writes the status. */
  reconcile(): AppStatus;
  /** The pod's proxy acknowledges its last snapshot. */
  ack(...pods: readonly string[]): void;
  /** All proxies acknowledge until no snapshot is new. */
  settle(): AppStatus;
  /** Every known proxy enforces its snapshot, and no other is on its way. */
  isEnforced(): boolean;
  /** A new manager, without registrations. */
  forget(): void;
  /** The proxies register again with the snapshots they enforce. */
  registration(...pods: readonly string[]): void;
}

export function createStatusWorld(spec: VirtualAppSpec, namespaces: readonly string[], pods: readonly AppPod[]): StatusWorld {
  const enforced = new Map<string, Snapshot>();
  const outstanding = new Map<string, Snapshot>();
  const wanted = new Map<string, Snapshot>();
  let known = new Set(pods.map(({ name }) => name));
  let version = 0;
  const versions = new Map<string, number>();

  const factsOf = (key: string): ProxyFacts | undefined => {
    const name = key.split("/")[1] ?? "";
    if (!known.has(name)) return undefined;
    return proxyFacts({
      acknowledged: enforced.get(name),
      outstanding: outstanding.get(name),
      version: enforced.get(name)?.version ?? 0,
      ...world.reports.get(name),
    });
  };

  // Like the registry: one snapshot at a time.
  const send = (name: string) => {
    const next = wanted.get(name);
    if (next === undefined || outstanding.has(name) || enforced.get(name)?.digest === next.digest) return;
    outstanding.set(name, next);
  };

  const world: StatusWorld = {
    spec,
    generation: 1,
    namespaces: [...namespaces],
    pods: new Map(pods.map((pod) => [pod.name, pod])),
    reports: new Map(),
    restart: undefined,
    labelsAfter: undefined,
    refusedPods: "",
    clusters: undefined,
    status: undefined,
    nowMs: Date.UTC(2026, 0, 1),
    reconcile() {
      const own = [...world.pods.values()];
      const bySpec = compileNow(
        routeOf(world.spec),
        world.namespaces.map((name) => ({ name, labels: {} })),
      );
      const plan = planApp({
        ...specOf(world.spec),
        ...world.clusters,
        app: APP,
        words: VIRTUAL_APP_WORDS,
        bySpec,
        pods: own,
        factsOf,
        ownersHashes: world.status?.ownersHashes,
      });
      wanted.clear();
      for (const pod of own) {
        if (!known.has(pod.name) || pod.proxy !== "own") continue;
        const rules = plan.rulesFor(pod);
        const number = versions.get(rules.digest) ?? ++version;
        versions.set(rules.digest, number);
        wanted.set(pod.name, { ...rules, version: number });
        send(pod.name);
      }
      world.status = appStatus({
        generation: world.generation,
        previous: world.status,
        pods: own,
        factsOf,
        plan,
        version,
        lockName: "lock",
        words: VIRTUAL_APP_WORDS,
        restart: world.restart,
        labelsAfter: world.labelsAfter,
        refusedPods: world.refusedPods,
        now: new Date(world.nowMs).toISOString(),
      });
      return world.status;
    },
    ack(...names) {
      for (const name of names) {
        const snapshot = outstanding.get(name);
        if (snapshot !== undefined) enforced.set(name, snapshot);
        outstanding.delete(name);
        send(name);
      }
    },
    settle() {
      for (let times = 0; times < 10; times++) {
        world.reconcile();
        world.ack(...world.pods.keys());
      }
      return world.reconcile();
    },
    isEnforced: () => [...wanted].every(([name, { digest }]) => enforced.get(name)?.digest === digest && !outstanding.has(name)),
    forget() {
      known = new Set();
      outstanding.clear();
    },
    registration(...names) {
      for (const name of names) known.add(name);
    },
  };
  return world;
}
