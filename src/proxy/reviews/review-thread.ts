// The thread of the listener for the operator's webhooks, as a server of the process. Invariants: its start
// waits for nothing that the operator provides; a thread that ends by itself is replaced, and ends nothing
// else.
import { extname } from "node:path";
import { MeshError } from "../../base/errors.ts";
import type { TrafficServer } from "../server/traffic-server.ts";
import { createThreadKeeper, type ThreadKeeperOptions } from "./thread-keeper.ts";
import type { FromThread, ListenerState, ThreadSettings, ToThread } from "./thread-messages.ts";

export interface ReviewThread {
  readonly server: TrafficServer;
  /** From the moment when the thread listens until it has drained or ended. */
  readonly isListening: boolean;
  /** Does nothing while there is no thread. */
  post(message: ToThread): void;
}

export interface ReviewThreadOptions extends Pick<ThreadKeeperOptions<never>, "onStart" | "onEnd" | "clock" | "random" | "log"> {
  readonly settings: ThreadSettings;
  readonly onMessage: (message: Exclude<FromThread, ListenerState>) => void;
}

/**
 * In MiB. Bodies are no part of the heap and have a bound of their own (read.ts); 256 connections, each with
 * what is read of a review, take some tens. With a small young generation, the bytes that have passed are
 * collected soon.
 */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 };

export function createReviewThread({ settings, onMessage, onEnd, ...options }: ReviewThreadOptions): ReviewThread {
  let { port } = settings.listen;
  let isListening = false;
  let isStopping = false;
  /**
   * What `start` or `stop` waits for. The end of the thread ends the wait, since the next thread may live.
   */
  let answer = Promise.withResolvers<void>();
  const keeper = createThreadKeeper<ToThread, FromThread>({
    ...options,
    file: new URL(`./thread${extname(import.meta.url)}`, import.meta.url),
    workerData: (): ThreadSettings => ({ ...settings, listen: { ...settings.listen, port } }),
    resourceLimits: HEAP,
    onMessage(message) {
      switch (message.kind) {
        case "listening":
          isListening = true;
          port = message.port;
          return answer.resolve();
        case "not-listening":
          return answer.reject(new MeshError("LISTEN_FAILED", message.reason));
        case "drained":
          return answer.resolve();
        default:
          return onMessage(message);
      }
    },
    onEnd() {
      isListening = false;
      onEnd();
      answer.resolve();
    },
  });
  const server: TrafficServer = {
    name: "webhooks",
    get listening() {
      return isListening && !isStopping;
    },
    get port() {
      return port;
    },
    async start() {
      keeper.start();
      await answer.promise;
    },
    async stop() {
      isStopping = true;
      keeper.retire();
      if (isListening) {
        answer = Promise.withResolvers();
        keeper.post({ kind: "drain" });
        await answer.promise;
        isListening = false;
      }
      await keeper.stop();
    },
  };
  return {
    server,
    get isListening() {
      return isListening;
    },
    post: keeper.post,
  };
}
