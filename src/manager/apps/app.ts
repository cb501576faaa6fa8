// What a source object asks for, independent of its kind. Each source kind has one file that turns its
// objects into Apps. All other parts of the manager work with Apps only.
import { type AppStatus, ROUTES_FINALIZER } from "../../api/app-status.ts";
import type { WebhookServer } from "../../api/operator-fields.ts";
import type { Problem } from "../../api/problems.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { GroupResource, KubeObject, LabelSelector } from "../../kube/types.ts";
import type { PlannedSpec } from "../../mesh/handover/app-facts.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import type { SourceWords } from "../../mesh/ownership/words.ts";
import { hasFinalizer } from "../../runtime/finalizer.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { Change } from "../../runtime/store.ts";
import type { ChosenClusters } from "./chosen-clusters.ts";
import type { ClusterFacts, RouteSpec } from "./compile/route-spec.ts";
import { APPS_SHARE, beyondShare } from "./namespace-share.ts";

/** Names one app. The label of injected pods has the name alone, so webhooks keep it unique among kinds. */
export interface AppRef {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** What messages call the objects and fields of a source kind. */
export interface AppWords extends SourceWords {
  /** The apps of a namespace: "VirtualApps". */
  readonly plural: string;
  readonly pausedField: string;
  /** The field for the largest share of namespaces that may move; "" if the kind has none. */
  readonly maxMovingField: string;
}

export interface SourceObject extends KubeObject {
  readonly status?: AppStatus | undefined;
}

/** Selects the pods of an app, and gives the subset of each pod. */
export interface PodSelection {
  readonly name: string;
  /** Matches every pod that `selects` accepts, and maybe others of the namespace. For the webhook's entry. */
  readonly selector: LabelSelector;
  /** All of them are pods of this StatefulSet; absent: they may have any owner. */
  readonly statefulSet?: string;
  /** Should match all of them too, but decides nothing: the status shows those that it does not match. */
  readonly checkedSelector?: LabelSelector | undefined;
  selects(podLabels: Labels | undefined): boolean;
  subsetOf(podLabels: Labels): string;
  /** The shard that injection names in a label of a new pod. Absent: the kind has no shards. */
  shardOfNewPod?(podLabels: Labels): string | undefined;
}

export interface AppSpec extends PlannedSpec {
  readonly webhook?: WebhookServer | undefined;
  /** Why no route can be compiled yet; absent: one can. Until then the app keeps the routes that it has. */
  readonly waitsFor?: string | undefined;
  /** The resources whose objects are to be labelled; absent: none. */
  readonly labelled?: readonly GroupResource[];
  route(): RouteSpec;
  /** The owners of other clusters, by name; a cluster without an owner is not divided. Absent: the app divides no other cluster. */
  clusterOwners?(clusters: readonly ClusterFacts[], chosen: ChosenClusters): ReadonlyMap<string, string>;
  /** The keys of the PlacementDecisions that its rules name. Absent: none. */
  readonly decisionKeys?: readonly string[];
  /** The key of the missing PlacementDecision because of which the cluster keeps its owner; undefined: none is missing. */
  missingDecision?(cluster: ClusterFacts, chosen: ChosenClusters): string | undefined;
  /** The rules inside a cluster whose namespaces are divided. Undefined while a PlacementDecision is missing. @param owner by `clusterOwners` */
  clusterRoute?(cluster: ClusterFacts, owner: string, chosen: ChosenClusters): RouteSpec | undefined;
  /** The rules that match a cluster with one owner, and give nothing of it, since they are about namespaces. */
  idleClusterRules?(cluster: ClusterFacts, chosen: ChosenClusters): readonly string[];
  /** What the status of this kind says in addition to that of every app. */
  describe?(counts: AppCounts): Description;
}

export interface AppCounts {
  readonly subsets: NonNullable<AppStatus["subsets"]>;
  readonly desired: RouteTable;
  /** Part of `subsets`: the namespaces of other clusters. Absent: none. */
  readonly abroad?: {
    readonly owned: ReadonlyMap<string, number>;
    /** The number of clusters whose namespaces are not known. */
    readonly unknown: number;
  };
}

export interface Description {
  readonly fields: object;
  readonly balanced?: {
    readonly status: "True" | "False" | "Unknown";
    readonly reason: "Even" | "Skewed" | "Joining" | "OneShard" | "EmptyShards" | "PodsWithoutShard" | "NotKnown";
    readonly message: string;
  };
}

export interface App {
  readonly ref: AppRef;
  readonly words: AppWords;
  /** The first of `objects`. It has the status and the Events of the app. */
  readonly object: SourceObject;
  /** The source objects of the app: the live ones, or all of them if the whole app is being deleted. */
  readonly objects: readonly SourceObject[];
  /** The app is being deleted or is switched off, so every pod will own everything again. */
  readonly isEnding: boolean;
  /** Objects that are being deleted while others of the app stay. */
  readonly leaving: readonly SourceObject[];
  /** The pods that the spec selects, even if the spec is refused. */
  readonly pods: PodSelection;
  /** Undefined if the spec is refused. */
  readonly spec: AppSpec | undefined;
  readonly problems: readonly string[];
}

export interface Source<O extends SourceObject = SourceObject> {
  readonly resource: Resource<O>;
  readonly words: AppWords;
  /** Name of its controller in logs and metrics. */
  readonly controllerName: string;
  /** Its routes depend on the labels of namespaces, and not on their names alone. */
  readonly readsNamespaceLabels: boolean;
  /** A label selector that selects all objects of which apps are made, and maybe others; absent: all objects. */
  readonly partsSelector?: string;
  /** What the routes of an app depend on in its object, in addition to the spec. Compared as JSON. */
  inputsOf(object: KubeObject): unknown;
  /** What only the status of an app depends on in its object, in addition to the spec. Compared as JSON. */
  statusInputsOf?(object: KubeObject): unknown;
  /** The name of the app that the object is a part of. */
  appNameOf(object: KubeObject): string;
  /** The resources that the object wants to be labelled, even if its spec is refused. */
  labelledBy(object: KubeObject): readonly GroupResource[];
  /** The apps that these objects form. Never throws. */
  appsOf(objects: readonly O[]): App[];
  /** An object of the store has a new version. What is known about the old version may be true of it too. */
  onUpdate?(before: O, after: O): void;
  /** The answer of admission to a created object (`before` is then undefined) or a changed object. */
  judgeEdit(before: unknown, after: unknown, surroundings: Surroundings): EditVerdict;
}

export interface Surroundings {
  /** The app of which the object is or becomes a part, as this replica knows it. */
  readonly own: App | undefined;
  readonly others: readonly App[];
}

export interface EditVerdict {
  /** Why the edit is refused; empty if it is allowed. */
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
  /** The routes before and after the edit, if it may move namespaces. */
  readonly reroute?: Reroute;
}

export type ClusterRules = Pick<AppSpec, "clusterOwners" | "clusterRoute">;

export interface Reroute {
  readonly before: RouteSpec;
  readonly after: RouteSpec;
  /** Who owns what of other clusters before and after the edit. Absent: as the specs say. */
  readonly clusterRules?: Readonly<Record<"before" | "after", ClusterRules>>;
  /** Pods that lose namespaces are restarted. */
  readonly restarts: boolean;
  /** The routes after the edit depend on more than the edit, for example on the pods. */
  readonly isEstimate?: boolean;
}

/** The namespaces that the objects of an app freeze, by name; undefined if there are none. */
export function frozenIn(...ofObjects: readonly (Readonly<Record<string, string>> | undefined)[]): PlannedSpec["frozen"] {
  const reasons = Object.entries(Object.assign({}, ...ofObjects) as Readonly<Record<string, string>>);
  if (reasons.length === 0) return undefined;
  return reasons.map(([namespace, reason]) => ({ namespace, reason })).sort((a, b) => (a.namespace < b.namespace ? -1 : 1));
}

export function isLive({ isEnding }: Pick<App, "isEnding">): boolean {
  return !isEnding;
}

/** True while the spec gives other clusters to subsets. */
export function dividesClusters({ spec }: Pick<App, "spec">): boolean {
  return spec?.clusterOwners !== undefined;
}

export function endingText({ object }: Pick<App, "object">): string {
  return object.metadata.deletionTimestamp === undefined ? "is disabled" : "is being deleted";
}

/** True while pods may have routes of the app: one of its objects has the finalizer. */
export function isHeld({ objects }: Pick<App, "objects">): boolean {
  return objects.some((object) => hasFinalizer(object, ROUTES_FINALIZER));
}

export interface Apps {
  readonly hasSynced: boolean;
  get(name: string, namespace: string): App | undefined;
  list(namespace?: string): App[];
  /** Calls the handler for every existing object, as added, and for every change. The result ends that. */
  onChange(handler: (change: Change<SourceObject>, kind: string) => void): () => void;
}

/** An app beyond its namespace's share is treated like one with a refused spec, unless it ends. */
function withinBounds(apps: readonly App[], noun: string): readonly App[] {
  const beyond = beyondShare(apps.filter(isLive), ({ objects }) => objects, APPS_SHARE, noun);
  if (beyond.size === 0) return apps;
  return apps.map((app) => {
    const why = beyond.get(app);
    return why === undefined ? app : refused(app, why);
  });
}

// Does not read the spec or the problems of the app, since then its spec would be checked.
function refused({ ref, words, object, objects, isEnding, leaving, pods }: App, why: string): App {
  return { ref, words, object, objects, isEnding, leaving, pods, spec: undefined, problems: [why] };
}

export function createApps(informers: Pick<Informers, "store">, sources: readonly Source[]): Apps {
  const kinds = sources.map((source) => ({ source, store: informers.store(source.resource) }));
  const noun = sources.map(({ words }) => words.plural).join(" and ");
  const known = new Map<string, readonly App[]>();
  // Subscribed first, so that no other handler of the same change gets outdated apps.
  for (const { source, store } of kinds) {
    store.onChange((change) => {
      known.delete(change.object.metadata.namespace ?? "");
      if (change.type === "updated") source.onUpdate?.(change.previous, change.object);
    });
  }
  const appsIn = (namespace: string): readonly App[] => {
    const ofKinds = () => kinds.flatMap(({ source, store }) => source.appsOf(store.list(namespace)));
    const apps = known.get(namespace) ?? withinBounds(ofKinds(), noun);
    // Any client of the webhooks can name a namespace, so only those with an app are remembered.
    if (apps.length > 0) known.set(namespace, apps);
    return apps;
  };
  const namespaces = () => new Set(kinds.flatMap(({ store }) => store.list().map(({ metadata }) => metadata.namespace ?? "")));
  return {
    get hasSynced() {
      return kinds.every(({ store }) => store.hasSynced);
    },
    get: (name, namespace) => appsIn(namespace).find(({ ref }) => ref.name === name),
    list: (namespace) => (namespace === undefined ? [...namespaces()].flatMap(appsIn) : [...appsIn(namespace)]),
    onChange(handler) {
      const ends = kinds.map(({ source, store }) => store.onChange((change) => handler(change, source.resource.kind)));
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
