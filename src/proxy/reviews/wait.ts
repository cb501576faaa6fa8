// A wait for something that the thread of the listener tells. Invariant: whoever waits at the same time waits
// for the same. Used by create-webhooks.ts.
export interface Wait {
  /** Resolves, or rejects, with the next `end`. */
  begin(): Promise<void>;
  /** Does nothing if nobody waits. */
  end(error?: Error): void;
}

export function createWait(): Wait {
  let running: PromiseWithResolvers<void> | undefined;
  return {
    begin() {
      running ??= Promise.withResolvers<void>();
      return running.promise;
    },
    end(error) {
      if (error === undefined) running?.resolve();
      else running?.reject(error);
      running = undefined;
    },
  };
}
