// How many namespaces an edit of a route moves, for a warning. Invariant: an answer takes a bounded time,
// whatever the specs say. An edit without an answer passes without a warning, since warnings are a courtesy.
import type { RouteTable } from "../../../route/table.ts";
import type { Compile } from "../../apps/compile/compiler.ts";
import type { NamespaceFacts, RouteSpec } from "../../apps/compile/route-spec.ts";
import { comparedOwners, isSameOwner } from "../../apps/namespace-owners.ts";
import type { Caller } from "../server/webhook.ts";

interface RouteMoves {
  /** Namespaces in which some resource gets another owner. */
  readonly moved: number;
  readonly total: number;
}

/**
 * As approximate as `comparedOwners`. Undefined if the namespaces are not known, the count takes too long, or
 * there is no room.
 */
export type CountMoves = (before: RouteSpec, after: RouteSpec, caller: Caller) => Promise<RouteMoves | undefined>;

/**
 * Of one compilation. Ordinary rules for 10,000 namespaces take as long; the API server waits for the answer.
 */
const LIMIT_MS = 500;

interface MoveCounterOptions {
  readonly compile: Compile;
  /** Undefined while the namespaces are not known. */
  readonly namespaces: () => readonly NamespaceFacts[] | undefined;
  readonly limit: MoveLimit;
}

export function createMoveCounter({ compile, namespaces, limit }: MoveCounterOptions): CountMoves {
  const count = async (before: RouteSpec, after: RouteSpec, { signal }: Caller): Promise<RouteMoves | undefined> => {
    const all = namespaces();
    if (all === undefined) return undefined;
    const old = await compile(before, all, LIMIT_MS, { signal });
    const next = old && (await compile(after, all, LIMIT_MS, { signal }));
    if (old === undefined || next === undefined) return undefined;
    const isMoved = createComparison(old, next);
    return { moved: all.filter(({ name }) => isMoved(name)).length, total: all.length };
  };
  return (before, after, caller) => limit(caller.address, () => count(before, after, caller));
}

/** All namespaces of a class have the same owners, so each pair of classes is compared once. */
function createComparison(old: RouteTable, next: RouteTable): (namespace: string) => boolean {
  const [ownersBefore, ownersAfter] = comparedOwners([old, next]);
  const results = new Map<string, boolean>();
  return (namespace) => {
    const pair = `${old.classOf.get(namespace)},${next.classOf.get(namespace)}`;
    const isMoved = results.get(pair) ?? hasMoved(ownersBefore?.(namespace) ?? [], ownersAfter?.(namespace) ?? []);
    results.set(pair, isMoved);
    return isMoved;
  };
}

type Owners = ReturnType<ReturnType<typeof comparedOwners>[number]>;

function hasMoved(before: Owners, after: Owners): boolean {
  return before.some((owner, index) => !isSameOwner(owner, after[index]));
}

/**
 * Undefined if there is no room. Any pod can ask, and an answer takes up to a second of computing, so one
 * question of an address and MAX_AT_ONCE together are under way.
 */
export type MoveLimit = <T>(address: string, question: () => Promise<T>) => Promise<T | undefined>;

const MAX_AT_ONCE = 8;

export function createMoveLimit(): MoveLimit {
  const asking = new Set<string>();
  return async (address, question) => {
    if (asking.has(address) || asking.size >= MAX_AT_ONCE) return undefined;
    asking.add(address);
    try {
      return await question();
    } finally {
      asking.delete(address);
    }
  };
}
