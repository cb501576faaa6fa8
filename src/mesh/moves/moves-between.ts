// The namespaces of one resource that the pod may read by one snapshot and not by the other. A namespace that
// the pod owned and now retains has not moved. Pure. The cost does not grow with the namespaces: those with
// the same class before and after are compared once.
import { CLUSTER_SCOPE, isBucket } from "../../kube/place.ts";
import type { GroupResource } from "../../kube/types.ts";
import { servesAlike } from "../ownership/callers.ts";
import type { Enforced } from "../ownership/enforced.ts";
import { hasSameHidden } from "../ownership/hidden-objects.ts";
import { ownsUnknown } from "../ownership/plan-query.ts";
import { type Ownership, type ResourceView, readViewOf } from "../ownership/snapshot.ts";

export interface Moves {
  /** Something other than namespaces has moved, so everything counts as moved. */
  readonly isEverything: boolean;
  /** Gained and lost buckets, and namespaces known before and now; undefined if more than MAX_NAMED. */
  readonly moved: readonly string[] | undefined;
  /** Namespaces that are new in the table => whether the subset owns them. */
  readonly born: ReadonlyMap<string, boolean>;
  /** Namespaces of the subset that have left the table, most often because they were deleted. */
  readonly departed: readonly string[];
}

/** The most namespaces whose content is sent to a client that continues a watch: of a lost one as DELETED events, as of what it has seen. */
export const MAX_MOVED = 16;
/** The most moved namespaces that are remembered by name. */
export const MAX_NAMED = 1_000;

export function movesBetween(before: Enforced, now: Enforced) {
  const sameCallers = servesAlike(before.snapshot, now.snapshot);
  const [born, removed] = [missingIn(before, now), missingIn(now, before)];
  const pairs = classPairs(before, now);
  return {
    /** All namespaces that have left the table. */
    removed,
    of({ group, resource }: GroupResource): Moves {
      const [old, next] = [readViewOf(before.view(group, resource)), readViewOf(now.view(group, resource))];
      const isComparable = sameCallers && hasSameTerms(old, next);
      const moved = pairs.filter(({ sample }) => hasMoved(sample, old, next));
      const names = namesOf(moved, next);
      // Buckets are few, and a list of them that is too long has no horizon of its own.
      const areBucketsLost = names === undefined && moved.some(({ sample }) => isBucket(sample));
      const isScopeMoved = isOwn(old.ownershipOf(CLUSTER_SCOPE)) !== isOwn(next.ownershipOf(CLUSTER_SCOPE));
      const isEverything = !isComparable || isScopeMoved || areBucketsLost;
      return {
        isEverything,
        moved: isEverything ? [] : names,
        born: new Map(
          born.filter((name) => old.ownershipOf(name) === "unknown").map((name) => [name, isOwn(next.ownershipOf(name))]),
        ),
        departed: removed.filter((name) => isOwn(old.ownershipOf(name)) && next.ownershipOf(name) === "unknown"),
      };
    },
  };
}

// With other terms objects move by their labels, in unknown namespaces, or alone, and cannot be named.
function hasSameTerms(old: ResourceView, next: ResourceView): boolean {
  const haveSameLabels = old.labelFilter?.labelSelector === next.labelFilter?.labelSelector;
  return (
    haveSameLabels &&
    hasSameHidden(old.hidden, next.hidden) &&
    ownsUnknown(old) === ownsUnknown(next) &&
    (old.isMoving ?? false) === (next.isMoving ?? false)
  );
}

function hasMoved(place: string, old: ResourceView, next: ResourceView): boolean {
  const [was, is] = [old.ownershipOf(place), next.ownershipOf(place)];
  return isOwn(was) !== isOwn(is) && was !== "unknown" && is !== "unknown";
}

/** Undefined if more has moved than can be named. */
function namesOf(moved: readonly ClassPair[], next: ResourceView): string[] | undefined {
  const names: string[] = [];
  for (const { members } of moved) {
    if (members === undefined || next.labelFilter !== undefined) return undefined;
    names.push(...members);
  }
  return names.length > MAX_NAMED ? undefined : names;
}

function isOwn(ownership: Ownership): boolean {
  return ownership === "own";
}

// The namespaces that the table of `of` names and the first one does not.
function missingIn({ snapshot: { table } }: Enforced, of: Enforced): string[] {
  const { classOf, fenced } = of.snapshot.table;
  const names = new Set([...classOf.keys(), ...fenced]);
  return [...names].filter((name) => name !== CLUSTER_SCOPE && !table.classOf.has(name) && !table.fenced.has(name));
}

/** The namespaces with the same state for every resource, before and now. */
interface ClassPair {
  readonly sample: string;
  /** Undefined if there are more than MAX_NAMED. */
  members: string[] | undefined;
}

function classPairs(before: Enforced, now: Enforced): ClassPair[] {
  const pairs = new Map<string, ClassPair>();
  const seen = new Set<string>();
  const take = (namespace: string) => {
    if (namespace === CLUSTER_SCOPE || seen.has(namespace)) return;
    seen.add(namespace);
    const key = `${classKey(before, namespace)}>${classKey(now, namespace)}`;
    const pair = pairs.get(key);
    if (pair === undefined) pairs.set(key, { sample: namespace, members: [namespace] });
    else if (pair.members !== undefined && pair.members.push(namespace) > MAX_NAMED) pair.members = undefined;
  };
  for (const { snapshot } of [before, now]) {
    for (const namespace of snapshot.table.classOf.keys()) take(namespace);
    for (const namespace of snapshot.table.fenced) take(namespace);
    // Buckets that no class names may be retained.
    for (const { namespaces } of snapshot.table.retained ?? []) for (const place of namespaces) take(place);
  }
  return [...pairs.values()];
}

/** Namespaces with equal keys have the same state for every resource, and so have buckets. */
function classKey({ snapshot: { table } }: Enforced, place: string): string {
  // Fenced namespaces can differ by their class: it decides which resources are shared and do not move.
  const byTable = `${isBucket(place) ? "#" : ""}${table.fenced.has(place) ? "!" : ""}${table.classOf.get(place) ?? "unknown"}`;
  if (table.retained === undefined) return byTable;
  return `${byTable}+${table.retained.findIndex(({ namespaces }) => namespaces.has(place))}`;
}
