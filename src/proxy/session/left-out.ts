// Remembers of which namespaces something was left out of a list or a watch because nobody had said yet who owns them, or
// because they were moving. Invariant: a note stays until the namespace's owner is known. Called by the streams; `resync.ts`
// turns a note into a fresh list once the namespace is the subset's.
import type { Enforced, GroupResource } from "./session.ts";

export interface LeftOut {
  note(target: GroupResource, namespace: string): void;
  /** Everything but this namespace was left out unseen, since the API server was asked for it alone. */
  noteOnly(target: GroupResource, namespace: string): void;
  has(target: GroupResource, namespace: string): boolean;
  /**
   * Takes out the notes that the new snapshot settles.
   * @returns a test whether a resource has gained a namespace that had been left out; `namespace` "" asks for any
   */
  settle(now: Enforced): (group: string, resource: string, namespace: string) => boolean;
}

// An attacker who creates namespaces must not fill the memory; beyond this a note stands for all namespaces of the resource.
const MAX_NOTES = 10_000;
const ANY = "*";

export function createLeftOut(maxNotes = MAX_NOTES): LeftOut {
  const notes = new Map<string, { readonly target: GroupResource; readonly namespaces: Set<string> }>();
  const onlys = new Map<string, { readonly target: GroupResource; readonly only: string }>();

  return {
    note(target, namespace) {
      const key = keyOf(target.group, target.resource);
      let entry = notes.get(key);
      if (entry === undefined) {
        entry = { target: { group: target.group, resource: target.resource }, namespaces: new Set() };
        notes.set(key, entry);
      }
      entry.namespaces.add(entry.namespaces.size < maxNotes ? namespace : ANY);
    },
    noteOnly({ group, resource }, only) {
      if (onlys.size < maxNotes) onlys.set(`${keyOf(group, resource)}/${only}`, { target: { group, resource }, only });
    },
    has: (target, namespace) => notes.get(keyOf(target.group, target.resource))?.namespaces.has(namespace) ?? false,
    settle(now) {
      const gained = new Map<string, Set<string>>();
      for (const [key, { target, namespaces }] of notes) {
        const mine = takeSettled(namespaces, now.view(target.group, target.resource));
        if (mine.size > 0) gained.set(key, mine);
        if (namespaces.size === 0) notes.delete(key);
      }
      for (const [key, { target, only }] of onlys) {
        const view = now.view(target.group, target.resource);
        if (!view.whole && view.namespaces().mine.every((namespace) => namespace === only)) continue;
        onlys.delete(key);
        const resourceKey = keyOf(target.group, target.resource);
        gained.set(resourceKey, gained.get(resourceKey) ?? new Set());
      }
      return (group, resource, namespace) => {
        const mine = gained.get(keyOf(group, resource));
        return mine !== undefined && (namespace === "" || mine.has(namespace) || mine.has(ANY));
      };
    },
  };
}

function takeSettled(namespaces: Set<string>, view: ReturnType<Enforced["view"]>): Set<string> {
  const mine = new Set<string>();
  for (const namespace of namespaces) {
    const standing = namespace === ANY ? "mine" : view.standing(namespace);
    if (standing === "unknown" || standing === "moving") continue;
    namespaces.delete(namespace);
    if (standing === "mine") mine.add(namespace);
  }
  return mine;
}

function keyOf(group: string, resource: string): string {
  return `${group}/${resource}`;
}
