// Counts the failures of the last requests in slots of time. Invariant: constant memory; a slot is forgotten
// when the window has passed it, so that a count covers at least the window minus one slot.
import type { FailureTrigger } from "../policy.ts";

export interface FailureWindow {
  /** Counts a request. True if the trigger fires now. */
  count(failed: boolean, nowMs: number): boolean;
  clear(): void;
}

interface Slot {
  readonly number: number;
  requests: number;
  failures: number;
}

const SLOTS = 10;

export function createFailureWindow(trigger: FailureTrigger): FailureWindow {
  const slotMs = trigger.windowMs / SLOTS;
  let slots: Slot[] = [];
  let inARow = 0;
  return {
    count(failed, nowMs) {
      const number = Math.floor(nowMs / slotMs);
      slots = slots.filter((slot) => slot.number > number - SLOTS);
      if (slots.at(-1)?.number !== number) slots.push({ number, requests: 0, failures: 0 });
      const current = slots.at(-1);
      if (current !== undefined) {
        current.requests++;
        if (failed) current.failures++;
      }
      inARow = failed ? inARow + 1 : 0;
      return failed && (isRow(trigger, inARow) || isShare(trigger, slots));
    },
    clear() {
      slots = [];
      inARow = 0;
    },
  };
}

function isRow({ consecutive }: FailureTrigger, inARow: number): boolean {
  return consecutive !== undefined && inARow >= consecutive;
}

function isShare({ percent, minimumRequests }: FailureTrigger, slots: readonly Slot[]): boolean {
  if (percent === undefined) return false;
  const requests = slots.reduce((sum, slot) => sum + slot.requests, 0);
  const failures = slots.reduce((sum, slot) => sum + slot.failures, 0);
  return requests >= minimumRequests && failures * 100 >= percent * requests;
}
