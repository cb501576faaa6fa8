// Waiting for the state of the world instead of sleeping.

export interface EventuallyOptions {
  /** Default 10,000. */
  readonly withinMs?: number;
  /** Default 25. */
  readonly everyMs?: number;
}

/**
 * Calls `check` until it neither throws nor returns false; the last failure is thrown when time is over.
 * @param options as a number: within this many milliseconds
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: EventuallyOptions | number = {},
): Promise<Exclude<T, false>> {
  const { withinMs = 10_000, everyMs = 25 } = typeof options === "number" ? { withinMs: options } : options;
  const deadline = performance.now() + withinMs;
  for (;;) {
    try {
      const result = await check();
      if (result !== false) return result as Exclude<T, false>;
      if (performance.now() > deadline) throw new Error(`still false after ${withinMs} ms`);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
