// How many namespaces change their subset between two desired tables. Pure. Namespaces that are born or deleted
// meanwhile do not move.
import { isInClusterScope } from "../../kube/place.ts";
import type { RouteTable } from "../ownership/table.ts";
import { pairsOf } from "./claims.ts";
import { classFacts } from "./class-facts.ts";

export interface MoveCounts {
  readonly gained: number;
  readonly lost: number;
}

/** For each subset that gains or loses namespaces. */
export function countMoves(before: RouteTable, after: RouteTable): ReadonlyMap<string, MoveCounts> {
  const moves = new Map<string, MoveCounts>();
  if (before === after) return moves;
  const [had, has] = [classFacts(before), classFacts(after)];
  for (const [from, targets] of pairsOf(after.classOf, before.classOf)) {
    for (const [to, names] of targets) {
      const lost = [...had.holders(from).difference(has.holders(to))];
      const gained = [...has.holders(to).difference(had.holders(from))];
      if (lost.length === 0 && gained.length === 0) continue;
      const count = names.filter((name) => isNamespaceOf(before, name) && isNamespaceOf(after, name)).length;
      if (count === 0) continue;
      for (const subset of lost) add(moves, subset, { gained: 0, lost: count });
      for (const subset of gained) add(moves, subset, { gained: count, lost: 0 });
    }
  }
  return moves;
}

function isNamespaceOf({ classOf }: RouteTable, name: string): boolean {
  return classOf.has(name) && !isInClusterScope(name);
}

function add(moves: Map<string, MoveCounts>, subset: string, { gained, lost }: MoveCounts): void {
  const sum = moves.get(subset) ?? { gained: 0, lost: 0 };
  moves.set(subset, { gained: sum.gained + gained, lost: sum.lost + lost });
}
