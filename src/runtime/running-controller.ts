// A running controller: sources queue requests, workers reconcile them, and `stop` drains both. Invariant: no reconcile runs before
// every source has synced; an object has one reconcile at a time; an error of a reconciler leads to a retry or a log line, and never
// ends the process. Built by controller.ts.
import { systemClock, systemRandom } from "../base/clock.ts";
import { isMeshError } from "../base/errors.ts";
import { isStatus } from "../kube/status.ts";
import type { Controller, ControllerOptions } from "./controller.ts";
import type { Source } from "./controller-source.ts";
import { attemptReconcile, type Outcome } from "./reconcile-attempt.ts";
import { formatRequest, parseRequest, type Reconciler, type Request } from "./reconciler.ts";
import { createWorkQueue } from "./work-queue.ts";

export function createController(options: ControllerOptions, sources: readonly Source[], reconciler: Reconciler): Controller {
  const { name, clock = systemClock, random = systemRandom, debounceMs = 0, graceMs = 5_000 } = options;
  const log = options.log.child({ controller: name });
  const { metrics, backoff, reconcileTimeoutMs: timeoutMs } = options;
  const queue = createWorkQueue({
    name,
    clock,
    random,
    metrics: metrics?.queue,
    ...(backoff === undefined ? {} : { backoff }),
  });
  const work = new AbortController();
  const stopping = new AbortController();
  const unsubscribe: (() => void)[] = [];
  let lifetime: AbortSignal | undefined;
  let running: Promise<void> | undefined;

  const enqueue = (request: Request) => queue.addAfter(formatRequest(request), debounceMs);

  async function run(): Promise<void> {
    const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve(), { once: true }));
    await Promise.race([Promise.all(sources.map((source) => source.synced)), stopped]);
    if (stopping.signal.aborted) return;
    log.debug("controller synced");
    await queue.run(options.concurrency ?? 1, reconcile);
  }

  async function reconcile(key: string, release: () => void): Promise<void> {
    const request = parseRequest(key);
    const startedMs = clock.monotonicMs();
    metrics?.active.inc({ controller: name });
    const outcome = await attemptReconcile({
      reconciler,
      request,
      signal: work.signal,
      clock,
      timeoutMs,
      onTimeout: () => metrics?.timeouts.inc({ controller: name }),
      onStuck() {
        log.error(
          { ...request, timeoutMs },
          "reconcile ignores its signal: its object waits for it, other objects are reconciled",
        );
        release();
      },
    });
    metrics?.active.dec({ controller: name });
    metrics?.duration.observe({ controller: name }, (clock.monotonicMs() - startedMs) / 1000);
    if (outcome.result === "canceled") return;
    metrics?.reconciles.inc({ controller: name, result: outcome.result });
    follow(key, request, outcome);
  }

  /** Queues the next reconcile: at the time that this one asked for, or after a backoff that grows with each failure. */
  function follow(key: string, request: Request, outcome: Exclude<Outcome, { result: "canceled" }>): void {
    if (outcome.result !== "error") {
      queue.forget(key);
      if (outcome.result === "requeue_after") queue.addAfter(key, outcome.afterMs);
      return;
    }
    const { error, terminal } = outcome;
    metrics?.errors.inc({ controller: name });
    if (terminal) {
      metrics?.terminalErrors.inc({ controller: name });
      queue.forget(key);
      log.error({ err: error, ...request }, "reconcile failed for good");
      return;
    }
    const delayMs = Math.round(queue.addRateLimited(key));
    // A conflict is normal: another writer was first, and the retry reads what it wrote.
    if (isStatus(error, "Conflict")) log.debug({ err: error, ...request, delayMs }, "reconcile conflicted");
    else log.warn({ err: error, ...request, delayMs }, "reconcile failed");
  }

  async function stop(): Promise<void> {
    stopping.abort();
    for (const end of unsubscribe.splice(0)) end();
    queue.clear(); // the next start finds these objects again: reconcilers are level-based
    // After a lost leadership every further write may collide with the new leader's, so there is no grace.
    if (isMeshError(lifetime?.reason, "LEADERSHIP_LOST")) work.abort(lifetime?.reason);
    const grace = clock.after(graceMs, () => work.abort());
    const drained = queue.shutdown();
    await running;
    if (running !== undefined) await drained;
    grace.cancel();
  }

  return {
    name: `controller ${name}`,
    enqueue,
    async start(signal) {
      lifetime = signal;
      // A lost leadership must reach the reconcilers at once: the groups are drained one after the other.
      signal.addEventListener("abort", () => isMeshError(signal.reason, "LEADERSHIP_LOST") && work.abort(signal.reason), {
        once: true,
      });
      for (const source of sources) unsubscribe.push(source.connect(enqueue));
      running = run();
    },
    stop,
  };
}
