// The other clusters of apps, from the statuses of their MeshClusters, and their texts. Invariant: no owner is computed here.
import { z } from "zod";
import { type Condition, conditionsSchema } from "../../api/conditions.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { PLACEMENT_DECISIONS, type PlacementDecision } from "../../api/placement-decision.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { nameList } from "../../base/name-list.ts";
import type { Cluster } from "../frame/cluster.ts";
import { counted, shellLine } from "../frame/output.ts";
import { orNothing } from "../frame/read-answer.ts";
import { age } from "./ages.ts";
import { readFields } from "./read-status.ts";

/** Another version may have written the status. */
const STATUS = {
  owners: z.array(z.looseObject({ app: z.string(), subset: z.string() })),
  namespaces: z.array(
    z.looseObject({
      app: z.string(),
      total: z.number().optional(),
      owned: z.array(z.looseObject({ subset: z.string(), count: z.number() })).optional(),
    }),
  ),
  waitingOn: z.array(z.string()),
  conditions: conditionsSchema,
};

interface DividedNamespaces {
  readonly app: string;
  readonly total?: number | undefined;
  readonly owned?: readonly { readonly subset: string; readonly count: number }[] | undefined;
}

export interface ClusterState {
  readonly namespace: string;
  readonly name: string;
  /** The owner in each app; while the cluster moves, the next one. */
  readonly owners: readonly { readonly app: string; readonly subset: string }[];
  /** How each app divides the cluster's namespaces, if it does. */
  readonly namespaces: readonly DividedNamespaces[];
  /** Pods that may still write there though they do not own it. */
  readonly waitingOn: readonly string[];
  readonly conditions: readonly Condition[];
  /** The fields of the status that cannot be read. */
  readonly unread: readonly string[];
}

/** The most subsets in a line. */
const MAX_SUBSETS = 5;

/** None in a cluster that does not serve MeshClusters. */
export async function listMeshClusters(cluster: Cluster, namespace: string | undefined): Promise<readonly MeshCluster[]> {
  return (await orNothing(cluster.list(MESH_CLUSTERS, namespace))) ?? [];
}

/**
 * None in a cluster that does not serve PlacementDecisions, nor if no rule names one: then users need no right to list them.
 * @param apps objects of apps, in any form
 */
export async function listDecisions(
  cluster: Cluster,
  namespace: string | undefined,
  apps: readonly unknown[],
): Promise<readonly PlacementDecision[]> {
  if (!JSON.stringify(apps).includes('"clustersFrom"')) return [];
  return (await orNothing(cluster.list(PLACEMENT_DECISIONS, namespace))) ?? [];
}

export function clusterState({ metadata: { namespace = "", name = "" }, status }: MeshCluster): ClusterState {
  const { status: read = {}, unread } = readFields(STATUS, status);
  return { namespace, name, owners: [], namespaces: [], waitingOn: [], conditions: [], ...read, unread };
}

/** The conditions that are False, except Ready, which sums up others. */
export function brokenConditions({ conditions }: Pick<ClusterState, "conditions">): readonly Condition[] {
  return conditions.filter(({ type, status }) => type !== "Ready" && status === "False");
}

/** How many clusters an app divides, and each cluster that may have several writers or cannot be reached. */
export function clusterLines(app: string, own: readonly ClusterState[], nowMs: number): string[] {
  if (own.length === 0) return [];
  const waiting = own.filter((state) => brokenConditions(state).length > 0);
  const lines = waiting.flatMap((state) =>
    conditionLines(state, nowMs).map((line) => `    ${state.name}${ownedText(ownerIn(state, app))}: ${line}`),
  );
  return [
    `  ${counted(own.length, "other cluster")}, ${waiting.length === 0 ? settledText(own) : `${waiting.length} with a problem`}${countsText(app, own)}${waiting.length === 0 ? "" : ":"}`,
    ...lines,
    ...(lines.length === 0 ? [] : ["    what helps: docs/reference/status.md#meshcluster"]),
  ];
}

/** The cluster's owner in the app; undefined if there is none, or the app divides the cluster's namespaces. */
export function ownerIn({ owners }: Pick<ClusterState, "owners">, app: string): string | undefined {
  return owners.find((each) => each.app === app)?.subset;
}

function settledText(own: readonly ClusterState[]): string {
  const divided = own.filter(({ namespaces }) => namespaces.length > 0).length;
  if (divided === 0) return "each with one owner";
  return divided === own.length ? "divided by namespace" : `${divided} divided by namespace, the others each with one owner`;
}

/** How many namespaces of these clusters each subset owns, those with the most first. */
function countsText(app: string, own: readonly ClusterState[]): string {
  const divided = own.flatMap(({ namespaces }) => namespaces.filter((each) => each.app === app));
  const total = divided.reduce((sum, { total: count = 0 }) => sum + count, 0);
  if (total === 0) return "";
  const bySubset = Map.groupBy(
    divided.flatMap(({ owned = [] }) => owned),
    ({ subset }) => subset,
  );
  const counts = [...bySubset].map(([subset, each]) => ({ subset, count: each.reduce((sum, { count }) => sum + count, 0) }));
  const texts = counts.sort((a, b) => b.count - a.count).map(({ subset, count }) => `${subset} ${count}`);
  return `; of ${counted(total, "namespace")} there: ${nameList(texts, MAX_SUBSETS)}`;
}

function ownedText(owner: string | undefined): string {
  return owner === undefined ? ", by namespace" : ` of ${owner}`;
}

/** The clusters that the app divides. */
export function clustersOf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  all: readonly ClusterState[],
) {
  return all.filter(
    (state) => state.namespace === namespace && [...state.owners, ...state.namespaces].some(({ app }) => app === name),
  );
}

export function conditionLines(state: ClusterState, nowMs: number): string[] {
  return brokenConditions(state).map(
    ({ type, reason, message, lastTransitionTime }) =>
      `${type} is False (${reason}) for ${age(lastTransitionTime, nowMs)}: ${message}`,
  );
}

/** The command that asks the pod that is waited for; undefined if none is. @param access the flags of this cluster and user */
export function nextCommand(
  { namespace, waitingOn: [pod] }: ClusterState,
  server: string | undefined,
  access: readonly string[],
): string | undefined {
  if (pod === undefined || server === undefined || pod.startsWith("(")) return undefined;
  return shellLine(["ctrlmesh", "explain", "request", pod, "connect", server, "-n", namespace, ...access]);
}
