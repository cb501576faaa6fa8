// Runs a bounded number of tasks at a time and lets a bounded number wait. Invariants: clients with waiting
// tasks take turns, so a flood from one delays another client by one turn. When all places in the queue are
// taken, the client with the most waiting tasks loses its newest one to a client with fewer.
import { MeshError } from "./errors.ts";
import { createRanking } from "./ranking.ts";

/**
 * Runs the task when it is the client's turn.
 * @throws MeshError `BUSY` if too many tasks wait, or the error of the task
 */
type FairGate = <T>(client: string, task: () => Promise<T>) => Promise<T>;

/** @param maxWaiting tasks of all clients together */
export function createFairGate(concurrency: number, maxWaiting: number): FairGate {
  /** The waiting tasks by client. The client whose turn is next comes first. */
  const queues = new Map<string, PromiseWithResolvers<void>[]>();
  const bySize = createRanking<PromiseWithResolvers<void>[]>();
  let waiting = 0;
  let running = 0;

  /** The queue has become one longer or shorter. */
  const recordChange = (queue: PromiseWithResolvers<void>[], change: 1 | -1) => {
    waiting += change;
    bySize.move(queue, queue.length);
  };
  /**
   * May refuse the newest waiting task of the client with the most. False if there is no room for another
   * task of a client that has `size` waiting tasks.
   */
  const makeRoomFor = (size: number): boolean => {
    if (waiting < maxWaiting) return true;
    const largest = bySize.top;
    if (largest === undefined || size + 1 >= largest.length) return false;
    largest.pop()?.reject(busy(maxWaiting));
    recordChange(largest, -1);
    return true;
  };
  const waitForTurn = (client: string): Promise<void> => {
    const queue = queues.get(client) ?? [];
    if (!makeRoomFor(queue.length)) throw busy(maxWaiting);
    const turn = Promise.withResolvers<void>();
    queue.push(turn);
    queues.set(client, queue);
    recordChange(queue, 1);
    return turn.promise;
  };
  const leave = () => {
    const [next] = queues;
    if (next === undefined) {
      running--;
      return;
    }
    const [client, queue] = next;
    const turn = queue.shift();
    recordChange(queue, -1);
    queues.delete(client);
    if (queue.length > 0) queues.set(client, queue);
    turn?.resolve(); // takes the place over
  };

  return async (client, task) => {
    if (running < concurrency) running++;
    else await waitForTurn(client);
    try {
      return await task();
    } finally {
      leave();
    }
  };
}

function busy(maxWaiting: number): MeshError {
  return new MeshError("BUSY", `waiting for a place: ${maxWaiting} wait already`);
}
