// Waits for the world to be as the story says, and shows it meanwhile. Invariant: what does not come true in time, or can
// not any more since a process has ended, fails with a sentence that says what was waited for and what is there instead.
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { MeshError } from "../../src/base/errors.ts";
import type { Screen } from "./screen.ts";
import type { Facts, NamespaceRow } from "./view.ts";

export interface Watcher {
  /** Resolves with the facts once `wrong` finds nothing wrong with them. @throws MeshError `NOT_AS_TOLD` with what is wrong */
  until(wrong: (facts: Facts) => string | undefined): Promise<Facts>;
  /** Goes on showing for a while. */
  linger(ms: number): Promise<void>;
}

export interface WatcherOptions {
  readonly screen: Screen;
  facts(): Promise<Facts>;
  /** Throws once nothing good can come any more. */
  assertAlive(): void;
  readonly signal: AbortSignal;
  /** Default 60,000: on a machine that is busy with other things all takes its time. */
  readonly withinMs?: number;
}

const EVERY_MS = 150;

export function createWatcher({ screen, facts, assertAlive, signal, withinMs = 60_000 }: WatcherOptions): Watcher {
  const look = async (): Promise<Facts> => {
    signal.throwIfAborted();
    assertAlive();
    const seen = await facts();
    screen.show(seen);
    return seen;
  };
  return {
    async until(wrong) {
      const deadline = performance.now() + withinMs;
      for (;;) {
        const seen = await look();
        const problem = wrong(seen);
        if (problem === undefined) return seen;
        if (performance.now() > deadline)
          throw new MeshError(
            "NOT_AS_TOLD",
            `${problem}, after ${withinMs / 1000} s${busyText(loadavg()[0] ?? 0, availableParallelism())}`,
          );
        await delay(EVERY_MS, undefined, { signal });
      }
    },
    async linger(ms) {
      const until = performance.now() + ms;
      while (performance.now() < until) {
        await look();
        await delay(Math.min(EVERY_MS, ms), undefined, { signal });
      }
    },
  };
}

/** What is wrong with a VirtualApp that should be ready, with every proxy up to date. */
export function wrongApp({ app }: Facts): string | undefined {
  if (app.ready === "True" && app.converged) return undefined;
  return `the VirtualApp ${app.name} should be ready and converged, and is Ready ${app.ready}: ${app.message}`;
}

/** What is wrong with a namespace that should be reconciled by one of these pods, at least `count` times. */
export function wrongReconciler(
  { namespaces }: Facts,
  namespace: string,
  pods: readonly string[],
  count = 1,
): string | undefined {
  const row: NamespaceRow | undefined = namespaces.find((one) => one.namespace === namespace);
  const by = row?.reconciledBy ?? [];
  if (row !== undefined && row.count >= count && by.length > 0 && by.every((pod) => pods.includes(pod))) return undefined;
  const seen = by.length === 0 ? "nobody" : by.join(", ");
  return `${namespace} should be reconciled by ${pods.join(" or ")}, and was by ${seen} (count ${row?.count ?? 0})`;
}

/** Why it may have come too late; empty where the machine has nothing else to do. */
export function busyText(load: number, cores: number): string {
  return load > cores ? ` (is this machine busy? load ${load.toFixed(0)} on ${cores} cores)` : "";
}
