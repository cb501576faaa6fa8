// So many at a time, so many behind them, and nobody else. Used for what a thousand proxies may ask for at once.
import { MeshError } from "../../base/errors.ts";

export interface Limiter {
  /** Runs it when there is room. @throws MeshError `BUSY` if too many wait already, or what `run` throws */
  run<T>(run: () => Promise<T>): Promise<T>;
}

export function createLimiter({
  concurrency,
  maxWaiting,
}: {
  readonly concurrency: number;
  readonly maxWaiting: number;
}): Limiter {
  const waiting: (() => void)[] = [];
  let running = 0;
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next(); // takes the place over
  };
  return {
    async run(run) {
      if (running < concurrency) running++;
      else if (waiting.length < maxWaiting) await new Promise<void>((resolve) => waiting.push(resolve));
      else throw new MeshError("BUSY", `waiting for a place: ${maxWaiting} wait already`);
      try {
        return await run();
      } finally {
        leave();
      }
    },
  };
}
