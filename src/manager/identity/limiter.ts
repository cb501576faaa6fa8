// Runs a bounded number of tasks at a time and keeps a bounded number waiting, for requests that a thousand
// proxies may make at once. token-reviewer.ts and certifier.ts use it.
import { MeshError } from "../../base/errors.ts";

export interface Limiter {
  /** Runs the task when there is room. @throws MeshError `BUSY` if too many wait, or the error of `run` */
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
