// Backs off from what fails: after some failures in a row, requests with the same verb and object are refused
// for a time that doubles with each further failure. Invariant: bounded, however many objects fail; the
// object whose last failure is oldest is forgotten first.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { LimiterSpec } from "../policy.ts";
import { isFailure, type Limiter, PASS } from "./limiter.ts";

const MAX_KEYS = 4_096;
/** 2 ** 40 of any base is above every bound. */
const MAX_DOUBLINGS = 40;

export function createBackoffLimiter(spec: Extract<LimiterSpec, { kind: "backoff" }>): Limiter {
  const { baseMs, maxMs, failures: threshold } = spec;
  const failing = new BoundedMap<string, { readonly failures: number; readonly untilMs: number }>(MAX_KEYS);
  const waitAfter = (failures: number) => Math.min(maxMs, baseMs * 2 ** Math.min(MAX_DOUBLINGS, failures - threshold));
  return {
    ask({ key }, nowMs) {
      const waitMs = (failing.get(key)?.untilMs ?? 0) - nowMs;
      return waitMs > 0 ? { kind: "limited", waitMs } : PASS;
    },
    charge: ({ key }) => ({
      settle(outcome, nowMs) {
        if (outcome.kind === "abandoned") return;
        if (!isFailure(outcome)) {
          failing.delete(key);
          return;
        }
        const failures = (failing.get(key)?.failures ?? 0) + 1;
        failing.set(key, { failures, untilMs: failures < threshold ? 0 : nowMs + waitAfter(failures) });
      },
    }),
    state: () => "Closed",
  };
}
