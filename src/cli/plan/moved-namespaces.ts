// Which namespaces get another owner between two routes. Pure. It compares as admission does: by the resources that
// rules name and one other, without the labels of objects.
import { compileNow } from "../../manager/apps/compile/compile-now.ts";
import type { NamespaceFacts, RouteSpec } from "../../manager/apps/compile/route-spec.ts";
import { comparedOwners, isSameOwner } from "../../manager/apps/namespace-owners.ts";
import type { Owner } from "../../mesh/ownership/owners.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";

export interface Move {
  readonly from: string;
  readonly to: string;
  readonly namespaces: readonly string[];
}

/** From whom to whom a namespace moves. */
export type Owners = Pick<Move, "from" | "to">;

interface Side {
  readonly route: RouteSpec;
  readonly namespaces: readonly NamespaceFacts[];
}

/** The most frequent moves first. Namespaces that only one side has do not move. */
export function movedNamespaces(before: Side, after: Side): Move[] {
  const [old, next] = [before, after].map(({ route, namespaces }) => compileNow(route, namespaces)) as [RouteTable, RouteTable];
  const moveOf = comparedMoves(old, next);
  const known = new Set(before.namespaces.map(({ name }) => name));
  const moved = after.namespaces.flatMap(({ name }) => {
    const owners = known.has(name) ? moveOf(name) : undefined;
    return owners === undefined ? [] : [{ name, owners }];
  });
  return groupedMoves(moved);
}

/** Undefined for a namespace that keeps its owners. */
export function comparedMoves(before: RouteTable, after: RouteTable): (namespace: string) => Owners | undefined {
  const [ownersBefore, ownersAfter] = comparedOwners([before, after]);
  return (namespace) => {
    const [old, next] = [ownersBefore?.(namespace) ?? [], ownersAfter?.(namespace) ?? []];
    const at = old.findIndex((owner, index) => !isSameOwner(owner, next[index]));
    return at < 0 ? undefined : { from: ownerName(old[at]), to: ownerName(next[at]) };
  };
}

/** The most frequent moves first. */
export function groupedMoves(moved: readonly { readonly name: string; readonly owners: Owners }[]): Move[] {
  const byOwners = Map.groupBy(moved, ({ owners: { from, to } }) => `${from}\n${to}`);
  const moves = [...byOwners.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ ...first.owners, namespaces: [first, ...others].map(({ name }) => name) }],
  );
  return moves.sort((a, b) => b.namespaces.length - a.namespaces.length);
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
