// Compares a table that pods claim with the desired table, class by class: in which namespaces does a subset
// own something in another way? Pure. Invariant: the first comparison of two tables
// costs as much as there are namespaces, and each later one as much as the subset has classes. Results are
// kept as long as both tables are, since an app is planned again at each acknowledgement.
import { isFencedIn, type RouteTable } from "../../route/table.ts";
import { classFacts, classNumber } from "./class-facts.ts";
import { remember } from "./remember.ts";

export interface TableComparison {
  /** The namespaces that the subset owns, but not as desired. */
  conflictsOf(subset: string): readonly string[];
  /** The subset owns the namespace under the claimed table, and as desired. */
  hasAsDesired(subset: string, namespace: string): boolean;
}

const comparisons = remember((desired: RouteTable) => remember((claimed: RouteTable) => createComparison(desired, claimed)));

export function compareWith(desired: RouteTable, claimed: RouteTable): TableComparison {
  return comparisons(desired)(claimed);
}

function createComparison(desired: RouteTable, claimed: RouteTable): TableComparison {
  const [wanted, had] = [classFacts(desired), classFacts(claimed)];
  const isSame = (from: number, to: number) => had.signature(from) === wanted.signature(to);
  const bySubset = new Map<string, readonly string[]>();
  // Tables of the subsets of one plan differ in fences only.
  const hasConflicts = wanted !== had || desired.classOf !== claimed.classOf;
  const conflictsOf = (subset: string) => {
    const conflicts: string[] = [];
    for (const [from, targets] of pairsOf(desired.classOf, claimed.classOf)) {
      if (!had.holders(from).has(subset)) continue;
      for (const [to, names] of targets) {
        if (isSame(from, to)) continue;
        for (const name of names) if (!isFencedIn(claimed, name)) conflicts.push(name);
      }
    }
    return conflicts;
  };
  return {
    conflictsOf(subset) {
      const conflicts = bySubset.get(subset) ?? (hasConflicts ? conflictsOf(subset) : []);
      bySubset.set(subset, conflicts);
      return conflicts;
    },
    hasAsDesired(subset, namespace) {
      if (isFencedIn(claimed, namespace)) return false;
      if (!desired.classOf.has(namespace) && !claimed.classOf.has(namespace)) return false;
      const from = classNumber(claimed, namespace);
      return had.holders(from).has(subset) && isSame(from, classNumber(desired, namespace));
    },
  };
}

type ClassOf = RouteTable["classOf"];

/**
 * By the numbers of the classes in the claimed and in the desired table: the namespaces, in the order of the
 * desired table.
 */
export type ClassPairs = ReadonlyMap<number, ReadonlyMap<number, readonly string[]>>;

// By the classes of the namespaces alone: the tables of the subsets of one plan share them.
const pairsByClasses = remember((desired: ClassOf) => remember((claimed: ClassOf): ClassPairs => makePairs(desired, claimed)));

/** The pairs of classes of two tables, computed once for each two lists of namespaces. */
export function pairsOf(desired: ClassOf, claimed: ClassOf): ClassPairs {
  return pairsByClasses(desired)(claimed);
}

function makePairs(desired: ClassOf, claimed: ClassOf): ClassPairs {
  const pairs = new Map<number, Map<number, string[]>>();
  const add = (name: string) => {
    const [from, to] = [classNumber({ classOf: claimed }, name), classNumber({ classOf: desired }, name)];
    const targets = pairs.get(from) ?? new Map<number, string[]>();
    pairs.set(from, targets);
    const names = targets.get(to);
    if (names === undefined) targets.set(to, [name]);
    else names.push(name);
  };
  for (const name of desired.keys()) add(name);
  // A namespace that is only in the claim's table counts too: under the desired table, the default subset
  // owns what no rule covers in it.
  for (const name of claimed.keys()) if (!desired.has(name)) add(name);
  return pairs;
}
