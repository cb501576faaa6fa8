// Counts the failures of the last requests, in slots of time, so that it needs constant memory and allocates
// nothing. The slot of a time is overwritten when its turn comes again.
import type { FailureTrigger } from "../policy.ts";
import { type Outcome, outcomeText } from "./limiter.ts";

const SLOTS = 10;

export type FailureWindow = ReturnType<typeof createFailureWindow>;

export function createFailureWindow(trigger: FailureTrigger) {
  const { windowMs, consecutive, percent, minimumRequests } = trigger;
  const slotMs = windowMs / SLOTS;
  /** For each slot: the number of its time, its requests and its failures. */
  const numbers = new Float64Array(SLOTS).fill(Number.NEGATIVE_INFINITY);
  const requests = new Float64Array(SLOTS);
  const failures = new Float64Array(SLOTS);
  let inARow = 0;

  const totals = (nowMs: number) => {
    const oldest = Math.floor(nowMs / slotMs) - SLOTS + 1;
    const sum = { requests: 0, failures: 0, inARow };
    for (const [at, number] of numbers.entries()) {
      if (number < oldest) continue;
      sum.requests += requests[at] ?? 0;
      sum.failures += failures[at] ?? 0;
    }
    return sum;
  };
  return {
    totals,
    /** What fires the trigger now, for people; undefined if nothing does. */
    count(isFailure: boolean, outcome: Outcome, nowMs: number): string | undefined {
      const number = Math.floor(nowMs / slotMs);
      const at = number % SLOTS;
      if (numbers[at] !== number) {
        numbers[at] = number;
        requests[at] = 0;
        failures[at] = 0;
      }
      requests[at] = (requests[at] ?? 0) + 1;
      if (!isFailure) {
        inARow = 0;
        return undefined;
      }
      failures[at] = (failures[at] ?? 0) + 1;
      inARow++;
      if (consecutive !== undefined && inARow >= consecutive) {
        const what = inARow === 1 ? "a request failed," : `${inARow} requests in a row failed, the last`;
        return `${what} ${outcomeText(outcome)}`;
      }
      if (percent === undefined) return undefined;
      const sum = totals(nowMs);
      if (sum.requests < minimumRequests || sum.failures * 100 < percent * sum.requests) return undefined;
      return `${sum.failures} of ${sum.requests} requests failed within ${windowMs / 1_000} s, the last ${outcomeText(outcome)}`;
    },
    clear(): void {
      numbers.fill(Number.NEGATIVE_INFINITY);
      inARow = 0;
    },
  };
}
