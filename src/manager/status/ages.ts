// How long something has lasted, in coarse steps. Invariant: the text about one wait changes only a few
// times, however long the wait lasts, so an age in a message does not cause endless writes of the status. The
// reconciler computes the text again at the next step (`nextStepMs`).

interface Step {
  readonly ms: number;
  readonly text: string;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** After this time a wait counts as stuck, and the status asks a person for help. */
export const STALLED_AFTER_MS = 5 * MINUTE_MS;

/** After this time a disconnected proxy counts as lost. The time is longer than a failover of the manager. */
export const LOST_AFTER_MS = MINUTE_MS;

const STEPS: readonly Step[] = [
  { ms: 10 * SECOND_MS, text: "10 s" },
  { ms: 30 * SECOND_MS, text: "30 s" },
  { ms: LOST_AFTER_MS, text: "1 min" },
  { ms: STALLED_AFTER_MS, text: "5 min" },
  { ms: 10 * MINUTE_MS, text: "10 min" },
  { ms: HOUR_MS, text: "1 h" },
  { ms: 6 * HOUR_MS, text: "6 h" },
  { ms: 24 * HOUR_MS, text: "1 day" },
];

export function ageMs(since: string, now: string): number {
  return Math.max(0, Date.parse(now) - Date.parse(since));
}

/** The largest step that has passed, for example "over 1 min"; "" before the first step. */
export function ageText(since: string, now: string): string {
  const age = ageMs(since, now);
  const step = STEPS.findLast(({ ms }) => ms <= age);
  return step === undefined ? "" : `over ${step.text}`;
}

/** The time until the text changes next; undefined if it does not change again. */
export function nextStepMs(since: string, now: string): number | undefined {
  const age = ageMs(since, now);
  const step = STEPS.find(({ ms }) => ms > age);
  return step === undefined ? undefined : step.ms - age;
}

/** A number that only grows in coarse steps, as "at least 5" of something. */
export function countSteps(count: number): string {
  if (count < 3) return String(count);
  const step = [3, 10, 30, 100, 300, 1000].findLast((at) => at <= count) ?? count;
  return `at least ${step}`;
}
