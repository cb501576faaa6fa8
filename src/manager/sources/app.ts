// What a source object asks for, independent of its kind. Each source kind has one file that turns its objects into Apps. All
// other parts of the manager work with Apps only.
import type { AppStatus } from "../../api/app-status.ts";
import type { Problem } from "../../api/problems.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { KubeObject, LabelSelector } from "../../kube/types.ts";
import type { CallerPolicy } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { Change } from "../../runtime/store.ts";

/**
 * Names one app. The label of injected pods contains the name without the kind. So the validating webhook refuses an app with the
 * name of another kind's app, and the injecting webhook refuses a pod that both apps select.
 */
export interface AppRef {
  /** The kind of the source object, for messages. */
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** An object of a source kind. */
export interface SourceObject extends KubeObject {
  readonly status?: AppStatus | undefined;
}

/** The facts about a namespace that rules use. */
export interface NamespaceFacts {
  readonly name: string;
  readonly labels: Labels;
}

/** Selects the pods of an app, and gives the subset of each pod. */
export interface PodSelection {
  /** The app's name. */
  readonly name: string;
  readonly selector: LabelSelector;
  subsetOf(podLabels: Labels): string;
}

/** The content of a valid spec. */
export interface AppSpec {
  /** The default subset first, then the others in the order of the spec. */
  readonly subsets: readonly string[];
  /** Name of the operator's lock; "" if it has none. */
  readonly lockName: string;
  readonly callers: CallerPolicy;
  /** Every namespace stays with its present owner. */
  readonly isPaused: boolean;
  /** Pods retain lost namespaces read-only until they are restarted. */
  readonly retainsLosses: boolean;
  /** Paths of the spec that have no effect in this version. */
  readonly notSupported: readonly string[];
  /** The desired route table of these namespaces, without fences. */
  compile(namespaces: Iterable<NamespaceFacts>): RouteTable;
}

export interface App {
  readonly ref: AppRef;
  readonly object: SourceObject;
  /** The pods that the spec selects, also if the spec is refused. */
  readonly pods: PodSelection;
  /** Undefined if the spec is refused. */
  readonly spec: AppSpec | undefined;
  /** Why the spec is refused. */
  readonly problems: readonly string[];
}

/** A custom resource that describes apps. */
export interface Source<O extends SourceObject = SourceObject> {
  readonly resource: Resource<O>;
  /** Name of its controller in logs and metrics. */
  readonly controllerName: string;
  /** The annotations of the object that the snapshot depends on. */
  readonly annotations: readonly string[];
  /** Never throws. */
  appOf(object: O): App;
  /** The answer of admission to a created object (`before` is then undefined) or a changed object. */
  judgeEdit(before: unknown, after: unknown, surroundings: Surroundings): EditVerdict;
}

/** Facts that the check of a created or changed object needs. */
export interface Surroundings {
  /** The other apps of the namespace. */
  readonly others: readonly App[];
  /** Undefined until the namespaces are known. */
  readonly namespaces: readonly NamespaceFacts[] | undefined;
}

export interface EditVerdict {
  /** Why the edit is refused; empty if it is allowed. */
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

/** True unless the object is being deleted. */
export function isLive({ object }: Pick<App, "object">): boolean {
  return object.metadata.deletionTimestamp === undefined;
}

export interface Apps {
  /** Every source kind has been listed. */
  readonly hasSynced: boolean;
  get(name: string, namespace: string): App | undefined;
  /** All apps, or those of one namespace. */
  list(namespace?: string): App[];
  /**
   * Calls the handler for every existing object, as added, and then for every change. The returned function ends the
   * subscription.
   */
  onChange(handler: (change: Change<SourceObject>, kind: string) => void): () => void;
}

export function createApps(informers: Pick<Informers, "store">, sources: readonly Source[]): Apps {
  const kinds = sources.map((source) => ({ source, store: informers.store(source.resource) }));
  return {
    get hasSynced() {
      return kinds.every(({ store }) => store.hasSynced);
    },
    get(name, namespace) {
      for (const { source, store } of kinds) {
        const object = store.get(name, namespace);
        if (object !== undefined) return source.appOf(object);
      }
      return undefined;
    },
    list: (namespace) => kinds.flatMap(({ source, store }) => store.list(namespace).map((object) => source.appOf(object))),
    onChange(handler) {
      const ends = kinds.map(({ source, store }) => store.onChange((change) => handler(change, source.resource.kind)));
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
