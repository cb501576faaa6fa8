// Lets a new proxy serve requests to itself for a moment. Otherwise the operator's first hundreds of requests
// run code that V8 has not compiled yet (docs/decisions/0036). Invariant: nothing waits for the warm-up, which
// sends one request at a time, so an operator's request waits at most for the piece of work that runs.
import type { Runnable } from "../../base/lifecycle.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { CallAbort } from "../http/call-signal.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import { LIST_PATH, OBJECT_PATH } from "./stand-in.ts";

/** More requests bring little. */
const REQUESTS = 500;
/** One in so many is a list. */
const LIST_EVERY = 16;

interface WarmUpOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly certificate: ServingCertificate;
  /** The longest time, in milliseconds; 0 turns the warm-up off. With little CPU fewer requests fit into it. */
  readonly maxMs: number;
}

export function createWarmUp({ certificate, maxMs, clock, random, log }: WarmUpOptions): Runnable {
  const over = new CallAbort();
  const end = () => over.abort(new Error("the warm-up is over"));
  let running = Promise.resolve();

  const run = async (caFile: string) => {
    const startMs = clock.monotonicMs();
    // Loaded only here, and given back with the rest.
    const { startWarmUpProxy } = await import("./warm-up-proxy.ts");
    const proxy = await startWarmUpProxy(certificate, caFile, { clock, random });
    let sent = 0;
    try {
      for (; sent < REQUESTS && !over.aborted; sent++) await proxy.get(sent % LIST_EVERY === 0 ? LIST_PATH : OBJECT_PATH, over);
    } catch (error) {
      if (!over.aborted) throw error;
    } finally {
      await proxy.stop();
    }
    log.debug({ requests: sent, ms: Math.round(clock.monotonicMs() - startMs) }, "warmed up");
  };
  return {
    name: "warm-up",
    async start() {
      const { caFile } = certificate;
      // The CA of a certificate from files is not known.
      if (caFile === undefined || maxMs === 0) return;
      const timer = clock.after(maxMs, end);
      const failed = (error: unknown) => log.warn({ err: error }, "the warm-up failed: the operator's first requests are slower");
      running = run(caFile).catch(failed).finally(timer.cancel);
    },
    async stop() {
      end();
      await running;
    },
  };
}
