// Who owns each place by the plan that the proxies were sent. Pure. Invariants: nothing is decided here: owners are those of
// the desired table, and a place moves while the table of a subset that is to get it has it fenced. Places with the same
// ownership share one object, so ten thousand of them cost a few.
import type { OwnershipEntry } from "../../api/ownership-slice.ts";
import { CLUSTER_SCOPE, isInClusterScope } from "../../kube/place.ts";
import { classNumber } from "../../mesh/handover/class-facts.ts";
import type { Wait } from "../../mesh/handover/plan-fences.ts";
import { hasNothingYet } from "../../mesh/handover/resource-fences.ts";
import { type PlaceOwner as Owner, ownersIn, shownOwners } from "../../mesh/ownership/place-owners.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import { isFencedIn, type RouteTable } from "../../mesh/ownership/table.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";

export type Ownership = Pick<OwnershipEntry, "state" | "owners" | "from">;

/** Of the home cluster, or of another one. */
interface PlacePlan {
  /** The owners, without fences. */
  readonly desired: RouteTable;
  /** By subset, what its proxies enforce. */
  readonly rules: ReadonlyMap<string, Pick<Snapshot, "table" | "frozen">>;
  readonly waits: readonly Wait[];
}

export function ownershipByPlace(plan: PlacePlan): ReadonlyMap<string, Ownership> {
  const { desired } = plan;
  const fences = new Map([...plan.rules].flatMap(([subset, { table }]) => (hasFences(table) ? [[subset, table]] : [])));
  const waits = waitsByPlace(plan.waits);
  const frozen = new Set([...plan.rules.values()].flatMap((rules) => rules.frozen?.map(({ namespace }) => namespace) ?? []));
  const classes = new Map<number, OwnedClass>();
  const ownership = new Map<string, Ownership>();
  const places = desired.classOf.has(CLUSTER_SCOPE) ? desired.classOf.keys() : [CLUSTER_SCOPE, ...desired.classOf.keys()];
  for (const place of places) {
    const number = classNumber(desired, place);
    const ofClass = classes.get(number) ?? ownedClass(ownersIn(desired, place));
    classes.set(number, ofClass);
    const waiting = ofClass.subsets.filter((subset) => isWaiting(fences.get(subset), place));
    if (waiting.length > 0) ownership.set(place, ofClass.moving(...moveOf(place, waiting, waits)));
    else ownership.set(place, frozen.has(place) ? ofClass.frozen : ofClass.settled);
  }
  return ownership;
}

/** What the places of a class have in common. */
interface OwnedClass {
  readonly subsets: readonly string[];
  readonly settled: Ownership;
  readonly frozen: Ownership;
  moving(state: "Moving" | "Fenced", from: readonly string[]): Ownership;
}

function ownedClass(owners: readonly Owner[]): OwnedClass {
  const subsets = [...new Set(owners.flatMap(({ subset }) => subset ?? []))];
  const common = owners.length === 0 ? {} : { owners: shownOwners(owners) };
  const known = new Map<string, Ownership>();
  const settled: Ownership = { state: subsets.length === 0 ? "Unowned" : "Owned", ...common };
  return {
    subsets,
    settled,
    frozen: subsets.length === 0 ? settled : { state: "Frozen", ...common },
    moving(state, from) {
      const key = JSON.stringify([state, from]);
      const same = known.get(key) ?? { state, ...common, ...(from.length > 0 && { from }) };
      known.set(key, same);
      return same;
    },
  };
}

function hasFences(table: RouteTable): boolean {
  return table.fenced.size > 0 || hasNothingYet(table);
}

function isWaiting(table: RouteTable | undefined, place: string): boolean {
  return table !== undefined && (isFencedIn(table, place) || hasNothingYet(table));
}

type Move = readonly [state: "Moving" | "Fenced", from: readonly string[]];

function moveOf(place: string, waiting: readonly string[], { from, to }: Waits): Move {
  const subsets = from.get(place);
  if (subsets !== undefined) return ["Moving", [...subsets].sort().map(subsetDisplayName)];
  // No wait names places in the cluster scope.
  const isMoving = isInClusterScope(place) && waiting.some((subset) => to.has(subset));
  return [isMoving ? "Moving" : "Fenced", []];
}

interface Waits {
  /** The subsets whose pods may still write in a place. */
  readonly from: ReadonlyMap<string, ReadonlySet<string>>;
  /** The subsets that wait for a pod whose claims are known. */
  readonly to: ReadonlySet<string>;
}

function waitsByPlace(waits: readonly Wait[]): Waits {
  const from = new Map<string, Set<string>>();
  const to = new Set<string>();
  const read = new Map<readonly string[], Set<string>>(); // the pods of one group share a list
  for (const { subset, namespaces, to: waiting } of waits) {
    if (subset === undefined) continue; // not known yet
    for (const each of waiting) to.add(each);
    const known = read.get(namespaces) ?? new Set<string>();
    if (known.has(subset)) continue;
    read.set(namespaces, known.add(subset));
    for (const place of namespaces) from.set(place, (from.get(place) ?? new Set()).add(subset));
  }
  return { from, to };
}
