// Counts the namespaces that an edit of a route moves, for a warning. Invariant: it takes a bounded time,
// whatever the specs say; after that time it gives no count. Used by checked-sources.ts, only if callers may
// learn which namespaces there are.
import type { RouteTable } from "../../route/table.ts";
import type { Compile } from "../apps/compile/compiler.ts";
import type { NamespaceFacts, RouteSpec } from "../apps/compile/route-spec.ts";
import { comparedOwners, isSameOwner } from "../apps/namespace-owners.ts";
import type { MoveLimit } from "./move-limit.ts";
import type { Caller } from "./webhook.ts";

export interface RouteMoves {
  /** Namespaces in which some resource gets another owner. */
  readonly moved: number;
  readonly total: number;
}

/**
 * The moves between two routes, as approximate as `comparedOwners`. Undefined if the namespaces are not
 * known, the count takes too long, or there is no room.
 */
export type CountMoves = (before: RouteSpec, after: RouteSpec, caller: Caller) => Promise<RouteMoves | undefined>;

/**
 * Of one compilation. Ordinary rules for 10,000 namespaces take as long; the API server waits for the answer.
 */
const LIMIT_MS = 500;

export interface MoveCounterOptions {
  readonly compile: Compile;
  /** Undefined while they are not known. */
  readonly namespaces: () => readonly NamespaceFacts[] | undefined;
  readonly limit: MoveLimit;
}

export function createMoveCounter({ compile, namespaces, limit }: MoveCounterOptions): CountMoves {
  const count = async (before: RouteSpec, after: RouteSpec, { signal }: Caller): Promise<RouteMoves | undefined> => {
    const known = namespaces();
    if (known === undefined) return undefined;
    const old = await compile(before, known, LIMIT_MS, { signal });
    const next = old && (await compile(after, known, LIMIT_MS, { signal }));
    if (old === undefined || next === undefined) return undefined;
    const isMoved = createComparison(old, next);
    return { moved: known.filter(({ name }) => isMoved(name)).length, total: known.length };
  };
  return (before, after, caller) => limit(caller.address, () => count(before, after, caller));
}

/** Compares once for each pair of classes: all namespaces of a class have the same owners. */
function createComparison(old: RouteTable, next: RouteTable): (namespace: string) => boolean {
  const [ownersBefore, ownersAfter] = comparedOwners([old, next]);
  const known = new Map<string, boolean>();
  return (namespace) => {
    const pair = `${old.classOf.get(namespace)},${next.classOf.get(namespace)}`;
    const isMoved = known.get(pair) ?? hasMoved(ownersBefore?.(namespace) ?? [], ownersAfter?.(namespace) ?? []);
    known.set(pair, isMoved);
    return isMoved;
  };
}

type Owners = ReturnType<ReturnType<typeof comparedOwners>[number]>;

function hasMoved(before: Owners, after: Owners): boolean {
  return before.some((owner, index) => !isSameOwner(owner, after[index]));
}
