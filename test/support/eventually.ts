// Waits until a condition is met, without a fixed sleep.

export interface EventuallyOptions {
  /** The default is 10,000. */
  readonly withinMs?: number;
  /** The default is 25, and grows to 100 in two seconds: a long wait must not take the CPU from what it waits for. */
  readonly everyMs?: number;
}

const MIN_EVERY_MS = 25;
const MAX_EVERY_MS = 100;
/** Between the two limits a wait is this part of the time so far. */
const PART_OF_TIME = 1 / 20;

/**
 * Calls `check` until it neither throws nor returns false. When the time is over it throws the last failure.
 * @param options as a number: the time in milliseconds
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: EventuallyOptions | number = {},
): Promise<Exclude<T, false>> {
  const { withinMs = 10_000, everyMs } = typeof options === "number" ? { withinMs: options } : options;
  const startMs = performance.now();
  const deadline = startMs + withinMs;
  const growing = () => Math.min(MAX_EVERY_MS, Math.max(MIN_EVERY_MS, (performance.now() - startMs) * PART_OF_TIME));
  for (;;) {
    try {
      const result = await check();
      if (result !== false) return result as Exclude<T, false>;
      if (performance.now() > deadline) throw new Error(`still false after ${withinMs} ms`);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs ?? growing()));
  }
}
