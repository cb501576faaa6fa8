// An app, as the page shows it. Pure. Each fact is from its objects and status.
import type { Condition } from "../../../api/conditions.ts";
import { shardingStatusSchema } from "../../../api/sharding-status.ts";
import { conditionOf, type FoundApp, frozenIn, pausedObjects } from "../../apps/apps.ts";
import { readFields } from "../../apps/read-status.ts";
import type { AppPart, Problem, ReadyState, ShardFacts } from "./parts.ts";

const SHARD_FIELDS = shardingStatusSchema.pick({ balance: true, rollout: true, gaps: true, overlaps: true, standby: true }).shape;

export function appPart(app: FoundApp): AppPart {
  const { kind, name, namespace, object, status = {} } = app;
  const { proxies, namespaces, subsets = [], handover, lastHandover, restart, conditions = [] } = status;
  const shards = readFields(SHARD_FIELDS, object.status);
  const hasShards = Object.keys(shards.status ?? {}).length > 0;
  return {
    part: "app",
    kind: kind.resource.kind,
    namespace,
    name,
    ready: readyState(conditionOf(app, "Ready"), object.metadata.generation),
    isPaused: pausedObjects(app).length > 0,
    frozen: frozenIn(app).map(({ cluster, namespace: place, reason }) => ({ cluster, namespace: place, reason })),
    proxies,
    namespaces,
    subsets,
    handover,
    lastHandover,
    restart,
    problems: problemsIn(conditions),
    shards: hasShards ? (shards.status as ShardFacts) : undefined,
    unread: [...app.unread, ...shards.unread],
  };
}

export function readyState(ready: Condition | undefined, generation: number | undefined): ReadyState {
  if (ready === undefined) return { status: "Unknown", reason: "NoStatus", message: "", isCurrent: false };
  const { status, reason, message, observedGeneration } = ready;
  return { status, reason, message, isCurrent: observedGeneration === generation };
}

/** The conditions that are False. Ready sums the others up, so it is left out beside them. */
export function problemsIn(conditions: readonly Condition[]): Problem[] {
  const bad = conditions.filter(({ status }) => status === "False");
  const others = bad.filter(({ type }) => type !== "Ready");
  return (others.length > 0 ? others : bad).map(({ type, reason, message, lastTransitionTime: since }) => ({
    type,
    reason,
    message,
    since,
  }));
}
