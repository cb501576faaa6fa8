// The parts of the page, kept equal to the stores. Invariants: text from the cluster is one plain line each, so that it neither makes
// markup nor changes the order of what stands beside it. A part that has not changed is not sent again. Many changes at once cost one look
// at each object.
import { MAX_PLACES, type OwnershipEntry, type OwnershipSlice, readOwnership } from "../../api/ownership-slice.ts";
import { CIRCUIT_BREAKERS, FAULT_INJECTIONS, OWNERSHIP_SLICES, TRAFFIC_POLICIES } from "../../api/resources.ts";
import { jsonText } from "../../base/json.ts";
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import { APP_KINDS, type AppKind, appsIn, type FoundApp } from "../apps/apps.ts";
import { oneLine } from "../frame/output.ts";
import { appPart } from "./model/app-part.ts";
import type { Part, SlicePart } from "./model/parts.ts";
import { policyPart } from "./model/policy-part.ts";

const POLICY_KINDS = [TRAFFIC_POLICIES, CIRCUIT_BREAKERS, FAULT_INJECTIONS] as readonly Resource[];

export const SHOWN_KINDS: readonly Resource[] = [
  ...APP_KINDS.map(({ resource }) => resource as Resource),
  OWNERSHIP_SLICES as Resource,
  ...POLICY_KINDS,
];

export type StoreOf = <T extends KubeObject>(resource: Resource<T>) => Store<T>;

export interface Board {
  /** As JSON, by id. */
  readonly parts: ReadonlyMap<string, string>;
  /** Sets a part that is of no object. */
  put(id: string, part: Part): void;
  /** Looks at what has changed in the stores. Returns the ids of the parts that have changed or gone since the last call. */
  update(): ReadonlySet<string>;
}

type Put = (id: string, part: Part | undefined) => void;

/** @param onDirty `update` has something to do */
export function createBoard(storeOf: StoreOf, onDirty: () => void): Board {
  const parts = new Map<string, string>();
  let changed = new Set<string>();
  const put: Put = (id, part) => {
    const json = part === undefined ? undefined : JSON.stringify(plain(part));
    if (parts.get(id) === json) return;
    if (json === undefined) parts.delete(id);
    else parts.set(id, json);
    changed.add(id);
  };
  const refreshers = [
    ...APP_KINDS.map((kind) => followApps(kind, storeOf, put, onDirty)),
    followObjects(storeOf, OWNERSHIP_SLICES, slicePart, put, onDirty),
    ...POLICY_KINDS.map((resource) =>
      followObjects(storeOf, resource, (object) => policyPart(resource.kind, object), put, onDirty),
    ),
  ];
  return {
    parts,
    put(id, part) {
      put(id, part);
      if (changed.has(id)) onDirty();
    },
    update() {
      for (const refresh of refreshers) refresh();
      const all = changed;
      changed = new Set();
      return all;
    },
  };
}

/** A part for each object. */
function followObjects<T extends KubeObject>(
  storeOf: StoreOf,
  resource: Resource<T>,
  partOf: (object: T) => Part,
  put: Put,
  onDirty: () => void,
): () => void {
  const store = storeOf(resource);
  const dirty = new Map<string, KubeObject["metadata"]>();
  store.onChange(({ object: { metadata } }) => {
    dirty.set(keyOf(metadata.name ?? "", metadata.namespace), metadata);
    onDirty();
  });
  return () => {
    for (const [key, { name = "", namespace }] of dirty) {
      const object = store.get(name, namespace);
      put(`${resourceName(resource)} ${key}`, object && partOf(object));
    }
    dirty.clear();
  };
}

/** A part for each app, which may be several objects of one namespace. */
function followApps(kind: AppKind, storeOf: StoreOf, put: Put, onDirty: () => void): () => void {
  const store = storeOf(kind.resource);
  const dirty = new Set<string>();
  const known = new Map<string, readonly string[]>();
  store.onChange(({ object }) => {
    dirty.add(object.metadata.namespace ?? "");
    onDirty();
  });
  return () => {
    for (const namespace of dirty) {
      const apps = new Map<string, FoundApp>(
        appsIn(kind, store.list(namespace)).map((app) => [`app ${kind.resource.kind} ${namespace}/${app.name}`, app]),
      );
      for (const id of known.get(namespace) ?? []) if (!apps.has(id)) put(id, undefined);
      for (const [id, app] of apps) put(id, appPart(app));
      known.set(namespace, [...apps.keys()]);
    }
    dirty.clear();
  };
}

function slicePart(slice: OwnershipSlice): SlicePart {
  const all = readOwnership(slice);
  const entries = firstPlaces(all);
  const [there, shown] = [placesIn(all), placesIn(entries)];
  const { app, places, metadata } = slice;
  return {
    part: "slice",
    app: `${metadata.namespace}/${jsonText(app)}`,
    entries,
    unread: Math.max(there, typeof places === "number" ? places : 0) - shown,
  };
}

/** A slice of the manager has no more places. Each is a cell for each of its owners, so an endless slice would stop the browser. */
function firstPlaces(entries: readonly OwnershipEntry[]): readonly OwnershipEntry[] {
  let left = MAX_PLACES;
  return entries.filter((entry) => {
    left -= placesIn([entry]);
    return left >= 0;
  });
}

function placesIn(entries: readonly OwnershipEntry[]): number {
  return entries.reduce((sum, { clusters = [], insideClusters = [], ...atHome }) => {
    const inside = insideClusters.reduce((all, each) => all + countOf(each), 0);
    return sum + countOf(atHome) + clusters.length + inside;
  }, 0);
}

function countOf({ namespaces = [], buckets = [], clusterScope }: Partial<OwnershipEntry>): number {
  return namespaces.length + buckets.length + (clusterScope === true ? 1 : 0);
}

/** The same value with plain texts. */
function plain(value: unknown): unknown {
  if (typeof value === "string") return oneLine(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}
