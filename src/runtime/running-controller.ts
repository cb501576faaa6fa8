// A controller at work: sources that queue requests, workers that reconcile them, and the way down. Invariant: no reconcile
// before every source has synced, one reconcile an object at a time, and whatever a reconciler throws ends in a retry or in
// the log, never in the process. Made by the builder in controller.ts.
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
        log.error({ ...request, timeoutMs }, "reconcile ignores its signal: its object waits for it, the others go on");
        release();
      },
    });
    metrics?.active.dec({ controller: name });
    metrics?.duration.observe({ controller: name }, (clock.monotonicMs() - startedMs) / 1000);
    if (outcome.result === "canceled") return;
    metrics?.reconciles.inc({ controller: name, result: outcome.result });
    follow(key, request, outcome);
  }

  /** What comes after a reconcile: a time that it asked for is kept, a failure waits longer each time. */
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
    // A conflict is everyday business: somebody else wrote first, the retry reads that.
    if (isStatus(error, "Conflict")) log.debug({ err: error, ...request, delayMs }, "reconcile conflicted");
    else log.warn({ err: error, ...request, delayMs }, "reconcile failed");
  }

  async function stop(): Promise<void> {
    stopping.abort();
    for (const end of unsubscribe.splice(0)) end();
    queue.clear(); // what waits is found again by the next start: reconcilers are level-based
    // Without leadership every further write may meet the new leader's, so there is no grace.
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
      // Lost leadership must reach the reconcilers at once, before the groups are drained one by one.
      signal.addEventListener("abort", () => isMeshError(signal.reason, "LEADERSHIP_LOST") && work.abort(signal.reason), {
        once: true,
      });
      for (const source of sources) unsubscribe.push(source.connect(enqueue));
      running = run();
    },
    stop,
  };
}
