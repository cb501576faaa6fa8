// The thread of the listener for the operator's webhooks. What strangers send is read, decrypted and held
// here, so that it delays none of the operator's own requests, which the main thread serves.
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock, systemRandom } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import { createListener } from "./listener.ts";
import type { FromThread, ThreadSettings, ToThread } from "./thread-messages.ts";

/** The main thread goes first if both want the same core. */
const NICE = 5;

try {
  setPriority(0, NICE); // on Linux of this thread alone
} catch {
  // Some sandboxes forbid it. Then the two threads have equal shares.
}
const settings = workerData as ThreadSettings;
const post = (message: FromThread) => parentPort?.postMessage(message);
const log = createLogger({ name: "ctrlmesh-proxy", level: settings.logLevel });
const listener = createListener(settings, { post, clock: systemClock, random: systemRandom, log });
parentPort?.on("message", (message: ToThread) => listener.take(message));
await listener.start();
