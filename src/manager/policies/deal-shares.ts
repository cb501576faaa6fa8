// Divides the budget of a rule with `bucket.per: Policy` between the pods that it is for. Pure. Invariant: the
// shares that pods may hold, before and after every change, never add up to more than the budget, so a share
// grows only when a proxy has reported that it enforces a smaller one.
import { WHOLE_BUDGET } from "../../policy/policy.ts";

/** Divided evenly between all pods, so that a pod that begins to work need not wait for the manager. */
const BASE = WHOLE_BUDGET / 10;

export interface Holder {
  /** The largest share that the proxy may enforce now, in millionths; undefined if it is not known. */
  readonly held: number | undefined;
  /** `more`: it uses up its share, or was refused lately. `none`: the rule is not for the pod any more. */
  readonly need: "none" | "base" | "more";
}

/**
 * The share that each pod should have next, in millionths. While the share of a pod is not known, no other
 * share grows.
 */
export function dealShares(holders: readonly Holder[]): number[] {
  const goals = goalsOf(holders);
  const smaller = holders.map(({ held }, at) => (held === undefined ? (goals[at] ?? 0) : Math.min(held, goals[at] ?? 0)));
  if (holders.some(({ held }) => held === undefined)) return smaller;
  const taken = holders.reduce((sum, { held = 0 }) => sum + held, 0);
  const free = Math.max(0, WHOLE_BUDGET - taken);
  const missing = smaller.map((share, at) => (goals[at] ?? 0) - share);
  const missed = missing.reduce((sum, each) => sum + each, 0);
  const part = missed === 0 ? 0 : Math.min(1, free / missed);
  return smaller.map((share, at) => share + Math.floor((missing[at] ?? 0) * part));
}

/** What each pod gets in the end: all have the base, and those that need more divide the rest. */
function goalsOf(holders: readonly Holder[]): number[] {
  const count = (...needs: readonly Holder["need"][]) => holders.filter(({ need }) => needs.includes(need)).length;
  const [all, needy] = [count("base", "more"), count("more")];
  const [base, rest] = needy === 0 ? [WHOLE_BUDGET / all, 0] : [BASE / all, (WHOLE_BUDGET - BASE) / needy];
  return holders.map(({ need }) => (need === "none" ? 0 : Math.floor(need === "base" ? base : base + rest)));
}
