// A process that restarts when it ends or is killed, like a container. It runs at most once at a time and stays down after `kill`
// or `stop` until `start`. Used for the managers, proxies and operators of test/support/mesh.ts.
import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "./child-process.ts";

export interface SupervisedOptions {
  /** Starts the process. A failed start is repeated. */
  launch(): Promise<Child>;
  /** If false, an ended process is not restarted. The default is true. */
  readonly restarts?: boolean;
  /** The time before a restart; the default is 300 ms. (A kubelet waits longer each time; tests have less time.) */
  readonly restartMs?: number;
}

export interface Supervised {
  /** The newest process. */
  readonly child: Child;
  /** The number of restarts by the supervisor. */
  readonly restarts: number;
  /** True if a process exists, stopped or not. */
  readonly isUp: boolean;
  readonly isPaused: boolean;
  /** Sends kill -9. The supervisor restarts the process. */
  crash(): Promise<void>;
  /** Sends kill -9. The process is not restarted. */
  kill(): Promise<void>;
  /** Starts the process after `kill`. @throws Error if the process does not start */
  start(): Promise<void>;
  /** Sends SIGSTOP. The process keeps its connections and does not respond. */
  pause(): void;
  /** Sends SIGCONT. */
  resume(): void;
  /** Sends SIGTERM, and SIGKILL after `graceMs`. The process is not restarted. */
  stop(graceMs?: number): Promise<void>;
}

/** Starts the process. @throws Error if the first start fails */
export async function supervise({ launch, restarts = true, restartMs = 300 }: SupervisedOptions): Promise<Supervised> {
  let child = await launch();
  let wanted = true;
  let restarted = 0;
  let isPaused = false;
  let restarting: Promise<void> = Promise.resolve();

  const watch = (one: Child) => {
    if (!restarts) return;
    void one.ended.then(() => {
      if (wanted && child === one) restarting = restart();
    });
  };
  const restart = async () => {
    isPaused = false;
    while (wanted) {
      await sleep(restartMs);
      if (!wanted) return;
      const next = await launch().catch(() => undefined);
      if (next === undefined) continue;
      child = next;
      restarted++;
      watch(next);
      return;
    }
  };
  const end = async (graceMs: number) => {
    wanted = false;
    await child.stop(graceMs);
    await restarting;
    await child.stop(graceMs); // it had just started
    isPaused = false;
  };
  watch(child);
  return {
    get child() {
      return child;
    },
    get restarts() {
      return restarted;
    },
    get isUp() {
      return !child.exited;
    },
    get isPaused() {
      return isPaused;
    },
    async crash() {
      child.kill("SIGKILL");
      await child.ended;
    },
    async kill() {
      child.kill("SIGKILL");
      await end(0);
    },
    async start() {
      wanted = true;
      child = await launch();
      watch(child);
    },
    pause() {
      if (child.exited) return;
      isPaused = true;
      child.kill("SIGSTOP");
    },
    resume() {
      isPaused = false;
      child.kill("SIGCONT");
    },
    stop: (graceMs = 10_000) => end(graceMs),
  };
}
