// Lets many bodies bring a bounded number of bytes in each turn of the event loop, so that their filters delay no other work for long.
// Invariant: clients whose bodies wait take turns, so a client with many bodies delays another client by one body.
import type { ByteSource } from "./byte-stream.ts";

export type FairPace = ReturnType<typeof createFairPace>;

/** A filter reads so much in about a millisecond. */
const TURN_BYTES = 256 * 1024;
/** Bodies arrive in chunks of at most 64 KiB. */
const BODIES_PER_TURN = 4;

/** @param nextTurn default: setImmediate */
export function createFairPace(nextTurn: (run: () => void) => void = setImmediate) {
  /** The bodies that wait, by client. The client whose turn is next comes first. */
  const queues = new Map<string, (() => void)[]>();
  let broughtBytes = 0;
  let isTurnOpen = false;

  const openTurn = () => {
    if (isTurnOpen) return;
    isTurnOpen = true;
    nextTurn(() => {
      isTurnOpen = false;
      broughtBytes = 0;
      for (let bodies = 0; bodies < BODIES_PER_TURN && queues.size > 0; bodies++) resumeNext();
      if (queues.size > 0) openTurn();
    });
  };
  const resumeNext = () => {
    for (const [client, queue] of queues) {
      const resume = queue.shift();
      queues.delete(client);
      if (queue.length > 0) queues.set(client, queue);
      resume?.();
      return;
    }
  };
  const waitForTurn = (client: string, resume: () => void) => {
    const queue = queues.get(client) ?? [];
    queue.push(resume);
    queues.set(client, queue);
  };

  /** The body at this pace. */
  return (client: string, body: ByteSource): ByteSource => ({
    share: body.share,
    cancel: (error) => body.cancel(error),
    open(sink) {
      let isFull = false;
      let waits = false;
      const goOn = () => {
        waits = false;
        if (!isFull) control.resume();
      };
      const control = body.open({
        write(chunk) {
          isFull = !sink.write(chunk);
          broughtBytes += chunk.length;
          openTurn();
          if (broughtBytes > TURN_BYTES && !waits) {
            waits = true;
            waitForTurn(client, goOn);
          }
          return !isFull && !waits;
        },
        end: () => sink.end(),
        abort: (error) => sink.abort(error),
      });
      return {
        resume() {
          isFull = false;
          if (!waits) control.resume();
        },
        cancel: (error) => control.cancel(error),
      };
    },
  });
}
