// A cluster as data, for the dashboard: apps in which something moves, waits and has failed, and an API server that can go away.

import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import {
  CIRCUIT_BREAKERS,
  FAULT_INJECTIONS,
  OWNERSHIP_SLICES,
  SHARDING_CONFIGS,
  TRAFFIC_POLICIES,
  VIRTUAL_APPS,
} from "../../src/api/resources.ts";
import { systemClock } from "../../src/base/clock.ts";
import { MeshError } from "../../src/base/errors.ts";
import { openDashboard } from "../../src/cli/dashboard/open-dashboard.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { type FakeObject, startCli } from "./cli.ts";

export type DashboardWorld = Awaited<ReturnType<typeof startDashboard>>;

interface Options {
  readonly pods?: readonly FakeObject[];
  /** By verb and resource: what the user may not do, or what is not there. */
  readonly refusals?: ReadonlyMap<string, Error>;
}

/** Opens the dashboard of all namespaces. */
export async function startDashboard({ pods = [], refusals = new Map() }: Options = {}) {
  const cli = startCli([...pods]);
  const client = cli.watched;
  let isAway = false;
  const failIfAway = () => {
    if (isAway) throw new MeshError("KUBE_UNREACHABLE", "talking to the API server at 127.0.0.1:6443");
  };
  client.before = ({ verb, resource }) => {
    failIfAway();
    const refusal = refusals.get(`${verb} ${resource}`);
    if (refusal !== undefined) throw refusal;
  };
  client.request = async () => failIfAway();
  const { url, close } = await openDashboard({
    cluster: cli.cluster,
    namespace: undefined,
    access: ["--context=prod"],
    port: 0,
    clock: systemClock,
  });
  return {
    cli,
    client,
    url,
    close,
    put: (resource: object, object: object) => client.put(resource as Resource, object as KubeObject),
    away() {
      isAway = true;
      client.endWatches(new MeshError("KUBE_UNREACHABLE", "talking to the API server at 127.0.0.1:6443"));
    },
    back() {
      isAway = false;
    },
  };
}

const since = (secondsAgo: number) => new Date(Date.now() - secondsAgo * 1_000).toISOString();

const condition = (type: string, status: string, reason: string, message = "", secondsAgo = 60) => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 1,
  lastTransitionTime: since(secondsAgo),
});

const READY = condition("Ready", "True", "InSync");

const named = (namespace: string, name: string) => ({ metadata: { namespace, name, generation: 1 } });

/** Names of namespaces, as companies have them. */
export function teamNames(count: number, prefix = "team"): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${String(at).padStart(4, "0")}`);
}

/** A slice of the app ops/shop: a namespace moves from default to canary. */
export function shopSlice(moved: readonly string[], moving: readonly string[], defaults: readonly string[]) {
  const place = (state: string, subset: string, namespaces: readonly string[], from?: string) => ({
    state,
    owners: [{ subset }],
    since: since(state === "Moving" ? 12 : 7_200),
    namespaces,
    ...(from !== undefined && { from: [from] }),
  });
  const ownership = [
    place("Owned", "default", defaults.slice(1)),
    place("Frozen", "default", defaults.slice(0, 1)),
    place("Owned", "canary", moved),
    ...(moving.length === 0 ? [] : [place("Moving", "canary", moving, "default")]),
    { state: "Unowned", since: since(90_000), namespaces: ["kube-system"] },
  ];
  return {
    ...named("ops", "shop-0"),
    app: "shop",
    places: defaults.length + moved.length + moving.length + 1,
    moving: moving.length,
    ownership,
  };
}

export function shopApp(handover: object | undefined = HANDOVER) {
  return {
    ...named("ops", "shop"),
    spec: { route: { frozen: { "team-0000": "restore of a backup, until Ada says so" } } },
    status: {
      proxies: { total: 3, connected: 3, synced: handover === undefined ? 3 : 1 },
      namespaces: { total: 128, moving: handover === undefined ? 0 : 1, held: 0 },
      subsets: [
        { name: "default", namespaces: 117, readyPods: 2, pods: 2, lock: "shop-lock", leader: "shop-0" },
        { name: "canary", namespaces: 10, readyPods: 1, pods: 1, lock: "shop-lock---canary", leader: "shop-canary-0" },
      ],
      handover,
      lastHandover: {
        from: "default",
        to: "canary",
        namespaces: 4,
        finishedAt: since(5_400),
        noWriterSeconds: 0.21,
        result: "Moved",
      },
      conditions: [READY],
    },
  };
}

const HANDOVER = {
  from: "default",
  to: "canary",
  phase: "Draining",
  since: since(12),
  startedAt: since(14),
  namespaces: 1,
  done: 1,
  total: 2,
  waitingOn: [{ namespace: "team-0042", pod: "shop-1", reason: "WriteInFlight", since: since(12) }],
};

/** What an on-call engineer may find: a move, a pause, a shard without pods, a breaker, a fault that somebody left on. */
export function putBusyCluster({ put }: Pick<DashboardWorld, "put">): void {
  put(VIRTUAL_APPS, shopApp());
  put(
    OWNERSHIP_SLICES,
    shopSlice(
      teamNames(10, "canary"),
      ["team-0042"],
      teamNames(118).filter((name) => name !== "team-0042"),
    ),
  );
  put(VIRTUAL_APPS, mailApp());
  put(SHARDING_CONFIGS, ledgerRoot());
  put(OWNERSHIP_SLICES, ledgerSlice());
  put(CIRCUIT_BREAKERS, openBreaker());
  put(FAULT_INJECTIONS, activeFault());
  put(TRAFFIC_POLICIES, {
    ...named("ops", "shop-limits"),
    status: { mode: "Enforce", targets: { total: 3, synced: 3, opened: 0 }, conditions: [READY] },
  });
}

function mailApp() {
  return {
    ...named("mail", "postman"),
    spec: { route: { paused: true } },
    status: {
      proxies: { total: 2, connected: 2, synced: 2 },
      namespaces: { total: 40, moving: 0, held: 0, kept: 3 },
      subsets: [{ name: "default", namespaces: 40, readyPods: 2, pods: 2, lock: "postman", leader: "postman-1" }],
      handover: { phase: "Paused", since: since(93_600), namespaces: 3, done: 2, total: 2 },
      conditions: [
        READY,
        condition("Converged", "False", "Paused", "3 namespaces keep their owner while the app is paused", 93_600),
      ],
    },
  };
}

const SHARDS = [63, 61, 60, 62, 64, 58, 0, 61];

function ledgerRoot() {
  const subsets = SHARDS.map((namespaces, at) => ({
    name: `ledger-${at}`,
    namespaces,
    readyPods: namespaces === 0 ? 0 : 1,
    pods: 1,
    lock: `ledger-${at}`,
    ...(namespaces === 0 ? { reason: "SubsetWithoutPods", waitingSince: since(312) } : { leader: `ledger-${at}` }),
  }));
  const message = 'shard "ledger-6" has no ready pod: see kubectl describe pod ledger-6 -n payments';
  return {
    ...named("payments", "ledger"),
    spec: {},
    status: {
      family: "ledger",
      proxies: { total: 8, connected: 7, synced: 7, awaySince: since(330) },
      namespaces: { total: 429, moving: 0, held: 0 },
      subsets,
      balance: { largest: 64, smallest: 0, mean: 53.63, skew: 1.19 },
      conditions: [
        condition("Ready", "False", "SubsetWithoutPods"),
        condition("PodsReady", "False", "SubsetWithoutPods", message, 312),
      ],
    },
  };
}

function ledgerSlice() {
  const ownership = SHARDS.flatMap((count, at) =>
    count === 0
      ? []
      : [
          {
            state: "Owned",
            owners: [{ subset: `ledger-${at}` }],
            since: since(86_400),
            namespaces: teamNames(count, `acct-${at}`),
          },
        ],
  );
  return { ...named("payments", "ledger-0"), app: "ledger", places: 429, moving: 0, ownership };
}

function openBreaker() {
  const snapshot = {
    name: "deletes",
    state: "Opened",
    cause: "31 deletes of pods in 60 s, at most 30",
    lastTransitionTime: since(1_900),
  };
  return {
    ...named("ops", "shop-deletes"),
    status: {
      mode: "Enforce",
      targets: { total: 3, synced: 3, opened: 1 },
      targetStatus: [{ podName: "shop-1", limitingSnapshots: [snapshot] }],
      conditions: [READY, condition("Open", "True", "Opened", "", 1_900)],
    },
  };
}

function activeFault() {
  return {
    ...named("mail", "slow-api"),
    status: {
      mode: "Enforce",
      targets: { total: 2, synced: 2, opened: 0 },
      conditions: [READY, condition("Active", "True", "Active", "delays 5 % of the requests", 14_400)],
    },
  };
}

/** Pods of the app ops/shop. */
export function shopPods(): FakeObject[] {
  return ["shop-0", "shop-1"].map((name) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: "ops", name, labels: { [INJECTED_LABEL]: "shop" } },
    status: { phase: "Running" },
  })) as unknown as FakeObject[];
}

/** What their sidecars have seen. */
export function shopRequests() {
  const request = (verb: string, resource: string, count: number, more: object = {}) =>
    Array.from({ length: count }, (_, at) => ({
      method: "GET",
      code: 200,
      seconds: 0.002 + at / 1e4,
      decision: "forwarded",
      verb,
      resource,
      namespace: "team-0001",
      ...more,
    }));
  return {
    requests: [
      ...request("get", "configmaps", 41),
      ...request("patch", "deployments", 12, { group: "apps" }),
      ...request("delete", "pods", 3, {
        code: 403,
        decision: "refused",
        reason: "NotOwner",
        name: "web-0",
        namespace: "canary-0001",
      }),
      ...request("watch", "configmaps", 2),
    ],
  };
}
