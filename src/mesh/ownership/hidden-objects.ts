// The objects at home by which the operator finds clusters that its subset does not own. It neither sees nor changes them, whoever owns
// their namespaces. Pure. Invariant: they are only left out of what the subset would see, so no other subset has to know of it.
import type { ResourceInfo } from "../../kube/request-info.ts";
import type { GroupResource } from "../../kube/types.ts";
import { accessTo, type ClusterRoute, type ClusterView } from "./clusters.ts";

/** The hidden objects of one resource. */
export interface HiddenObjects {
  /** The app's namespace. An object with one of the names is hidden there, or if it is cluster-scoped. */
  readonly namespace: string;
  /** By the object's name: the cluster that it is about. */
  readonly clusters: ReadonlyMap<string, ClusterRoute>;
}

/** Undefined if none of the resource is hidden. */
export function hiddenObjects(
  { subset, clusters = [], app }: ClusterView & { readonly app: { readonly namespace: string } },
  { group, resource }: GroupResource,
): HiddenObjects | undefined {
  const hiding = clusters.filter((cluster) => cluster.objects !== undefined && accessTo(cluster, subset) !== "own");
  const named = hiding.flatMap((cluster) =>
    (cluster.objects ?? []).flatMap((each) =>
      each.group === group && each.resource === resource ? [[each.name, cluster] as const] : [],
    ),
  );
  return named.length === 0 ? undefined : { namespace: app.namespace, clusters: new Map(named) };
}

/** The cluster for which the object is hidden; undefined if it is not. */
export function hidingCluster(
  hidden: HiddenObjects | undefined,
  object: { readonly namespace: string; readonly name: string },
): ClusterRoute | undefined {
  return mayHide(hidden, object) ? hidden?.clusters.get(object.name) : undefined;
}

/** True if objects of the namespace may be hidden; "" stands for all namespaces, and for objects outside of namespaces. */
export function mayHide(hidden: HiddenObjects | undefined, { namespace }: { readonly namespace: string }): boolean {
  return hidden !== undefined && (namespace === "" || namespace === hidden.namespace);
}

export function hasSameHidden(a: HiddenObjects | undefined, b: HiddenObjects | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.clusters.size === b.clusters.size && [...a.clusters.keys()].every((name) => b.clusters.has(name));
}

/** True for a create of which only the body says whether its object is a hidden one. */
export function mayCreateHidden(hidden: HiddenObjects | undefined, info: ResourceInfo): boolean {
  return info.verb === "create" && info.name === "" && mayHide(hidden, info);
}
