// The budget of moves of a family: after many moves in one hour no shard joins, because a join can wait, and
// a change that moves namespaces restarts pods. Pure. Invariants: a wait ends within an hour of the last move, and the list of
// moves is bounded. A shard that is lost or removed costs budget, and does not wait for it.
import { MAX_MOVES } from "../../api/sharding-status.ts";

export interface Move {
  readonly atMs: number;
  readonly namespaces: number;
}

const HOUR_MS = 3_600_000;
/**
 * A change counts as a move of at least a sixth of all namespaces, because it restarts pods. Costs are in sixths
 * of a namespace, so that they are whole numbers.
 */
const SIXTHS = 6;

export interface Budget {
  /** The number of all places: namespaces, and buckets of cluster-scoped names if they move too. */
  readonly places: number;
  /** Once this share of them, or more, has moved within an hour, no shard joins. */
  readonly percentPerHour: number;
}

/** The time from which shards may join: now, or a time in the future. */
export function joinsFrom(moves: readonly Move[], { places, percentPerHour }: Budget, nowMs: number): number {
  const recent = recentMoves(moves, nowMs);
  const all = Math.max(1, places);
  const costOf = (move: Move) => Math.max(move.namespaces * SIXTHS, all);
  const costFrom = (at: number) => recent.slice(at).reduce((sum, move) => sum + costOf(move), 0);
  const isAffordable = (at: number) => costFrom(at) * 100 < all * SIXTHS * percentPerHour;
  const first = recent.findIndex((_, at) => isAffordable(at));
  const lastToExpire = recent[first < 0 ? recent.length - 1 : first - 1];
  return lastToExpire === undefined ? nowMs : lastToExpire.atMs + HOUR_MS;
}

/** The moves of the last hour and one more; the same moves if it moved nothing. If the list is full, its two oldest moves become one. */
export function withMove(moves: readonly Move[], namespaces: number, nowMs: number): readonly Move[] {
  // A time in the future, from before a clock was set back, would count as now at each look.
  if (namespaces === 0) return moves.some(({ atMs }) => atMs > nowMs) ? recentMoves(moves, nowMs) : moves;
  const recent = [...recentMoves(moves, nowMs), { atMs: nowMs, namespaces }];
  const [first, second, ...others] = recent;
  if (recent.length <= MAX_MOVES || first === undefined || second === undefined) return recent;
  return [{ atMs: second.atMs, namespaces: first.namespaces + second.namespaces }, ...others];
}

/** A time in the future, from before a clock was set back, counts as now. */
function recentMoves(moves: readonly Move[], nowMs: number): readonly Move[] {
  const seen = moves.map(({ atMs, namespaces }) => ({ atMs: Math.min(atMs, nowMs), namespaces }));
  return seen.filter(({ atMs }) => nowMs - atMs < HOUR_MS);
}
