import { describe, expect, it } from "vitest";
import { OPENED, policyTarget, samplePolicyStatus, shadowPolicy } from "../../../test/support/policy-target.ts";
import type { RuleSnapshot } from "../../api/policy-status.ts";
import { policyEvents } from "./policy-events.ts";
import type { PolicyStatusFacts } from "./policy-status.ts";

const statusOf = (rulesByPod: Readonly<Record<string, readonly RuleSnapshot[]>>, changes: Partial<PolicyStatusFacts> = {}) =>
  samplePolicyStatus({ targets: Object.entries(rulesByPod).map(([name, rules]) => policyTarget(name, { rules })), ...changes });
const closed = { name: "delete-pods", state: "Closed" } as const;
const texts = (...statuses: Parameters<typeof policyEvents>) =>
  policyEvents(...statuses).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);

describe("the Events of a policy", () => {
  it("report each opening, half-opening and closing of each rule in each pod, with the cause (D14c)", () => {
    const first = statusOf({ a: [OPENED], b: [closed] });
    expect(texts(statusOf({ a: [closed], b: [closed] }), first)).toEqual([
      'Warning BreakerOpened: rule "delete-pods" opened in pod a: 5 failures in a row, the last with status 500',
    ]);
    const second = statusOf({ a: [{ ...OPENED, state: "HalfOpen" }], b: [{ ...OPENED, cause: "no token left" }] });
    expect(texts(first, second)).toEqual([
      'Warning BreakerOpened: rule "delete-pods" opened in pod b: no token left',
      'Normal BreakerHalfOpen: rule "delete-pods" tests the server in pod a: 5 failures in a row, the last with status 500',
    ]);
    expect(texts(second, statusOf({ a: [closed], b: [OPENED] }))).toContain(
      'Normal BreakerClosed: rule "delete-pods" closed in pod a',
    );
  });

  it("report a breaker that has closed and opened again between two statuses (D14c)", () => {
    const again = { ...OPENED, lastTransitionTime: "2026-11-22T10:05:00.000Z" };
    expect(texts(statusOf({ a: [OPENED] }), statusOf({ a: [again] }))).toHaveLength(1);
    expect(texts(statusOf({ a: [OPENED] }), statusOf({ a: [OPENED] }))).toEqual([]);
  });

  it("say nothing of a rule whose state is not known, and nothing of a pod that is gone", () => {
    expect(texts(statusOf({ a: [OPENED] }), statusOf({ a: [] }))).toEqual([]);
    expect(texts(statusOf({ a: [OPENED] }), statusOf({}))).toEqual([]);
  });

  it("say that a breaker in the shadow refuses nothing", () => {
    expect(texts(undefined, statusOf({ a: [OPENED] }, { policy: shadowPolicy() }))[0]).toMatch(
      /^Warning BreakerOpened: rule "delete-pods" opened in pod a \(mode Shadow: it refuses nothing\): /,
    );
  });

  it("are at most eleven for one status, of which the last says how many more there are", () => {
    const pods = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`pod-${at}`, [OPENED]]));
    const all = texts(undefined, statusOf(pods));
    expect(all).toHaveLength(11);
    expect(all.at(-1)).toBe("Warning MoreBreakersChanged: 20 more rules opened or closed: see targetStatus");
  });

  it("say nothing of a pod that only now has a place in the list, since its breaker may have been open before", () => {
    const pods = (from: number) => Array.from({ length: 70 - from }, (_, at) => [`pod-${100 + from + at}`, [OPENED]] as const);
    const first = statusOf(Object.fromEntries(pods(0)));
    expect(texts(first, statusOf(Object.fromEntries(pods(3))))).toEqual([]);
    const withNew = statusOf({ ...Object.fromEntries(pods(10)), "pod-000": [OPENED] }, { previous: first });
    expect(texts(statusOf(Object.fromEntries(pods(10))), withNew)).toHaveLength(1);
  });
});
