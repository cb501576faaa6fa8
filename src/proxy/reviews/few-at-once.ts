// Runs one kind of work a few times in parallel, and lets all further calls wait in their order. Invariant:
// when the work fails, all calls that wait fail with the same error, so nobody waits for a server that is
// gone.

/** @param max how often the work runs at a time */
export function fewAtOnce<T>(max: number, work: () => Promise<T>): () => Promise<T> {
  const waiting: PromiseWithResolvers<void>[] = [];
  let running = 0;
  return async () => {
    if (running >= max) {
      const turn = Promise.withResolvers<void>();
      waiting.push(turn);
      await turn.promise; // whoever resolves it hands over its own place
    } else running++;
    try {
      return await work();
    } catch (error) {
      for (const turn of waiting.splice(0)) turn.reject(error);
      throw error;
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next.resolve();
    }
  };
}
