// Counts the writes in the audit log, and finds writes of a subset that was not the owner. Pure. Invariant: the owners come from the story,
// never from the mesh; after the first write of the next owner a write of the former owner counts as outside, and the next owner may not
// write before the namespace is relabelled. Called by story.ts.
import { lockNameFor } from "../../src/route/lock.ts";
import type { Tally } from "./view.ts";

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

export interface Expectation {
  /** The subset of each of the operator's pods. */
  readonly subsetOfPod: ReadonlyMap<string, string>;
  /** The subsets that own a namespace, in order of time. */
  readonly ownersOf: ReadonlyMap<string, readonly string[]>;
  readonly lock: { readonly namespace: string; readonly name: string };
}

const POD_NAME = "authentication.kubernetes.io/pod-name";
const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/** Parses the audit log. An incomplete last line is omitted. */
export function parseAudit(text: string): AuditEvent[] {
  const lines = text.split("\n");
  return lines.slice(0, -1).map((line) => JSON.parse(line) as AuditEvent);
}

export function tallyWrites(events: readonly AuditEvent[], { subsetOfPod, ownersOf, lock }: Expectation): Tally {
  const turns = new Map<string, { current: number; allowed: number }>();
  const counts = new Map<string, Map<string, number>>();
  const outside: string[] = [];
  let writes = 0;
  let lockWrites = 0;
  const turnOf = (namespace: string) => {
    const turn = turns.get(namespace) ?? { current: 0, allowed: 0 };
    turns.set(namespace, turn);
    return turn;
  };
  const isOwner = (subset: string, namespace: string) => {
    const owners = ownersOf.get(namespace) ?? [];
    const turn = turnOf(namespace);
    if (owners[turn.current + 1] === subset && turn.current < turn.allowed) turn.current++;
    return owners[turn.current] === subset;
  };

  for (const event of events) {
    const { verb, user, objectRef, responseStatus } = event;
    if (objectRef === undefined || !WRITES.has(verb) || (responseStatus?.code ?? 500) >= 400) continue;
    if (objectRef.apiGroup === "authorization.k8s.io") continue; // a review changes nothing
    const { resource, subresource, namespace = "", name = "" } = objectRef;
    const pod = user.extra?.[POD_NAME]?.[0] ?? "";
    const subset = subsetOfPod.get(pod);
    if (subset === undefined) {
      // The demo relabels the namespace: from here on the next owner may write.
      if (resource === "namespaces" && verb === "patch") turnOf(name).allowed++;
      continue;
    }
    if (resource === "leases" && namespace === lock.namespace && name === lockNameFor(lock.name, subset)) {
      lockWrites++;
      continue;
    }
    writes++;
    const inNamespace = counts.get(subset) ?? new Map<string, number>();
    counts.set(subset, inNamespace.set(namespace, (inNamespace.get(namespace) ?? 0) + 1));
    const what = subresource === undefined ? resource : `${resource}/${subresource}`;
    if (!isOwner(subset, namespace)) outside.push(`${pod}: ${verb} ${what} ${namespace}/${name}`);
  }
  return { writes, lockWrites, outside, bySubset: sorted(counts) };
}

function sorted(counts: ReadonlyMap<string, ReadonlyMap<string, number>>): Tally["bySubset"] {
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([subset, namespaces]) => ({
      subset,
      namespaces: [...namespaces].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, writes]) => ({ name, writes })),
    }));
}
