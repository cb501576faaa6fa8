// An app as `-o json` has it. Each fact is from the objects and the status.
import type { ShownApp } from "./app-lines.ts";
import { conditionOf, frozenIn, pausedObjects } from "./apps.ts";
import { type ClusterState, ownerIn } from "./cluster-states.ts";

/** An app for programs. */
export function appItem(app: ShownApp): object {
  const { kind, name, namespace, object, unread } = app;
  const { status, reason, message, observedGeneration } = conditionOf(app, "Ready") ?? {};
  const { subsets = [], handover, restart, proxies, namespaces } = app.status ?? {};
  const ready = { status: status ?? "Unknown", reason, message, isCurrent: observedGeneration === object.metadata.generation };
  const paused = pausedObjects(app).length > 0;
  const frozen = frozenIn(app).map(({ cluster, namespace: place, reason: why }) => ({ cluster, namespace: place, reason: why }));
  return {
    kind: kind.resource.kind,
    namespace,
    name,
    ready,
    paused,
    frozen,
    proxies,
    namespaces,
    subsets,
    handover,
    restart,
    clusters: app.clusters?.map((state) => clusterItem(app.name, state)),
    unread,
  };
}

function clusterItem(app: string, state: ClusterState): object {
  const { name, waitingOn, conditions } = state;
  const { status, reason, message } = conditions.find(({ type }) => type === "Ready") ?? {};
  return { name, subset: ownerIn(state, app), ready: { status: status ?? "Unknown", reason, message }, waitingOn };
}
