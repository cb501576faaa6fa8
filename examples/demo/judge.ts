// The judge: did each subset write only where it was the owner? Pure: the audit log in, a tally out. Ownership is taken from
// the story (who owns a namespace, in which order), never from what the mesh says of itself. Invariant: once the next owner
// has written in a namespace, a write of the one before counts as outside; and the next owner may not write before the
// namespace was relabelled.
import { lockNameFor } from "../../src/route/lock.ts";
import type { Tally } from "./view.ts";

/** One line of the audit log (audit.k8s.io/v1 Event), as far as it is read here. */
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
  /** The subsets that own a namespace, one after the other. */
  readonly ownersOf: ReadonlyMap<string, readonly string[]>;
  readonly lock: { readonly namespace: string; readonly name: string };
}

const POD_NAME = "authentication.kubernetes.io/pod-name";
const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/** Reads the text of the audit log; a last line that is not written to its end is left out. */
export function parseAudit(text: string): AuditEvent[] {
  const lines = text.split("\n");
  return lines.slice(0, -1).map((line) => JSON.parse(line) as AuditEvent);
}

export function judge(events: readonly AuditEvent[], { subsetOfPod, ownersOf, lock }: Expectation): Tally {
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
    if (objectRef.apiGroup === "authorization.k8s.io") continue; // a review is a question: it changes nothing
    const { resource, subresource, namespace = "", name = "" } = objectRef;
    const pod = user.extra?.[POD_NAME]?.[0] ?? "";
    const subset = subsetOfPod.get(pod);
    if (subset === undefined) {
      // The demo relabels the namespace: from here on its next owner may write.
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
