// The status of a MeshCluster. Pure.
import { MAX_CLUSTER_OWNERS, MAX_COUNTED_SUBSETS, type MeshCluster, type MeshClusterStatus } from "../../api/mesh-cluster.ts";
import { DECISION_KEY_LABEL } from "../../api/placement-decision.ts";
import { plainText } from "../../base/plain-text.ts";
import type { ClusterTrouble, ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { countNamespaces } from "../../mesh/ownership/place-lists.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { subsetDisplayName, subsetText } from "../../mesh/ownership/words.ts";
import { withTransitionTime } from "../../runtime/status-writer.ts";
import type { AcceptedClusters } from "../apps/accept-clusters.ts";
import { CLUSTER_WAIT_WORDS } from "../apps/cluster-wait-words.ts";
import { countByHolder } from "../apps/count-by-holder.ts";
import type { CredentialEnd } from "../cluster-namespaces/credential-ends.ts";
import type { NamespacesState } from "../cluster-namespaces/namespaces-state.ts";
import { credentialsVerdict, earliestExpiry } from "./credentials-verdict.ts";
import { keptVerdicts } from "./kept-verdicts.ts";

/** What one app says about the cluster. */
export interface AppOfCluster {
  readonly app: string;
  readonly route: ClusterRoute;
  readonly waits: readonly ClusterWait[];
  readonly troubles: readonly ClusterTrouble[];
  /** The key of the missing PlacementDecision because of which the cluster keeps its owner. Absent: none is missing. */
  readonly missingDecision?: string | undefined;
  /** The owners inside a cluster whose namespaces are divided, without fences. Absent until they are known. */
  readonly table?: RouteTable | undefined;
  /** The rules that match the cluster and give nothing of it, since they are about namespaces. Absent: none. */
  readonly idleRules?: readonly string[] | undefined;
}

export interface StatusFacts {
  readonly object: MeshCluster;
  readonly refused: ReturnType<AcceptedClusters["refused"]["get"]>;
  /** By name. */
  readonly apps: readonly AppOfCluster[];
  /** The apps of the namespace that have no plan, for example because their spec is refused. */
  readonly unplanned: ReadonlySet<string>;
  /** Whether the manager knows the cluster's namespaces. Absent: they are not divided. */
  readonly watched?: NamespacesState | undefined;
  /** When its certificates and the manager's token end. Only with `watched`. */
  readonly ends?: readonly CredentialEnd[] | undefined;
  /** The manager has not known of some pods, or of the namespaces, for so long that the status says so. */
  readonly isLongUnheard?: boolean | undefined;
  /** RFC 3339 */
  readonly now: string;
}

/** The reasons of each condition, a closed set. */
export const CLUSTER_REASONS = {
  Identified: ["Unique", "Invalid", "AlreadyKnown", "TooMany"],
  NamespacesWatched: [
    "Listed",
    "NotListedYet",
    "SecretNotReadable",
    "KubeconfigRefused",
    "Forbidden",
    "Unreachable",
    "TooMany",
    "NotDivided",
  ],
  Enforced: ["OneOwner", "Moving", "PodsNotEnforcing", "NotDivided", "NotIntercepted"],
  CredentialsValid: ["Valid", "ExpiringSoon", "Expired", "NotKnown"],
  Decided: ["ByRules", "DecisionMissing", "NotDivided"],
  Reachable: ["NoFailures", "Unreachable", "NotDivided", "NotIntercepted"],
} as const;

interface Verdict {
  readonly status: "True" | "False" | "Unknown";
  /** A verdict that is kept may have a reason of another version. */
  readonly reason: (typeof CLUSTER_REASONS)[keyof typeof CLUSTER_REASONS][number] | (string & {});
  readonly message: string;
}

const MAX_WAITING = 16;
const MAX_MESSAGE_CHARS = 1_024;

export function clusterStatus({
  object,
  refused,
  apps,
  unplanned,
  watched,
  ends = [],
  isLongUnheard,
  now,
}: StatusFacts): MeshClusterStatus {
  const { generation = 0 } = object.metadata;
  const { owners } = ownersOf(apps, unplanned, object);
  const kept = isLongUnheard ? {} : keptVerdicts({ status: object.status, generation, owners, apps, watched });
  const identified: Verdict = refused
    ? { status: "False", ...refused }
    : {
        status: "True",
        reason: "Unique",
        message: "no older MeshCluster of the namespace has one of its servers, its clusterID or an object of its discoveredBy",
      };
  const enforced = kept.Enforced ?? enforcedVerdict(apps);
  const listed = kept.NamespacesWatched ?? (watched && watchedVerdict(watched, enforced));
  const credentials = credentialsVerdict(ends, Date.parse(now));
  // Before the manager has seen all of them, the others say nothing of the first that ends.
  const keptCredentials = credentials.status === "False" ? undefined : kept.CredentialsValid;
  const expiry = keptCredentials === undefined ? earliestExpiry(ends) : object.status?.earliestExpiry;
  const settled: Verdict = enforced.reason === "NotIntercepted" && isHidden(apps) ? { ...enforced, status: "True" } : enforced;
  const ready = [identified, listed, enforced].find((verdict) => verdict?.status === "False") ?? settled;
  const previous = object.status?.conditions ?? [];
  const conditions = Object.entries({
    Ready: ready,
    Identified: identified,
    ...(listed && { NamespacesWatched: listed }),
    Enforced: enforced,
    Decided: decidedVerdict(apps),
    ...(watched && { CredentialsValid: keptCredentials ?? credentials }),
    Reachable: kept.Reachable ?? reachableVerdict(apps, enforced),
  }).map(([type, verdict]) => {
    const before = previous.find((each) => each.type === type);
    const message = plainText(verdict.message, MAX_MESSAGE_CHARS);
    return withTransitionTime({ type, ...verdict, message, observedGeneration: generation }, before, now);
  });
  const waits = [...new Set(apps.flatMap(({ waits }) => waits.map(podOf)))].slice(0, MAX_WAITING);
  const waitingOn = kept.Enforced === undefined ? waits : (object.status?.waitingOn ?? []);
  const counted = kept.NamespacesWatched === undefined ? [] : (object.status?.namespaces ?? []);
  return {
    observedGeneration: generation,
    ...(owners && { owners }),
    ...(watched && { namespaces: namespacesOf(apps.slice(0, MAX_CLUSTER_OWNERS), counted) }),
    ...(watched && expiry && { earliestExpiry: expiry }),
    ...(waitingOn.length === 0 ? {} : { waitingOn }),
    conditions,
  };
}

/**
 * The pods of an app without a plan keep their routes, so the app keeps its owner. Of a cluster whose namespaces are divided, only a
 * shard is the owner.
 */
function ownersOf(
  apps: readonly AppOfCluster[],
  unplanned: ReadonlySet<string>,
  { status }: MeshCluster,
): Pick<MeshClusterStatus, "owners"> {
  const whole = apps.filter(({ route }) => route.upstream === undefined || route.owner !== DEFAULT_SUBSET);
  const planned = whole.map(({ app, route }) => ({ app, subset: subsetDisplayName(route.owner) }));
  const kept = (status?.owners ?? []).filter(({ app }) => unplanned.has(app));
  const owners = [...planned, ...kept].sort((a, b) => (a.app < b.app ? -1 : 1)).slice(0, MAX_CLUSTER_OWNERS);
  return owners.length === 0 && apps.length > 0 ? {} : { owners };
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

/** How many namespaces of the cluster each subset owns. @param kept what the status said, for apps of which it is not known now */
function namespacesOf(
  apps: readonly AppOfCluster[],
  kept: NonNullable<MeshClusterStatus["namespaces"]>,
): MeshClusterStatus["namespaces"] {
  return apps.flatMap(({ app, table }) =>
    table === undefined ? kept.filter((each) => each.app === app) : [{ app, ...countsIn(table) }],
  );
}

function countsIn(table: RouteTable) {
  const owned = [...countByHolder(table)]
    .flatMap(([subset, count]) => (subset === undefined ? [] : [{ subset: subsetDisplayName(subset), count }]))
    .sort((a, b) => b.count - a.count || (a.subset < b.subset ? -1 : 1));
  return { total: countNamespaces(table), owned: owned.slice(0, MAX_COUNTED_SUBSETS) };
}

function watchedVerdict(watched: NamespacesState, enforced: Verdict): Verdict {
  if (enforced.reason === "NotDivided") return { ...enforced, status: "Unknown" };
  return { ...watched, status: watched.reason === "Listed" ? "True" : "False" };
}

function enforcedVerdict(apps: readonly AppOfCluster[]): Verdict {
  if (apps.length === 0) {
    const message = "no app of the namespace divides this cluster, so every pod may write to it";
    return { status: "Unknown", reason: "NotDivided", message };
  }
  for (const { app, route, waits } of apps) {
    const first = waits.find(({ cause }) => cause === "not-enforced" && route.upstream !== undefined) ?? waits[0];
    if (first === undefined) continue;
    const others = waits.length > 1 ? `, and ${waits.length - 1} more` : "";
    const message = `${app}: pod ${podOf(first)} ${CLUSTER_WAIT_WORDS[first.cause]}${others}; ${waitingText(route)}`;
    // A pod that the mesh does not limit is named before pods that move.
    const isMoving = route.upstream === undefined ? route.isFenced : first.cause !== "not-enforced";
    return { status: "False", reason: isMoving ? "Moving" : "PodsNotEnforcing", message };
  }
  if (apps.some(({ route }) => route.isOpen)) {
    const message = isHidden(apps)
      ? "interception is None: only pods of the owner find the cluster, but the mesh does not limit connections to it"
      : "interception is None and discoveredBy is empty: every pod finds and reaches the cluster";
    return { status: "Unknown", reason: "NotIntercepted", message };
  }
  const what = apps.some(({ route }) => route.upstream !== undefined)
    ? "no pod can write to a namespace of another subset there through its proxy"
    : "no pod of another subset can write to the cluster through its proxy";
  return { status: "True", reason: "OneOwner", message: what + idleText(apps) };
}

/** Only pods of the owner see the objects by which operators find the cluster. */
function isHidden(apps: readonly AppOfCluster[]): boolean {
  return apps.every(({ route: { objects = [] } }) => objects.length > 0);
}

function waitingText({ owner, isFenced, upstream }: ClusterRoute): string {
  if (upstream !== undefined) return "its namespaces that move wait for that";
  return isFenced ? `${subsetText(owner)} waits for the cluster` : `${subsetText(owner)} keeps the cluster`;
}

/** A user may take a rule about namespaces for one that is in force. */
function idleText(apps: readonly AppOfCluster[]): string {
  const idle = apps.flatMap(({ app, idleRules = [] }) => idleRules.map((rule) => `${app}: ${rule}`));
  const [first] = idle;
  if (first === undefined) return "";
  const others = idle.length > 1 ? ` and ${idle.length - 1} more` : "";
  return `; ${first}${others} gives nothing here: namespaces are divided only with interception: Terminate`;
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
