// Waits for the expected state, and shows the present one meanwhile. Invariant: if the state is not reached in time, or a process has ended, the
// error names the expected and the present state. Called by story.ts.
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { MeshError } from "../../src/base/errors.ts";
import type { Screen } from "./screen.ts";
import type { Facts, NamespaceRow } from "./view.ts";

export interface Watcher {
  /** Resolves with the facts once `wrong` returns undefined for them. @throws MeshError `UNEXPECTED` with the difference */
  until(wrong: (facts: Facts) => string | undefined): Promise<Facts>;
  /** Shows the state for some time. */
  linger(ms: number): Promise<void>;
}

export interface WatcherOptions {
  readonly screen: Screen;
  facts(): Promise<Facts>;
  /** Throws if a process has ended. */
  assertAlive(): void;
  readonly signal: AbortSignal;
  /** Default 60,000, which is enough on a busy machine. */
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
            "UNEXPECTED",
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

/** Why a VirtualApp is not ready and converged; undefined if it is. */
export function wrongApp({ app }: Facts): string | undefined {
  if (app.ready === "True" && app.converged) return undefined;
  return `the VirtualApp ${app.name} should be ready and converged, and is Ready ${app.ready}: ${app.message}`;
}

/** Why a namespace is not yet reconciled by one of these pods at least `count` times; undefined if it is. */
export function wrongReconciler(
  { namespaces }: Facts,
  namespace: string,
  pods: readonly string[],
  count = 1,
): string | undefined {
  const row: NamespaceRow | undefined = namespaces.find((one) => one.namespace === namespace);
  const by = row?.reconciledBy ?? [];
  if (row !== undefined && row.count >= count && by.length > 0 && by.every((pod) => pods.includes(pod))) return undefined;
  const seen = by.length === 0 ? "no pod" : by.join(", ");
  return `${namespace} should be reconciled by ${pods.join(" or ")}, and was by ${seen} (count ${row?.count ?? 0})`;
}

/** A hint that the machine is busy; empty if it is not. */
export function busyText(load: number, cores: number): string {
  return load > cores ? ` (is this machine busy? load ${load.toFixed(0)} on ${cores} cores)` : "";
}
