// Counts the writes in the audit log, and finds writes of a subset that was not the owner. Pure. Invariant: the owners come from the story,
// never from the mesh; after the first write of the next owner a write of the former owner counts as outside, and the next owner may not
// write before the namespace is relabelled. Called by steps.ts.
import { type AuditEvent, type OperatorInAudit, writesIn } from "../audit.ts";
import type { Tally } from "./view.ts";

export interface Expectation extends OperatorInAudit {
  /** The subsets that own a namespace, in order of time. */
  readonly ownersOf: ReadonlyMap<string, readonly string[]>;
}

export function tallyWrites(events: readonly AuditEvent[], { ownersOf, ...operator }: Expectation): Tally {
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

  for (const write of writesIn(events, operator)) {
    if (write.by === "lock") lockWrites++;
    if (write.by === "other") {
      // The demo relabels the namespace: from here on the next owner may write.
      if (write.resource === "namespaces" && write.verb === "patch") turnOf(write.name).allowed++;
    }
    if (write.by !== "operator") continue;
    const { subset, namespace, text } = write;
    writes++;
    const inNamespace = counts.get(subset) ?? new Map<string, number>();
    counts.set(subset, inNamespace.set(namespace, (inNamespace.get(namespace) ?? 0) + 1));
    if (!isOwner(subset, namespace)) outside.push(text);
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
