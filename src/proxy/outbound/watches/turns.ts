// Limits how many tasks run at a time: each task holds much memory. Invariant: of the tasks that wait, the one
// with the lowest rank runs first.
import { onAbort } from "../../../base/abort.ts";
import { MeshError } from "../../../base/errors.ts";
import type { CallSignal } from "../../http/call-signal.ts";

export interface Turns {
  /**
   * Runs the work when it is its turn.
   * @throws MeshError `ABORTED` if the signal fires before that, or what the work throws
   */
  run<T>(signal: CallSignal, rank: number, work: () => Promise<T>): Promise<T>;
}

export function createTurns(atATime: number): Turns {
  const waiting = new Map<() => void, number>();
  let running = 0;
  const turn = (signal: CallSignal, rank: number) =>
    new Promise<void>((resolve, reject) => {
      const start = () => {
        waiting.delete(start);
        unlink();
        running++;
        resolve();
      };
      waiting.set(start, rank);
      const unlink = onAbort(signal, () => {
        waiting.delete(start);
        reject(new MeshError("ABORTED", "waiting for a turn: aborted", { cause: signal.reason }));
      });
      // Later, when all watches that show the same move wait.
      queueMicrotask(next);
    });
  const next = () => {
    const [first] = [...waiting].sort(([, a], [, b]) => a - b);
    if (running < atATime) first?.[0]();
  };
  return {
    async run(signal, rank, work) {
      await turn(signal, rank);
      try {
        return await work();
      } finally {
        running--;
        next();
      }
    },
  };
}
