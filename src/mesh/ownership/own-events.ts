// Events about the operator itself: an elector and an operator report on their lock and on their own pod, in
// the namespace of the pods, whichever subset owns that. Pure. Invariant: by this rule a write passes only if
// it creates or patches an Event about the app's own lock or about this pod.
import type { EventSubject, SubjectField } from "../../kube/codec/event-reader.ts";
import type { ResourceInfo } from "../../kube/request-info.ts";
import type { Snapshot } from "./snapshot.ts";

export interface EventWrite {
  /** Recorders use no other verb. */
  readonly verb: "create" | "patch";
  /** The field of the Event that names its subject. */
  readonly field: SubjectField;
}

/** The groups that serve Events: the same objects, with different fields. */
const SUBJECT_FIELDS: ReadonlyMap<string, SubjectField> = new Map([
  ["", "involvedObject"],
  ["events.k8s.io", "regarding"],
]);

/** Undefined for anything but the create or patch of one Event in the pods' namespace. */
export function eventWriteOf({ podNamespace }: Pick<Snapshot, "podNamespace">, info: ResourceInfo): EventWrite | undefined {
  const { group, resource, subresource, namespace, verb, nameInPath } = info;
  const field = resource === "events" ? SUBJECT_FIELDS.get(group) : undefined;
  if (field === undefined || namespace !== podNamespace || subresource !== "") return undefined;
  if (verb === "create") return nameInPath ? undefined : { verb, field };
  return verb === "patch" ? { verb, field } : undefined;
}

/** The kinds of client-go's locks, as APIVERSION KIND. */
const LOCK_KINDS: ReadonlySet<string> = new Set(["coordination.k8s.io/v1 Lease", "v1 ConfigMap", "v1 Endpoints"]);

/** True for the app's lock, by the name that the operator knows, and for the pod of this name. */
export function isOwnSubject(
  { podNamespace, lockName }: Pick<Snapshot, "podNamespace" | "lockName">,
  podName: string,
  { apiVersion, kind, namespace, name }: EventSubject,
): boolean {
  if (namespace !== podNamespace || name === "") return false;
  const type = `${apiVersion} ${kind}`;
  return type === "v1 Pod" ? name === podName : LOCK_KINDS.has(type) && name === lockName;
}

/** True for a merge or strategic merge patch that leaves the subject of the Event as it is. */
export function leavesSubject(patch: unknown): boolean {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return false;
  const fields = [...SUBJECT_FIELDS.values()].map((field) => field.toLowerCase());
  // A directive such as $patch may replace the whole object.
  return Object.keys(patch).every((key) => !key.startsWith("$") && !fields.includes(key.toLowerCase()));
}
