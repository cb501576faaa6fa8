// How many namespaces each subset owns by a route table. Pure.
import { classFacts, FIRST_CLASS } from "../../mesh/handover/class-facts.ts";
import { namespacesByClass } from "../../mesh/ownership/place-lists.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";

/** The number of namespaces of each subset; the key undefined is for those that no subset owns. */
export function countByHolder(desired: RouteTable): ReadonlyMap<string | undefined, number> {
  const counts = new Map<string | undefined, number>();
  const { holders } = classFacts(desired);
  for (const [index, namespaces] of namespacesByClass(desired).entries()) {
    if (namespaces === 0) continue;
    const ofClass = holders(index + FIRST_CLASS);
    for (const holder of ofClass.size === 0 ? [undefined] : ofClass) counts.set(holder, (counts.get(holder) ?? 0) + namespaces);
  }
  return counts;
}
