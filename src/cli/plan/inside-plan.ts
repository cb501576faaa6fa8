// Which namespaces an edit of an app moves inside other clusters. Pure. Invariant: what is not known here is named as not known.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import type { App, ClusterRules } from "../../manager/apps/app.ts";
import type { ChosenClusters } from "../../manager/apps/chosen-clusters.ts";
import { compileNow } from "../../manager/apps/compile/compile-now.ts";
import type { NamespaceFacts, RouteSpec } from "../../manager/apps/compile/route-spec.ts";
import { wholeClusterRoute } from "../../manager/sharding/cluster-owners.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import type { OwnedPlace } from "../apps/owned-places.ts";
import { acceptedIn } from "./edited-clusters.ts";
import { movedInside, ownersOf } from "./moved-inside.ts";
import type { Move } from "./moved-namespaces.ts";
import { labelTermsIn, possibleLabels } from "./possible-labels.ts";

/** The namespaces of other clusters, as far as they are known here. */
export interface KnownInside {
  /** From the OwnershipSlices. */
  readonly owned: readonly OwnedPlace[];
  /** Those that the user has named, by the name of the MeshCluster in the namespace `home`. */
  readonly named: ReadonlyMap<string, readonly NamespaceFacts[]>;
  readonly home: string;
}

export interface InsideMove extends Move {
  /** Name of the MeshCluster. */
  readonly cluster: string;
}

/** What is not known of a cluster. */
export interface UnknownInside {
  readonly cluster: string;
  /** Whether they move depends on their labels. Absent: no namespace of the cluster is known. */
  readonly namespaces?: readonly string[];
}

export interface InsideMoves {
  readonly moves: readonly InsideMove[];
  /** The number of namespaces that are known. */
  readonly total: number;
  readonly unknown: readonly UnknownInside[];
}

export const NOTHING_INSIDE: InsideMoves = { moves: [], total: 0, unknown: [] };

/** An app before the edit, or after it. */
export interface InsideSide {
  readonly app: App;
  readonly rules: ClusterRules;
  /** The other clusters that it divides. */
  readonly routes: readonly ClusterRoute[];
  /** All MeshClusters. */
  readonly clusters: readonly MeshCluster[];
  readonly chosen: ChosenClusters;
}

/** @param readsLabels the rules of the app go by the labels of namespaces */
export function insidePlan(before: InsideSide, after: InsideSide, known: KnownInside, readsLabels: boolean): InsideMoves {
  const specs = [before, after].map(({ app }) => app.objects.map(specOf));
  const possible = possibleLabels(readsLabels ? labelTermsIn(specs) : []);
  const isSameSpec = isDeepEqual(specs[0], specs[1]);
  const named = known.home === after.app.ref.namespace ? known.named : new Map<string, readonly NamespaceFacts[]>();
  const insides = after.routes.flatMap((route): InsideMoves[] => {
    const { name } = route;
    const had = before.routes.find((each) => each.name === name);
    if (had === undefined || (had.upstream === undefined && route.upstream === undefined)) return [];
    const [old, next] = [routeSpec(before, had), routeSpec(after, route)];
    if (old === undefined || next === undefined) return []; // a PlacementDecision is missing, so owners stay
    const of = named.get(name);
    const told = publishedOwners(known.owned, after.app, name);
    const published = told.size > 0 ? told : ownersBy(old, of ?? []);
    const isDivided = had.upstream !== undefined && route.upstream !== undefined;
    const isUntouched = isDivided && isSameSpec && of === undefined && isDeepEqual(labelsOf(before, name), labelsOf(after, name));
    if (isUntouched) return [{ ...NOTHING_INSIDE, total: published.size }];
    if (published.size === 0) return [{ ...NOTHING_INSIDE, unknown: [{ cluster: name }] }];
    const labels = new Map(of?.map((each) => [each.name, each.labels]));
    const { moves, unknown } = movedInside({ before: old, after: next, published, labels, possible });
    return [
      {
        moves: moves.map((move) => ({ cluster: name, ...move })),
        total: published.size,
        unknown: unknown.length === 0 ? [] : [{ cluster: name, namespaces: unknown }],
      },
    ];
  });
  return {
    moves: insides.flatMap(({ moves }) => moves),
    total: insides.reduce((sum, { total }) => sum + total, 0),
    unknown: insides.flatMap(({ unknown }) => unknown),
  };
}

function specOf(object: object): unknown {
  return (object as { readonly spec?: unknown }).spec;
}

function labelsOf({ clusters, app: { ref } }: InsideSide, name: string): unknown {
  return clusters.find(({ metadata }) => metadata.namespace === ref.namespace && metadata.name === name)?.metadata.labels;
}

/** The rules inside the cluster. Undefined: not known. */
function routeSpec({ app, rules, clusters, chosen }: InsideSide, { name, owner, upstream }: ClusterRoute): RouteSpec | undefined {
  if (upstream === undefined) return wholeClusterRoute(owner);
  const facts = acceptedIn(clusters, app.ref.namespace).accepted.find((each) => each.name === name);
  return facts && rules.clusterRoute?.(facts, owner, chosen);
}

type Published = Parameters<typeof movedInside>[0]["published"];

function publishedOwners(owned: readonly OwnedPlace[], { ref }: App, name: string): Published {
  const app = `${ref.namespace}/${ref.name}`;
  return new Map(
    owned.flatMap(({ app: of, cluster, namespace, owners = [] }) =>
      of === app && cluster === name && namespace !== undefined ? [[namespace, owners] as const] : [],
    ),
  );
}

/** What the manager would publish if these were the namespaces. */
function ownersBy(route: RouteSpec, namespaces: readonly NamespaceFacts[]): Published {
  const table = compileNow(route, namespaces);
  return new Map(namespaces.map(({ name }) => [name, ownersOf(table, name)]));
}
