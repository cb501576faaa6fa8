// Time and random numbers as parameters, so that tests control them: code that waits or adds jitter takes a
// Clock or a Random. The linter forbids Date.now, bare timers and Math.random elsewhere.
import { performance } from "node:perf_hooks";
import { type AbortSource, onAbort } from "./abort.ts";
import { MeshError } from "./errors.ts";

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time in milliseconds since the epoch. */
  now(): number;
  /** Milliseconds on a monotonic clock, for measuring. */
  monotonicMs(): number;
  /** Calls `run` once after `delayMs`, at the latest after 24 days. Does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer;
}

/** A number in [0, 1). */
export type Random = () => number;

/** The longest delay of a Node timer, 24.8 days. Node fires a timer with a longer delay immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

function createClock(keepsAlive: boolean): Clock {
  return {
    now: () => Date.now(),
    monotonicMs: () => performance.now(),
    after(delayMs, run) {
      const timer = setTimeout(run, Math.min(delayMs, MAX_TIMER_MS));
      if (!keepsAlive) timer.unref();
      return { cancel: () => clearTimeout(timer) };
    },
  };
}

export const systemClock = createClock(false);

/** The clock of a program that only waits: its timers keep the process alive. */
export const waitingClock = createClock(true);

export const systemRandom: Random = () => Math.random();

/** Resolves after `delayMs`; rejects with `ABORTED` immediately when the signal fires. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSource): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(delayMs, () => {
      unlink?.();
      resolve();
    });
    const unlink =
      signal &&
      onAbort(signal, () => {
        timer.cancel();
        reject(new MeshError("ABORTED", "waiting: aborted", { cause: signal.reason }));
      });
  });
}

const UNIT_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
export const DURATION = /^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h))+$/;
const PART = /([0-9.]+)([a-z]+)/g;

/** Milliseconds of a duration as Go writes it (`300ms`, `1m30s`). Undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  return [...text.matchAll(PART)].reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNIT_MS[unit] ?? Number.NaN), 0);
}

export interface BackoffOptions {
  /** The first delay. */
  readonly baseMs: number;
  readonly maxMs: number;
}

/** At random between half and all of min(maxMs, baseMs * 2^attempt). The first retry is attempt 0. */
export function backoffMs(attempt: number, options: BackoffOptions, random: Random): number {
  const ceiling = Math.min(options.maxMs, options.baseMs * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}

export type Deadline = ReturnType<typeof createDeadline>;

/** Node runs due timers before it reads sockets. After a blocked loop it needs this time to read them. */
const TURN_MS = 50;

/** A time limit for a client. What arrived while the event loop was blocked is read before `onOver` runs. */
export function createDeadline(clock: Clock, onOver: () => void) {
  let timer: Timer | undefined;
  return {
    /** Starts the deadline, or starts it again. */
    set(ms: number): void {
      timer?.cancel();
      timer = clock.after(ms, () => {
        timer = clock.after(TURN_MS, onOver);
      });
    },
    clear(): void {
      timer?.cancel();
      timer = undefined;
    },
  };
}
