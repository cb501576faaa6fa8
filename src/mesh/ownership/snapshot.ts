// The snapshot that one proxy enforces, and the view of one resource that follows from it (`view-of.ts`). Pure.
import type { ItemMeta } from "../../kube/codec/codec.ts";
import type { Labels } from "../../kube/label-selector.ts";
import { CLUSTER_SCOPE, clusterPlace } from "../../kube/place.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { ClusterRoute } from "./clusters.ts";
import type { FrozenNamespace } from "./frozen-places.ts";
import { type HiddenObjects, hidingCluster } from "./hidden-objects.ts";
import type { Owner } from "./owners.ts";
import type { RouteTable } from "./table.ts";
import type { SourceWords } from "./words.ts";

export interface AppRef {
  readonly namespace: string;
  readonly name: string;
}

/** What the proxy does by the operator's User-Agent. */
export interface CallerPolicy {
  /** Replaces the User-Agent; a value that ends with "/" is put before it; "" changes nothing. */
  readonly userAgent: string;
  /** User agents that only the default subset serves. */
  readonly defaultOnlyUserAgents: readonly string[];
  /** Responses lose metadata.managedFields. */
  readonly stripManagedFields: boolean;
}

/** No User-Agent changes, and every subset serves all callers. */
export const NO_CALLER_POLICY: CallerPolicy = { userAgent: "", defaultOnlyUserAgents: [], stripManagedFields: false };

export interface Snapshot {
  /** Increases with every change of the app's routes. */
  readonly version: number;
  /** Equal digests mean equal rules. */
  readonly digest: string;
  readonly app: AppRef;
  readonly subset: string;
  /** Namespace of the pod, in which its lock lives. */
  readonly podNamespace: string;
  /** Name of the operator's lock; "" if it has none. */
  readonly lockName: string;
  readonly table: RouteTable;
  readonly callers: CallerPolicy;
  readonly guard?: Guard | undefined;
  /** Namespaces in which no pod of the app may write, whoever owns them. Absent: none. */
  readonly frozen?: readonly FrozenNamespace[] | undefined;
  /** The other clusters that the app divides. Absent: none. */
  readonly clusters?: readonly ClusterRoute[] | undefined;
  /** The owners inside the clusters with an upstream, by the cluster's name. A cluster without a table is closed. Absent: none. */
  readonly clusterTables?: ClusterTables | undefined;
  /** Absent if an older manager made the snapshot. */
  readonly words?: SourceWords | undefined;
  /** Name of the other cluster whose part of a snapshot this is. No route has it. Absent: home. */
  readonly inside?: string | undefined;
}

export type ClusterTables = ReadonlyMap<string, RouteTable>;

/** The tables by which the pod may write: at home, and in other clusters. */
export function tablesIn({ table, clusterTables }: Pick<Snapshot, "table" | "clusterTables">): RouteTable[] {
  return [table, ...(clusterTables?.values() ?? [])];
}

/** `Warn`: writes to objects of other subsets pass, with a warning. Absent: they are refused. */
export type Guard = "Warn";

export type Ownership = "own" | "other-subset" | "moving" | "unknown";

/** Selects the subset's objects in the namespaces that it owns. */
export interface LabelFilter {
  /** For the API server's query; it selects exactly what `matches` accepts. */
  readonly labelSelector: string;
  matches(labels: Labels): boolean;
}

/**
 * One resource as this proxy's subset sees it. Reads use the read view (`readViewOf`), so that a namespace
 * that the pod retains neither ends a watch nor seems to be deleted.
 */
export interface ResourceView {
  readonly group: string;
  readonly resource: string;
  /** The subset owns every namespace, known or not, and no object is hidden, so nothing needs filtering. */
  readonly ownsAll: boolean;
  /** In every namespace, known or not, labels alone decide. Absent is false. */
  readonly byLabelsOnly?: boolean;
  /** All of the resource moves between subsets, so no list of it can be complete. Absent is false. */
  readonly isMoving?: boolean;
  /** The app has no rules and nothing moves, so one subset owns all objects of all resources. */
  readonly hasNoRules: boolean;
  /** Undefined if labels do not matter. Otherwise an owned object also has to match it (`isOwned`). */
  readonly labelFilter: LabelFilter | undefined;
  readonly guard?: Guard | undefined;
  /** The reasons of the frozen namespaces by their names. Absent: none. */
  readonly frozen?: ReadonlyMap<string, string> | undefined;
  /** As in Snapshot. */
  readonly inside?: string | undefined;
  /** Objects that the subset does not see, though it owns their namespaces. */
  readonly hidden?: HiddenObjects | undefined;
  /** Shards own cluster-scoped objects by name. Absent is false. */
  readonly isByName?: boolean;
  ownershipOf(namespace: string): Ownership;
  /** As in ResourceOwners. */
  ownerOf(namespace: string, labels?: Labels): Owner;
  /** The next owner of a namespace that moves. Absent where none can move. */
  nextOwnerOf?(namespace: string): Owner;
  /** The cost grows with the number of known namespaces: for planning, not for each object. */
  namespaces(): NamespacesByOwnership;
  /** The view in which retained namespaces count as "own". Absent if none is retained. */
  readonly readView?: ResourceView;
  /** In the read view: true for a namespace that the pod retains for a moment only. */
  isForMoment?(namespace: string): boolean;
}

export interface NamespacesByOwnership {
  readonly own: readonly string[];
  readonly others: readonly string[];
}

/** The view for reads, which includes retained namespaces. Never use it for writes. */
export function readViewOf(view: ResourceView): ResourceView {
  return view.readView ?? view;
}

export function hasOwnLabels({ labelFilter }: ResourceView, labels: Labels | undefined): boolean {
  return labelFilter === undefined || (labels !== undefined && labelFilter.matches(labels));
}

/** True if the subset owns the object and sees it. Labels that matter but are not known make it false. */
export function isOwned(view: ResourceView, meta: ItemMeta): boolean {
  if (hidingCluster(view.hidden, meta) !== undefined) return false;
  if (view.ownershipOf(governingPlace(view.group, view.resource, meta)) !== "own") return false;
  return hasOwnLabels(view, meta.labels);
}

const PODS = { group: "", resource: "pods" };
const NAMESPACES = { group: "", resource: "namespaces" };
/** OpenShift's names for namespaces. Its API server reads and writes the namespace of the project's name. */
const OPENSHIFT_PROJECTS: ReadonlySet<string> = new Set(["projects", "projectrequests"]);

/** True for `namespaces`, also by OpenShift's names. The owner of a namespace owns its object. */
export function isNamespaces({ group, resource }: GroupResource): boolean {
  if (group === "project.openshift.io") return OPENSHIFT_PROJECTS.has(resource);
  return group === "" && resource === "namespaces";
}

/** A create of a binding writes the pod that its body names. */
export function isBindings({ group, resource }: GroupResource): boolean {
  return group === "" && resource === "bindings";
}

// Rules name the governing resource. Other resources that are names for the same objects have the same
// owners.
export function governingResource(group: string, resource: string): GroupResource {
  if (isNamespaces({ group, resource })) return NAMESPACES;
  return isBindings({ group, resource }) ? PODS : { group, resource };
}

/** The place that decides about an object: its namespace (of a namespace: its name), or a bucket. */
export function governingPlace(
  group: string,
  resource: string,
  { namespace, name }: { namespace: string; name: string },
): string {
  if (isNamespaces({ group, resource })) return name;
  return namespace === CLUSTER_SCOPE ? clusterPlace(name) : namespace;
}
