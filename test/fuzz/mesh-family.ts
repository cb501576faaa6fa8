// Sharded families in the mesh tests: a VirtualApp with an annotation, whose route gets a `sharded` rule and a cluster scope. Its subsets are
// the shards. So a script can turn an app into a family and back.
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import { CLUSTER_SCOPE } from "../../src/kube/place.ts";
import type { App, Source } from "../../src/manager/apps/app.ts";
import type { RouteSpec } from "../../src/manager/apps/compile/route-spec.ts";
import { createVirtualAppSource } from "../../src/manager/virtual-app/virtual-app-source.ts";
import { group, sharded } from "../support/route-table.ts";

const FAMILY = "mesh.test/family";

/** A bucket of cluster-scoped names. */
export const BUCKET = "#0";

export interface Family {
  /** The resources that the shards divide. */
  readonly named: readonly string[];
  /** The shard that has the cluster scope; "" if none has. */
  readonly home: string;
  /** The shard that has BUCKET; undefined if it is as the cluster scope. */
  readonly bucket?: string | undefined;
}

export function familyAnnotations(family: Family | undefined): Readonly<Record<string, string>> {
  return family === undefined ? {} : { [FAMILY]: JSON.stringify(family) };
}

export function createFamilySource(): Source<VirtualApp> {
  const source = createVirtualAppSource();
  return { ...source, appsOf: (objects) => source.appsOf(objects).map(asFamily) };
}

function asFamily(app: App): App {
  const text = app.object.metadata.annotations?.[FAMILY];
  const { spec } = app;
  if (text === undefined || spec === undefined) return app;
  const family = JSON.parse(text) as Family;
  return { ...app, spec: { ...spec, route: () => familyRoute(spec.route(), family) } };
}

function familyRoute(route: RouteSpec, { named, home, bucket }: Family): RouteSpec {
  const after = (members: readonly number[]) => members.map((at) => at + 1); // of the `sharded` rule
  const rulesOf = (shard: string) =>
    route.rules.flatMap((rule, at) => (rule.kind === "subset" && rule.subset === shard ? [at] : []));
  const inScope = [[CLUSTER_SCOPE, home] as const, ...(bucket === undefined ? [] : [[BUCKET, bucket] as const])];
  return {
    ...route,
    rules: [sharded(group("", ...named)), ...route.rules],
    sharedResources: [],
    places: inScope.map(([place, shard]) => [place, after(rulesOf(shard))]),
    membersOf: (namespace, matches) => after(route.membersOf(namespace, matches)),
  };
}
