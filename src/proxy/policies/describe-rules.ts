// The rules in force for /debug/policies: what each one does, how close it is to its limit, and since when its
// breaker is open. Pure.
import type { RuleState } from "../../policy/engine/engine.ts";
import type { Figures } from "../../policy/limiters/limiter.ts";
import type { PolicySet, RuleOrigin } from "../../policy/policy.ts";

/** Rules whose breaker is not closed come first. @param figures those of `states`, in the same order */
export function describeRules(
  states: readonly RuleState[],
  figures: readonly Figures[],
  { faults, egress }: PolicySet,
  nowMs: number,
): object[] {
  const limits = states.map((state, at) => ({
    isOpen: state.opened !== undefined,
    text: limitOf(state, figures[at] ?? {}, nowMs),
  }));
  return [
    ...limits.filter(({ isOpen }) => isOpen).map(({ text }) => text),
    ...limits.filter(({ isOpen }) => !isOpen).map(({ text }) => text),
    ...faults.map(({ origin, mode, delay, abort, untilMs }) => ({
      ...headOf(origin),
      mode,
      fault: { delay, abort, until: untilMs === undefined ? undefined : new Date(untilMs).toISOString() },
    })),
    ...egress.map(({ origin, mode, effect, hosts }) => ({ ...headOf(origin), mode, egress: { effect, hosts: hosts.length } })),
  ];
}

function limitOf({ rule: { origin, mode, limiter }, state, sinceMs, opened, dueMs }: RuleState, figures: Figures, nowMs: number) {
  return {
    ...headOf(origin),
    mode,
    limiter,
    state,
    ...(sinceMs !== undefined && { since: new Date(sinceMs).toISOString() }),
    ...(opened !== undefined && { cause: opened.figure }),
    ...(Number.isFinite(dueMs) && { secondsLeft: Math.max(0, Math.ceil((dueMs - nowMs) / 1_000)) }),
    ...figures,
  };
}

function headOf({ kind, namespace, name, rule }: RuleOrigin) {
  return { kind, object: `${namespace}/${name}`, rule };
}
