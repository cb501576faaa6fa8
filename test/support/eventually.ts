// Waits until a condition holds, for what happens in other processes or on sockets. The only waiting that tests do.

/** Polls until `check` neither throws nor answers false; rethrows its last error after `timeoutMs`. */
export async function eventually(check: () => unknown, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      if ((await check()) !== false) return;
      if (performance.now() > deadline) throw new Error(`eventually: still false after ${timeoutMs} ms`);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
