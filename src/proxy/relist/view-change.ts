// The effect of a new snapshot on one resource: whether the pod gained or lost namespaces that it may read. What it owned and now
// retains, or has back, is no change. Pure; called by resync.ts.
//
// The cost for a resource does not depend on the number of namespaces: namespaces with the same class before and after are
// compared once.
import { servesAlike } from "../../route/callers.ts";
import { ownsUnknown } from "../../route/plan-query.ts";
import { isNamespaces, type Ownership, readViewOf } from "../../route/snapshot.ts";
import type { Enforced } from "../session/session.ts";

/** The effect of a change on a watch. */
export interface ViewChange {
  /** The subset now owns existing objects that were not shown: watching clients must list again. */
  readonly gained: boolean;
  /** Objects that were shown no longer belong to the subset. */
  readonly lost: boolean;
  /** The namespaces with all of the change; absent if they are unknown, too many, or none. */
  readonly moved?: MovedNamespaces;
}

/** The only namespaces whose content a client must learn again. */
export interface MovedNamespaces {
  readonly gained: readonly string[];
  readonly lost: readonly string[];
}

export const UNTOUCHED: ViewChange = { gained: false, lost: false };

export interface RouteChange {
  /** The change for a resource; `namespace` "" means all. */
  of(group: string, resource: string, namespace: string): ViewChange;
  /**
   * The namespaces that are shown now and were not before, also unknown ones, and those that are no longer shown.
   * @returns undefined if other things moved, or more than MAX_MOVED namespaces
   */
  movedIn(group: string, resource: string): MovedNamespaces | undefined;
  /** Namespaces that have left the table, most often because they were deleted. */
  readonly removed: readonly string[];
  /** Namespaces that the old table did not have. */
  readonly born: readonly string[];
}

/** The most namespaces for which a watch continues without a new list. */
export const MAX_MOVED = 16;

/** Compares two snapshots. Cases that need more than these two are in the table at the head of resync.ts. */
export function changeBetween(before: Enforced, now: Enforced): RouteChange {
  const known = new Map<string, ViewChange>();
  // The excluded callers are checked for each request, not for each watch. When their list changes, all clients start again.
  const sameCallers = servesAlike(before.snapshot, now.snapshot);
  let pairs: readonly ClassPair[] | undefined;
  const allPairs = () => {
    pairs ??= classPairs(before, now);
    return pairs;
  };

  const compare = (group: string, resource: string, namespace: string): ViewChange => {
    if (!sameCallers) return { gained: true, lost: true };
    const [old, next] = [readViewOf(before.view(group, resource)), readViewOf(now.view(group, resource))];
    // The moved objects depend on their labels, which are unknown here.
    if (old.labelFilter?.labelSelector !== next.labelFilter?.labelSelector) return { gained: true, lost: true };
    if (namespace !== "" && !isNamespaces({ group, resource })) {
      const [was, is] = [old.ownershipOf(namespace), next.ownershipOf(namespace)];
      const { gained, lost } = step(was, is);
      // An unnamed namespace was not deleted: it was shown and is lost.
      const isHidden = was === "own" && is === "unknown" && !before.snapshot.table.classOf.has(namespace);
      return { gained, lost: lost || isHidden };
    }
    let gained = false;
    // Unknown namespaces were shown and are lost.
    let lost = ownsUnknown(old) && !ownsUnknown(next);
    for (const { sample } of allPairs()) {
      const one = step(old.ownershipOf(sample), next.ownershipOf(sample));
      gained ||= one.gained;
      lost ||= one.lost;
    }
    return { gained, lost };
  };

  return {
    of(group, resource, namespace) {
      const key = `${group}/${resource}/${namespace}`;
      let change = known.get(key);
      if (change === undefined) {
        change = compare(group, resource, namespace);
        known.set(key, change);
      }
      return change;
    },
    movedIn(group, resource) {
      const [old, next] = [readViewOf(before.view(group, resource)), readViewOf(now.view(group, resource))];
      const isByNamespace = old.labelFilter === undefined && next.labelFilter === undefined;
      if (!sameCallers || !isByNamespace || ownsUnknown(old) || ownsUnknown(next)) return undefined;
      const moved = { gained: [] as string[], lost: [] as string[] };
      for (const { sample, members } of allPairs()) {
        const [was, is] = [old.ownershipOf(sample), next.ownershipOf(sample)];
        const hasGone = was === "own" && is === "unknown";
        if ((was === "own") === (is === "own") || hasGone) continue;
        if (members === undefined || sample === "") return undefined;
        (is === "own" ? moved.gained : moved.lost).push(...members);
      }
      return moved.gained.length + moved.lost.length > MAX_MOVED ? undefined : moved;
    },
    removed: missingIn(now, before),
    born: missingIn(before, now),
  };
}

// The namespaces of `of` that `table` does not have.
function missingIn({ snapshot: { table } }: Enforced, of: Enforced): string[] {
  return [...of.snapshot.table.classOf.keys()].filter((name) => !table.classOf.has(name));
}

function step(before: Ownership, now: Ownership): ViewChange {
  // A namespace that left the table was deleted: no other subset has it, and its last events are still to be shown.
  if (before === "own") return { gained: false, lost: now === "other-subset" || now === "moving" };
  return { gained: now === "own" && before !== "unknown", lost: false };
}

/** The namespaces with the same state for every resource, before and now. */
interface ClassPair {
  readonly sample: string;
  /** All of them; undefined if there are many. */
  members: string[] | undefined;
}

// Without fenced ones, which include the cluster scope.
function classPairs(before: Enforced, now: Enforced): ClassPair[] {
  const pairs = new Map<string, ClassPair>([["cluster", { sample: "", members: [""] }]]);
  const seen = new Set<string>();
  const take = (namespace: string) => {
    if (seen.has(namespace)) return;
    seen.add(namespace);
    const key = `${classKey(before, namespace)}>${classKey(now, namespace)}`;
    const pair = pairs.get(key);
    if (pair === undefined) pairs.set(key, { sample: namespace, members: [namespace] });
    else if (pair.members !== undefined && pair.members.push(namespace) > MAX_MOVED) pair.members = undefined;
  };
  for (const { snapshot } of [before, now]) {
    for (const namespace of snapshot.table.classOf.keys()) take(namespace);
    for (const namespace of snapshot.table.fenced) take(namespace);
  }
  return [...pairs.values()];
}

/** Namespaces with equal keys have the same state for every resource. */
export function classKey({ snapshot: { table } }: Enforced, namespace: string): string {
  // Fenced namespaces can differ: shared resources do not move, and the class decides which resources are shared.
  const byTable = `${table.fenced.has(namespace) ? "!" : ""}${table.classOf.get(namespace) ?? "unknown"}`;
  if (table.retained === undefined) return byTable;
  return `${byTable}+${table.retained.findIndex(({ namespaces }) => namespaces.has(namespace))}`;
}
