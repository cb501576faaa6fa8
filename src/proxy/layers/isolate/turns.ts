// Limits how many tasks run at a time, first come, first served. Called by renew-watch.ts, since each task holds much memory.
import { MeshError } from "../../../base/errors.ts";
import type { CallSignal } from "../../http/call-signal.ts";

export interface Turns {
  /** Runs the work when it is its turn. @throws MeshError `ABORTED` if the signal fires before that, or what the work throws */
  run<T>(signal: CallSignal, work: () => Promise<T>): Promise<T>;
}

export function createTurns(atATime: number): Turns {
  const waiting = new Set<() => void>();
  let running = 0;
  const turn = (signal: CallSignal) =>
    new Promise<void>((resolve, reject) => {
      const gone = () => {
        waiting.delete(go);
        reject(new MeshError("ABORTED", "waiting for a turn: aborted", { cause: signal.reason }));
      };
      const go = () => {
        waiting.delete(go);
        signal.removeEventListener("abort", gone);
        running++;
        resolve();
      };
      if (signal.aborted) gone();
      else if (running < atATime) go();
      else {
        signal.addEventListener("abort", gone, { once: true });
        waiting.add(go);
      }
    });
  return {
    async run(signal, work) {
      await turn(signal);
      try {
        return await work();
      } finally {
        running--;
        const [next] = waiting;
        next?.();
      }
    },
  };
}
