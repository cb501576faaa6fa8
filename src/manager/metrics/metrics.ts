// The manager's own metrics. Invariant: labels name the mesh's objects, subsets and states, never namespaces of
// tenants or pods, so their number is bounded.
import type { AppStatus } from "../../api/app-status.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import type { Clock } from "../../base/clock.ts";
import { Counter, Gauge, Histogram, type Registry } from "../../base/metrics.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import type { App, AppRef, Apps } from "../apps/app.ts";
import type { PolicyObject } from "../policies/policy-kind.ts";
import { ageMs, conditionOf } from "../status/facts.ts";
import { addConditionMetrics, type ConditionedKind } from "./condition-metrics.ts";
import { addExpiryMetric } from "./expiry-metric.ts";
import { addShardMetrics, createShardMoves, type ShardMoves } from "./shard-metrics.ts";

export interface ManagerMetrics {
  /** @param seconds from sending a snapshot to its acknowledgement */
  snapshotAcknowledged(seconds: number): void;
  statusWritten(before: AppStatus | undefined, after: AppStatus, nowMs: number): void;
  /** A new table gives or takes namespaces of these subsets. */
  moved(app: AppRef, moves: ReadonlyMap<string, ShardMoves>): void;
  /** Adds the gauges. Call once, when the parts exist. */
  readFrom(sources: MetricSources): void;
}

interface MetricSources {
  readonly registry: { readonly pods: Iterable<string>; facts(pod: string): ProxyFacts | undefined };
  readonly apps: Pick<Apps, "get" | "list">;
  readonly policies: readonly { readonly kind: string; list(): readonly PolicyObject[] }[];
  /** All kinds whose objects have conditions, the policies too. */
  readonly kinds: readonly ConditionedKind[];
  readonly clusters: () => readonly MeshCluster[];
  readonly isLeader: () => boolean;
  readonly clock: Pick<Clock, "now">;
}

// A handover without delays takes tens of milliseconds. A handover that waits for a user takes hours.
const HANDOVER_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200];
const ACK_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function createManagerMetrics({ metricsRegistry }: { readonly metricsRegistry: Registry }): ManagerMetrics {
  const registers = [metricsRegistry];
  const handovers = new Counter({
    name: "ctrlmesh_manager_handovers_total",
    help: "Handovers that were finished, by result: moved or undone.",
    labelNames: ["result"],
    registers,
  });
  for (const result of ["moved", "undone"]) handovers.inc({ result }, 0);
  const phases = new Histogram({
    name: "ctrlmesh_manager_handover_phase_seconds",
    help: "How long the phases of handovers took.",
    labelNames: ["phase"],
    buckets: HANDOVER_BUCKETS,
    registers,
  });
  const noWriter = new Histogram({
    name: "ctrlmesh_manager_no_writer_seconds",
    help: "How long nobody could write to a namespace, at most, in each handover.",
    buckets: HANDOVER_BUCKETS,
    registers,
  });
  const acknowledgements = new Histogram({
    name: "ctrlmesh_manager_snapshot_ack_seconds",
    help: "Time from sending a snapshot to its acknowledgement, writes in flight included.",
    buckets: ACK_BUCKETS,
    registers,
  });

  const moves = createShardMoves();

  return {
    moved: moves.add,
    snapshotAcknowledged: (seconds) => acknowledgements.observe(seconds),
    statusWritten(before, after, nowMs) {
      const ran = before?.handover;
      if (ran !== undefined && (after.handover?.phase !== ran.phase || after.handover.since !== ran.since)) {
        phases.observe({ phase: ran.phase }, Math.max(0, nowMs - Date.parse(ran.since)) / 1000);
      }
      const last = after.lastHandover;
      if (last === undefined || last.finishedAt === before?.lastHandover?.finishedAt) return;
      handovers.inc({ result: last.result.toLowerCase() });
      if (last.noWriterSeconds !== undefined) noWriter.observe(last.noWriterSeconds);
    },
    readFrom(sources) {
      addGauges(registers, sources);
      addConditionMetrics(registers, () => (sources.isLeader() ? sources.kinds : []));
      addExpiryMetric(registers, () => (sources.isLeader() ? sources.clusters() : []));
      addShardMetrics(registers, moves, () => (sources.isLeader() ? sources.apps.list() : []));
    },
  };
}

function addGauges(registers: Registry[], { registry, apps, policies, isLeader, clock }: MetricSources): void {
  type Described = Pick<ConstructorParameters<typeof Gauge>[0], "name" | "help" | "labelNames">;
  const gauge = (described: Described, read: (values: Gauge) => void) =>
    new Gauge({
      ...described,
      registers,
      collect() {
        this.reset();
        read(this);
      },
    });
  // Only the leader reports these, or a sum over the replicas would count them twice.
  const ledApps = () =>
    (isLeader() ? apps.list() : []).map((app) => ({ labels: labelsOf(app), status: app.object.status ?? {} }));
  const leader = { name: "ctrlmesh_manager_leader", help: "1 while this replica leads." };
  gauge(leader, (values) => values.set(isLeader() ? 1 : 0));
  const proxies = {
    name: "ctrlmesh_manager_proxies",
    help: "Proxies by app, subset and state.",
    labelNames: ["kind", "namespace", "name", "subset", "state"],
  };
  gauge(proxies, (values) => {
    for (const pod of registry.pods) {
      const facts = registry.facts(pod);
      const snapshot = facts?.acknowledged ?? facts?.outstanding;
      if (facts === undefined || snapshot === undefined) continue;
      const { namespace, name } = snapshot.app;
      const app = apps.get(name, namespace);
      const labels = app === undefined ? { kind: "", namespace, name } : labelsOf(app);
      values.inc({ ...labels, subset: subsetDisplayName(snapshot.subset), state: stateOf(facts) });
    }
  });
  const owned = {
    name: "ctrlmesh_manager_owned_namespaces",
    help: "Namespaces by owning subset, as the leader last wrote it.",
    labelNames: ["kind", "namespace", "name", "subset"],
  };
  gauge(owned, (values) => {
    for (const { labels, status } of ledApps()) {
      for (const { name, namespaces } of status.subsets ?? [])
        values.set({ ...labels, subset: subsetDisplayName(name) }, namespaces);
    }
  });
  const conflicting = {
    name: "ctrlmesh_manager_conflicting_namespaces",
    help: "Namespaces that pods of two subsets may write to, because one is not under the app's control; should be 0.",
    labelNames: ["kind", "namespace", "name"],
  };
  gauge(conflicting, (values) => {
    for (const { labels, status } of ledApps()) values.set(labels, status.namespaces?.conflicting ?? 0);
  });
  const frozen = {
    name: "ctrlmesh_manager_frozen_namespaces",
    help: "Namespaces in which no pod of the app may write, since its spec has frozen them.",
    labelNames: ["kind", "namespace", "name"],
  };
  gauge(frozen, (values) => {
    for (const { labels, status } of ledApps()) values.set(labels, status.namespaces?.frozen ?? 0);
  });
  const noWriter = {
    name: "ctrlmesh_manager_no_writer_now_seconds",
    help: "For how long no pod has been able to write to namespaces that move now, the longest of the app; 0 if a pod can.",
    labelNames: ["kind", "namespace", "name"],
  };
  gauge(noWriter, (values) => {
    const now = new Date(clock.now()).toISOString();
    for (const { labels, status } of ledApps()) values.set(labels, noWriterMs(status, now) / 1000);
  });
  const states = {
    name: "ctrlmesh_manager_policies",
    help: "Traffic policies by kind and state: enforced by all their proxies, behind in some, or invalid.",
    labelNames: ["kind", "state"],
  };
  gauge(states, (values) => {
    for (const { kind, list } of isLeader() ? policies : []) {
      for (const object of list()) values.inc({ kind, state: policyStateOf(object) });
    }
  });
}

/** The object that has the app's status, under the name by which kubectl finds it. */
function labelsOf({ ref, object }: Pick<App, "ref" | "object">): { kind: string; namespace: string; name: string } {
  return { kind: ref.kind, namespace: ref.namespace, name: object.metadata.name ?? ref.name };
}

/** The status has the beginning, so the time goes on under the next manager, for as long as the handover hangs. */
function noWriterMs({ subsets = [] }: AppStatus, now: string): number {
  return Math.max(0, ...subsets.map(({ waitingSince = now }) => ageMs(waitingSince, now)));
}

function policyStateOf({ status }: PolicyObject): string {
  if (conditionOf(status, "Accepted")?.status === "False") return "invalid";
  return conditionOf(status, "Synced")?.status === "False" ? "behind" : "enforced";
}

function stateOf({ connected, outstanding, problems }: ProxyFacts): string {
  if (!connected) return "disconnected";
  if (Object.keys(problems).length > 0) return "rejected";
  return outstanding === undefined ? "synced" : "pending";
}
