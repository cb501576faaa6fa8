// What a source object asks for, whatever its kind. Each source kind has one file that makes an App of its objects; pods, plan, status,
// restarts, injection and webhooks know nothing else of it.
import type { AppStatus } from "../../api/app-status.ts";
import type { Problem } from "../../api/problems.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { KubeObject, LabelSelector } from "../../kube/types.ts";
import type { CallerPolicy } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";

/** Names one app. No two apps of a namespace have the same name, whatever their kinds: the label of injected pods holds the name alone. */
export interface AppRef {
  /** Of the source object, for messages. */
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** An object of a source kind. */
export interface SourceObject extends KubeObject {
  readonly status?: AppStatus | undefined;
}

/** What a rule may ask about a namespace. */
export interface NamespaceFacts {
  readonly name: string;
  readonly labels: Labels;
}

/** Which pods are an app's, and which subset each of them is in. */
export interface PodSelection {
  /** The app's name. */
  readonly name: string;
  readonly selector: LabelSelector;
  subsetOf(podLabels: Labels): string;
}

/** What a valid spec asks for. */
export interface AppSpec {
  /** The default subset first, then the others in the order of the spec. */
  readonly subsets: readonly string[];
  /** Name of the operator's lock; "" if it has none. */
  readonly lockName: string;
  readonly callers: CallerPolicy;
  /** Every namespace stays with the owner that it has. */
  readonly isPaused: boolean;
  /** Pods keep what they lose read-only until they are restarted. */
  readonly retainsLosses: boolean;
  /** Paths of the spec that have no effect in this version. */
  readonly notSupported: readonly string[];
  /** The desired route table of these namespaces: nothing is fenced in it. */
  compile(namespaces: Iterable<NamespaceFacts>): RouteTable;
}

export interface App {
  readonly ref: AppRef;
  readonly object: SourceObject;
  /** As the spec says, also if it is refused. */
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
  /** What admission says to an object that is created (`before` is undefined then) or changed. */
  judgeEdit(before: unknown, after: unknown, surroundings: Surroundings): EditVerdict;
}

/** What is known beside an object that is created or changed. */
export interface Surroundings {
  /** The other apps of the namespace. */
  readonly others: readonly App[];
  /** Undefined while they are not known. */
  readonly namespaces: readonly NamespaceFacts[] | undefined;
}

export interface EditVerdict {
  /** Why the edit is refused; empty: it is not. */
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

/** True unless the object is being deleted. */
export function isLive({ object }: Pick<App, "object">): boolean {
  return object.metadata.deletionTimestamp === undefined;
}
