// The status of a MeshCluster. Pure.
import { MAX_CLUSTER_OWNERS, type MeshCluster, type MeshClusterStatus } from "../../api/mesh-cluster.ts";
import { DECISION_KEY_LABEL } from "../../api/placement-decision.ts";
import { plainText } from "../../base/plain-text.ts";
import type { ClusterTrouble, ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { subsetDisplayName, subsetText } from "../../mesh/ownership/words.ts";
import { withTransitionTime } from "../../runtime/status-writer.ts";
import type { AcceptedClusters } from "../apps/accept-clusters.ts";

/** What one app says about the cluster. */
export interface AppOfCluster {
  readonly app: string;
  readonly route: ClusterRoute;
  readonly waits: readonly ClusterWait[];
  readonly troubles: readonly ClusterTrouble[];
  /** The key of the missing PlacementDecision because of which the cluster keeps its owner. Absent: none is missing. */
  readonly missingDecision?: string | undefined;
}

interface StatusFacts {
  readonly object: MeshCluster;
  readonly refused: ReturnType<AcceptedClusters["refused"]["get"]>;
  /** By name. */
  readonly apps: readonly AppOfCluster[];
  /** The apps of the namespace that have no plan, for example because their spec is refused. */
  readonly unplanned: ReadonlySet<string>;
  /** RFC 3339 */
  readonly now: string;
}

/** The reasons of each condition, a closed set. */
export const CLUSTER_REASONS = {
  Identified: ["Unique", "Invalid", "AlreadyKnown", "TooMany"],
  Enforced: ["OneOwner", "Moving", "PodsNotEnforcing", "NotDivided", "NotIntercepted"],
  Decided: ["ByRules", "DecisionMissing", "NotDivided"],
  Reachable: ["NoFailures", "Unreachable", "NotDivided", "NotIntercepted"],
} as const;

interface Verdict {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: (typeof CLUSTER_REASONS)[keyof typeof CLUSTER_REASONS][number];
  readonly message: string;
}

const MAX_WAITING = 16;
const MAX_MESSAGE_CHARS = 1_024;

const CAUSES: Readonly<Record<ClusterWait["cause"], string>> = {
  holds: "has not given up the cluster yet",
  unreported: "has not reported to this manager yet",
  unstarted: "does not start, so its proxy does not report",
  "no-proxy": "has no proxy: restart it",
  "pod-gone": "was removed, and its last requests may still run",
  "just-listed": "may have been removed just before this manager became the leader",
  "not-enforced":
    "has a proxy that does not see requests to other servers: set the annotation ctrlmesh.kruise.io/egress and restart it",
};

export function clusterStatus({ object, refused, apps, unplanned, now }: StatusFacts): MeshClusterStatus {
  const { generation = 0 } = object.metadata;
  const identified: Verdict = refused
    ? { status: "False", ...refused }
    : {
        status: "True",
        reason: "Unique",
        message: "no older MeshCluster of the namespace has one of its servers, its clusterID or an object of its discoveredBy",
      };
  const enforced = enforcedVerdict(apps);
  const settled: Verdict = enforced.reason === "NotIntercepted" ? { ...enforced, status: "True" } : enforced;
  const ready = [identified, enforced].find(({ status }) => status === "False") ?? settled;
  const previous = object.status?.conditions ?? [];
  const conditions = Object.entries({
    Ready: ready,
    Identified: identified,
    Enforced: enforced,
    Decided: decidedVerdict(apps),
    Reachable: reachableVerdict(apps, enforced),
  }).map(([type, verdict]) => {
    const before = previous.find((each) => each.type === type);
    const message = plainText(verdict.message, MAX_MESSAGE_CHARS);
    return withTransitionTime({ type, ...verdict, message, observedGeneration: generation }, before, now);
  });
  const waitingOn = [...new Set(apps.flatMap(({ waits }) => waits.map(podOf)))].slice(0, MAX_WAITING);
  return {
    observedGeneration: generation,
    owners: ownersOf(apps, unplanned, object),
    ...(waitingOn.length === 0 ? {} : { waitingOn }),
    conditions,
  };
}

/** The pods of an app without a plan keep their routes, so the app keeps its owner. */
function ownersOf(apps: readonly AppOfCluster[], unplanned: ReadonlySet<string>, { status }: MeshCluster) {
  const planned = apps.map(({ app, route }) => ({ app, subset: subsetDisplayName(route.owner) }));
  const kept = (status?.owners ?? []).filter(({ app }) => unplanned.has(app));
  return [...planned, ...kept].sort((a, b) => (a.app < b.app ? -1 : 1)).slice(0, MAX_CLUSTER_OWNERS);
}

/** Of a missing PlacementDecision nobody knows which clusters it would name. */
function decidedVerdict(apps: readonly AppOfCluster[]): Verdict {
  if (apps.length === 0)
    return { status: "Unknown", reason: "NotDivided", message: "no app of the namespace divides this cluster" };
  const undecided = apps.find(({ missingDecision }) => missingDecision !== undefined);
  if (undecided === undefined)
    return { status: "True", reason: "ByRules", message: "the rules of each app say who owns the cluster" };
  const { app, missingDecision, route } = undecided;
  const message = `${app}: the namespace has no PlacementDecision with the label ${DECISION_KEY_LABEL}=${missingDecision}; ${subsetText(route.owner)} keeps the cluster`;
  return { status: "False", reason: "DecisionMissing", message };
}

function enforcedVerdict(apps: readonly AppOfCluster[]): Verdict {
  if (apps.length === 0) {
    const message = "no app of the namespace divides this cluster, so every pod may write to it";
    return { status: "Unknown", reason: "NotDivided", message };
  }
  for (const { app, route, waits } of apps) {
    const [first] = waits;
    if (first === undefined) continue;
    const others = waits.length > 1 ? `, and ${waits.length - 1} more` : "";
    const waiting = route.isFenced
      ? `${subsetText(route.owner)} waits for the cluster`
      : `${subsetText(route.owner)} keeps the cluster`;
    const message = `${app}: pod ${podOf(first)} ${CAUSES[first.cause]}${others}; ${waiting}`;
    return { status: "False", reason: route.isFenced ? "Moving" : "PodsNotEnforcing", message };
  }
  if (apps.some(({ route }) => route.isOpen)) {
    const message =
      "interception is None: only pods of the owner find the cluster, but the mesh does not limit connections to it";
    return { status: "Unknown", reason: "NotIntercepted", message };
  }
  return { status: "True", reason: "OneOwner", message: "no pod of another subset can write to the cluster through its proxy" };
}

/** By the last connections of the owners' pods. Their proxies see whether a connection opens, but not what the server answers. */
function reachableVerdict(apps: readonly AppOfCluster[], enforced: Verdict): Verdict {
  if (enforced.reason === "NotDivided" || enforced.reason === "NotIntercepted") return { ...enforced, status: "Unknown" };
  for (const { app, troubles } of apps) {
    const [first] = troubles;
    if (first === undefined) continue;
    const others = troubles.length > 1 ? `, and ${troubles.length - 1} more` : "";
    return { status: "False", reason: "Unreachable", message: `${app}: pod ${first.podName}${others}: ${first.reason}` };
  }
  return { status: "True", reason: "NoFailures", message: "no pod of an owner reports that its connections fail" };
}

function podOf({ podName }: ClusterWait): string {
  return podName === "" ? "(unknown)" : podName;
}
