// How long one kind of honest call took, and which failed. Pure but for the times that it is given.

export interface Series {
  /** A call that began at `startedMs` has ended. @param failure why it failed; undefined: it did not */
  add(startedMs: number, endedMs: number, failure?: string): void;
  /** Measures again after a pause, which is no gap. */
  resume(nowMs: number): void;
  summary(): Summary;
}

export interface Summary {
  readonly count: number;
  readonly failed: number;
  /** Of all calls: one that failed counts with the time until it did. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** The longest time without a call that succeeded, from its begin to the end of the next one. */
  readonly longestGapMs: number;
  /** The most frequent reason of failures. */
  readonly failure: string;
}

/** @param beganMs when the measurement began */
export function createSeries(beganMs: number): Series {
  const times: number[] = [];
  const failures = new Map<string, number>();
  let lastGoodMs = beganMs;
  let lastMs = beganMs;
  let longestGapMs = 0;
  return {
    add(startedMs, endedMs, failure) {
      times.push(endedMs - startedMs);
      lastMs = Math.max(lastMs, endedMs);
      if (failure !== undefined) {
        failures.set(failure, (failures.get(failure) ?? 0) + 1);
        return;
      }
      longestGapMs = Math.max(longestGapMs, endedMs - lastGoodMs);
      lastGoodMs = endedMs;
    },
    resume(nowMs) {
      longestGapMs = Math.max(longestGapMs, lastMs - lastGoodMs);
      lastGoodMs = nowMs;
      lastMs = nowMs;
    },
    summary() {
      const sorted = times.toSorted((a, b) => a - b);
      const at = (part: number) =>
        Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) * 10) / 10;
      const [failure = ""] = [...failures].toSorted(([, a], [, b]) => b - a)[0] ?? [];
      const failed = failures.values().reduce((sum, count) => sum + count, 0);
      const gap = Math.round(Math.max(longestGapMs, lastMs - lastGoodMs));
      return { count: times.length, failed, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), longestGapMs: gap, failure };
    },
  };
}
