// What a new snapshot changes for one resource: did the pod gain or lose namespaces that it may read? Pure. What it owned and
// goes on showing, or has back, is no change. The cost for a resource does not depend on the number of namespaces: those that
// fell into the same class before and after are judged once.
import { servesAlike } from "../../route/callers.ts";
import { ownsUnknown } from "../../route/plan-query.ts";
import { isNamespaces, type Ownership, readViewOf } from "../../route/snapshot.ts";
import type { Enforced } from "../session/session.ts";

/** How a watch is touched by a change. */
export interface ViewChange {
  /** Objects that existed and were not shown are the subset's now: whoever watches must list again. */
  readonly gained: boolean;
  /** Objects that were shown are not the subset's any more. */
  readonly lost: boolean;
  /** The namespaces in which all of it is; absent if it is not known in which, or in too many, or there is nothing. */
  readonly moved?: MovedNamespaces;
}

/** Namespaces of which a client has to be told what they hold, or held, and nothing else. */
export interface MovedNamespaces {
  readonly gained: readonly string[];
  readonly lost: readonly string[];
}

export const UNTOUCHED: ViewChange = { gained: false, lost: false };

export interface RouteChange {
  /** The change for a resource; `namespace` "" means in all of them. */
  of(group: string, resource: string, namespace: string): ViewChange;
  /**
   * The namespaces that are shown now and were not before, also those of which nobody had heard, and those that were and are no more.
   * @returns undefined if more moved than namespaces, or more of them than MAX_MOVED
   */
  movedIn(group: string, resource: string): MovedNamespaces | undefined;
  /** Known namespaces that the new table does not know any more: deleted ones, as a rule. */
  readonly removed: readonly string[];
  /** Namespaces that the old table did not know. */
  readonly born: readonly string[];
}

/** A client that goes on without a new list is told of so many namespaces at most. */
export const MAX_MOVED = 16;

/** Compares two snapshots. What hangs on more than these two is told elsewhere: see the table in the head of resync.ts. */
export function changeBetween(before: Enforced, now: Enforced): RouteChange {
  const known = new Map<string, ViewChange>();
  // Who is served is asked of each request, not of a watch: when the list changes, all of them start anew.
  const sameCallers = servesAlike(before.snapshot, now.snapshot);
  let pairs: readonly ClassPair[] | undefined;
  const allPairs = () => {
    pairs ??= classPairs(before, now);
    return pairs;
  };

  const judge = (group: string, resource: string, namespace: string): ViewChange => {
    if (!sameCallers) return { gained: true, lost: true };
    const [old, next] = [readViewOf(before.view(group, resource)), readViewOf(now.view(group, resource))];
    // Which objects came and which went depends on their labels, which nobody here knows.
    if (old.labelFilter?.labelSelector !== next.labelFilter?.labelSelector) return { gained: true, lost: true };
    if (namespace !== "" && !isNamespaces({ group, resource })) {
      const [was, is] = [old.ownershipOf(namespace), next.ownershipOf(namespace)];
      const { gained, lost } = step(was, is);
      // One that nobody had named was not deleted: it was shown, and is no more.
      const isHidden = was === "own" && is === "unknown" && !before.snapshot.table.classOf.has(namespace);
      return { gained, lost: lost || isHidden };
    }
    let gained = false;
    // Namespaces that nobody knows yet were shown, and are no more.
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
        change = judge(group, resource, namespace);
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

// The namespaces of `of` that `table` does not know.
function missingIn({ snapshot: { table } }: Enforced, of: Enforced): string[] {
  return [...of.snapshot.table.classOf.keys()].filter((name) => !table.classOf.has(name));
}

function step(before: Ownership, now: Ownership): ViewChange {
  // What disappears from the table was deleted: nobody else has it, and its last events are still to be shown.
  if (before === "own") return { gained: false, lost: now === "other-subset" || now === "moving" };
  return { gained: now === "own" && before !== "unknown", lost: false };
}

/** The namespaces that stood alike for every resource, and do so now. */
interface ClassPair {
  readonly sample: string;
  /** All of them; undefined if they are many. */
  members: string[] | undefined;
}

// Fenced ones apart, the cluster scope among them.
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

/** Namespaces of equal keys stand alike for every resource. */
export function classKey({ snapshot: { table } }: Enforced, namespace: string): string {
  // Not all that is fenced stands alike: what everybody sees does not move, and its class says whether everybody does.
  const standing = `${table.fenced.has(namespace) ? "!" : ""}${table.classOf.get(namespace) ?? "unknown"}`;
  if (table.retained === undefined) return standing;
  return `${standing}+${table.retained.findIndex(({ namespaces }) => namespaces.has(namespace))}`;
}
