// The kind OwnershipSlice: who owns which places of an app, as an EndpointSlice says which addresses a Service has. Published
// truth: the manager writes it and decides nothing by it. Places with the same owner, state and time are one entry, so a slice
// of a thousand namespaces takes little more than their names.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { atomicList, int, textUpTo } from "./fields.ts";
import { AGE_COLUMN, integerColumn, type KindDefinition, KRUISE_GROUP, objectMetaSchema, textColumn } from "./kind.ts";

/** Label of a slice, whose value is the name of its app. */
export const SLICE_APP_LABEL = "ctrlmesh.kruise.io/app";

/** As in an EndpointSlice: an app of 10,000 namespaces has ten objects, and a move writes one or two of them. */
export const MAX_PLACES = 1_000;

/** As many as a namespace has at most. */
export const MAX_SLICE_CLUSTERS = 500;

/** The other clusters whose namespaces an app divides. */
export const MAX_SLICE_TABLES = 32;

/** Of one owner. A rule may name thousands, and a slice has to stay small. */
export const MAX_OWNER_RESOURCES = 16;

/** Of one entry: a rule for each of the subsets that an app may have, and the default subset. */
export const MAX_OWNERS = 65;

const nameSchema = textUpTo(253);

const ownerSchema = z.object({
  subset: optional(nameSchema).describe("The subset or shard; `default` is the default subset. Absent: nobody."),
  resources: atomicList(textUpTo(317), MAX_OWNER_RESOURCES).describe(
    "The resources that it owns, as `deployments.apps`, where an asterisk stands for all names. Absent: all that no earlier owner has.",
  ),
  moreResources: optional(int(1, 32_768)).describe("The number of further resources that the list leaves out."),
});

/** How the places of a cluster are named. */
const placeFields = {
  namespaces: atomicList(textUpTo(63), MAX_PLACES),
  buckets: atomicList(int(0, 31), 32),
  clusterScope: optional(z.boolean()),
};

const insideSchema = z.object({
  cluster: nameSchema.describe("Name of its MeshCluster."),
  namespaces: placeFields.namespaces.describe("Namespaces of that cluster."),
  buckets: placeFields.buckets.describe("As above, of the cluster-scoped objects there."),
  clusterScope: placeFields.clusterScope.describe("The cluster-scoped objects there that are in no bucket."),
});

const entrySchema = z.object({
  state: z
    .enum(["Owned", "Frozen", "Moving", "Fenced", "Unowned"])
    .describe(
      "`Owned`: the owner may write. `Frozen`: it may not, since somebody has frozen the namespace in the spec of the app. `Moving`: it may not yet, since pods of another subset still may. `Fenced`: the same, since the manager does not know yet what pods may write. `Unowned`: nobody may write.",
    ),
  owners: atomicList(ownerSchema, MAX_OWNERS).describe(
    "Who owns the places, while they move who gets them. The first owner that applies to a resource owns it.",
  ),
  from: atomicList(nameSchema, MAX_OWNERS).describe("The subsets whose pods may still write. Only while the places move."),
  since: z.iso.datetime().describe("When the places got this owner, or began to move."),
  namespaces: placeFields.namespaces.describe("The namespaces."),
  buckets: placeFields.buckets.describe("The hashes of the names of cluster-scoped objects, if shards divide these."),
  clusterScope: placeFields.clusterScope.describe("The cluster-scoped objects that are in no bucket."),
  clusters: atomicList(nameSchema, MAX_SLICE_CLUSTERS).describe(
    "Other clusters that the app divides, by the names of their MeshClusters. Their owners own them as a whole.",
  ),
  insideClusters: atomicList(insideSchema, MAX_SLICE_TABLES).describe(
    "The places inside other clusters whose namespaces the app divides. The names in the fields above are those of this cluster.",
  ),
});

const ownershipSliceSchema = z
  .strictObject({
    apiVersion: z.literal(`${KRUISE_GROUP}/v1alpha1`),
    kind: z.literal("OwnershipSlice"),
    metadata: objectMetaSchema,
    app: nameSchema.describe("The app: a VirtualApp, or a family of ShardingConfigs."),
    places: int(0, MAX_PLACES).describe("The number of places in this slice."),
    moving: int(0, MAX_PLACES).describe("How many of them are Moving or Fenced."),
    ownership: z
      .array(entrySchema)
      .max(MAX_PLACES)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe("The places, by owner, state and time. Each place of the app is in one entry of one slice."),
  })
  .describe(
    "OwnershipSlice says who owns a part of an app's places, and what moves. The manager writes it and never reads it to decide.",
  );

export type OwnershipSlice = Immutable<z.output<typeof ownershipSliceSchema>>;
export type OwnershipEntry = OwnershipSlice["ownership"][number];

export const ownershipSliceKind = {
  group: KRUISE_GROUP,
  kind: "OwnershipSlice",
  plural: "ownershipslices",
  shortNames: ["oslice"],
  scope: "Namespaced",
  columns: [
    textColumn("App", ".app", "The app that the places belong to."),
    integerColumn("Places", ".places", "Number of places in the slice."),
    integerColumn("Moving", ".moving", "How many of them are moving."),
    AGE_COLUMN,
  ],
  schema: ownershipSliceSchema,
} as const satisfies KindDefinition;

/** The entries that can be read. A slice that another program has written may have any form. */
export function readOwnership(slice: { readonly ownership?: unknown }): readonly OwnershipEntry[] {
  const entries: readonly unknown[] = Array.isArray(slice.ownership) ? slice.ownership : [];
  return entries.flatMap((entry) => entrySchema.safeParse(entry).data ?? []);
}
