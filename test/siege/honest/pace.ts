// The pace of an honest client: a call each so many milliseconds, whether the last one has an answer or not,
// so that a stall is seen by every call that it hits.
import { setTimeout as sleep } from "node:timers/promises";
import { createSeries, type Series } from "../series.ts";

export interface HonestClient {
  readonly name: string;
  readonly everyMs: number;
  /** @throws for an answer that is not the one of a quiet time */
  readonly call: (number: number, signal: AbortSignal) => Promise<void>;
  readonly close?: () => unknown;
}

export interface Pace {
  /** From now on calls count here. Undefined: they do not count. */
  into(series: Series | undefined): void;
  stop(): Promise<void>;
}

/** No client waits longer: an API server gives a webhook 10 s. */
const PATIENCE_MS = 10_000;
const MAX_OPEN = 200;

export function startPace({ everyMs, call, close }: HonestClient): Pace {
  const running = new Set<Promise<void>>();
  const over = new AbortController();
  let series: Series | undefined;
  const one = async (number: number) => {
    const [target, startedMs] = [series, performance.now()];
    const failure = await call(number, AbortSignal.timeout(PATIENCE_MS)).then(() => undefined, reasonOf);
    target?.add(startedMs, performance.now(), failure);
  };
  const loop = (async () => {
    for (let number = 0; !over.signal.aborted; number++) {
      if (running.size < MAX_OPEN) {
        const call = one(number).finally(() => running.delete(call));
        running.add(call);
      }
      await sleep(everyMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  return {
    into(next) {
      series = next;
      next?.resume(performance.now());
    },
    async stop() {
      over.abort();
      await loop;
      await Promise.all(running);
      await close?.();
    },
  };
}

function reasonOf(error: unknown): string {
  const { code, name, message } = error as { code?: unknown; name?: string; message?: string };
  return `${String(code ?? name)} ${message ?? ""}`.trim().slice(0, 400);
}

/** One set of times for each window of a measurement. */
export function seriesNow(): Series {
  return createSeries(performance.now());
}
