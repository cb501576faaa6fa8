// Which namespaces get another owner between two routes. Pure. It compares as admission does: by the resources that
// rules name and one other, without the labels of objects.
import { compileNow } from "../../manager/apps/compile/compile-now.ts";
import type { NamespaceFacts, RouteSpec } from "../../manager/apps/compile/route-spec.ts";
import { comparedOwners, isSameOwner } from "../../manager/apps/namespace-owners.ts";
import type { Owner } from "../../mesh/ownership/owners.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";

export interface Move {
  readonly from: string;
  readonly to: string;
  readonly namespaces: readonly string[];
}

interface Side {
  readonly route: RouteSpec;
  readonly namespaces: readonly NamespaceFacts[];
}

/** The most frequent moves first. Namespaces that only one side has do not move. */
export function movedNamespaces(before: Side, after: Side): Move[] {
  const tables = [before, after].map(({ route, namespaces }) => compileNow(route, namespaces));
  const [ownersBefore, ownersAfter] = comparedOwners(tables);
  const known = new Set(before.namespaces.map(({ name }) => name));
  const moves = new Map<string, { from: string; to: string; namespaces: string[] }>();
  for (const { name } of after.namespaces) {
    if (!known.has(name)) continue;
    const [old, next] = [ownersBefore?.(name) ?? [], ownersAfter?.(name) ?? []];
    const at = old.findIndex((owner, index) => !isSameOwner(owner, next[index]));
    if (at < 0) continue;
    const [from, to] = [ownerName(old[at]), ownerName(next[at])];
    const move = moves.get(`${from}\n${to}`) ?? { from, to, namespaces: [] };
    move.namespaces.push(name);
    moves.set(`${from}\n${to}`, move);
  }
  return [...moves.values()].sort((a, b) => b.namespaces.length - a.namespaces.length);
}

function ownerName(owner: Owner | undefined): string {
  switch (owner?.kind) {
    case "subset":
      return subsetDisplayName(owner.subset);
    case "labels":
      return "subsets by the labels of objects";
    case "everyone":
      return "every subset";
    default:
      return "nobody";
  }
}
