// Lets the proxy serve requests to itself for a moment after its start. V8 compiles what has run often, so
// without this the operator's first hundreds of requests and first lists would teach it (docs/performance.md).
// Invariant: the operator's requests never wait for it: it runs beside them, and ends soon.

import type { Runnable } from "../../base/lifecycle.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import { LIST_PATH, OBJECT_PATH } from "./stand-in.ts";

/** More bring little: V8 has then compiled most of what a request runs. */
const REQUESTS = 500;
/** One in so many is a list. */
const LIST_EVERY = 16;

interface WarmUpOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly certificate: ServingCertificate;
  /** The longest time that it may take; 0 for none at all. A pod with little CPU does less in it. */
  readonly withinMs: number;
}

export function createWarmUp({ certificate, withinMs, clock, random, log }: WarmUpOptions): Runnable {
  let isStopping = false;
  let running = Promise.resolve();

  const run = async () => {
    const { caFile } = certificate;
    // The CA of a certificate from files is not known.
    if (caFile === undefined || withinMs === 0) return;
    const endMs = clock.monotonicMs() + withinMs;
    const { startRehearsal } = await import("./rehearsal.ts");
    const rehearsal = await startRehearsal(certificate, caFile, { clock, random });
    let sent = 0;
    try {
      for (; sent < REQUESTS && !isStopping && clock.monotonicMs() < endMs; sent++)
        await rehearsal.get(sent % LIST_EVERY === 0 ? LIST_PATH : OBJECT_PATH);
    } finally {
      await rehearsal.stop();
    }
    log.debug({ requests: sent, ms: Math.round(clock.monotonicMs() - endMs + withinMs) }, "warmed up");
  };
  return {
    name: "warm-up",
    async start() {
      running = run().catch((error: unknown) => log.warn({ err: error }, "warming up failed: the first requests are slower"));
    },
    async stop() {
      isStopping = true;
      await running;
    },
  };
}
