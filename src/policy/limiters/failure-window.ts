// Counts the failures of the last requests, in slots of time, so that it needs constant memory and a request
// costs an addition.
import type { FailureTrigger } from "../policy.ts";
import { type Outcome, outcomeText } from "./limiter.ts";

const SLOTS = 10;

export function createFailureWindow(trigger: FailureTrigger) {
  const { windowMs, consecutive, percent, minimumRequests } = trigger;
  const slotMs = windowMs / SLOTS;
  /** The last is the current one. */
  let slots: Slot[] = [];
  let current = newSlot(0);
  let inARow = 0;

  const begin = (nowMs: number) => {
    current = newSlot((Math.floor(nowMs / slotMs) + 1) * slotMs);
    slots = [...slots.filter(({ endMs }) => endMs > current.endMs - windowMs), current];
  };
  const totals = (nowMs: number) => {
    const oldestMs = (Math.floor(nowMs / slotMs) + 1) * slotMs - windowMs;
    const sum = { requests: 0, failures: 0, inARow };
    for (const { endMs, requests, failures } of slots) {
      if (endMs <= oldestMs) continue;
      sum.requests += requests;
      sum.failures += failures;
    }
    return sum;
  };
  return {
    totals,
    /** What fires the trigger now, for people; undefined if nothing does. */
    count(isFailure: boolean, outcome: Outcome, nowMs: number): string | undefined {
      if (nowMs >= current.endMs) begin(nowMs);
      current.requests++;
      if (!isFailure) {
        inARow = 0;
        return undefined;
      }
      current.failures++;
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
      slots = [];
      current = newSlot(0);
      inARow = 0;
    },
  };
}

interface Slot {
  readonly endMs: number;
  requests: number;
  failures: number;
}

function newSlot(endMs: number): Slot {
  return { endMs, requests: 0, failures: 0 };
}
