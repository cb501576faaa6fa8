// Waits until a condition is met, without a fixed sleep.

export interface EventuallyOptions {
  /** The default is 10,000. */
  readonly withinMs?: number;
  /** The default is 25. */
  readonly everyMs?: number;
}

/**
 * Calls `check` until it neither throws nor returns false. When the time is over it throws the last failure.
 * @param options as a number: the time in milliseconds
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
