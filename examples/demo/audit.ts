// Reads the API server's audit log: who wrote what. Pure. Used by the tallies of the acts.
import { lockNameFor } from "../../src/mesh/ownership/lock.ts";

/** The fields in use of a line of the audit log (audit.k8s.io/v1 Event). */
export interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string; readonly extra?: Readonly<Record<string, readonly string[]>> };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code: number };
}

/** The operator, as the audit log shows it. */
export interface OperatorInAudit {
  /** The subset of each of its pods, also of those that have ended. */
  readonly subsetOfPod: ReadonlyMap<string, string>;
  readonly lock: { readonly namespace: string; readonly name: string };
}

/** A write that succeeded: of the operator's objects, of a subset's own lock, or by somebody else. */
export type AuditWrite =
  | {
      readonly by: "operator";
      readonly subset: string;
      readonly namespace: string;
      readonly resource: string;
      readonly text: string;
    }
  | { readonly by: "lock" }
  | { readonly by: "other"; readonly verb: string; readonly resource: string; readonly name: string };

const POD_NAME = "authentication.kubernetes.io/pod-name";
const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/** Parses the audit log. An incomplete last line is omitted. */
export function parseAudit(text: string): AuditEvent[] {
  const lines = text.split("\n");
  return lines.slice(0, -1).map((line) => JSON.parse(line) as AuditEvent);
}

/** The writes in the order of the log. Reads, refused writes and reviews, which change nothing, are left out. */
export function* writesIn(events: readonly AuditEvent[], { subsetOfPod, lock }: OperatorInAudit): Iterable<AuditWrite> {
  for (const { verb, user, objectRef, responseStatus } of events) {
    if (objectRef === undefined || !WRITES.has(verb) || (responseStatus?.code ?? 500) >= 400) continue;
    if (objectRef.apiGroup === "authorization.k8s.io") continue;
    const { resource, subresource, namespace = "", name = "" } = objectRef;
    const pod = user.extra?.[POD_NAME]?.[0] ?? "";
    const subset = subsetOfPod.get(pod);
    const isLock = resource === "leases" && namespace === lock.namespace;
    if (subset === undefined) yield { by: "other", verb, resource, name };
    else if (isLock && name === lockNameFor(lock.name, subset)) yield { by: "lock" };
    else {
      const what = subresource === undefined ? resource : `${resource}/${subresource}`;
      yield { by: "operator", subset, namespace, resource, text: `${pod}: ${verb} ${what} ${namespace}/${name}` };
    }
  }
}
