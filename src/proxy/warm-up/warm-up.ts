// Lets a new proxy serve requests to itself for a moment. Otherwise the operator's first hundreds of requests
// run code that V8 has not compiled yet (docs/decisions/0036). Invariant: nothing waits for the warm-up, which
// sends one request at a time, so an operator's request waits at most for the piece of work that runs.
import { onAbort } from "../../base/abort.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { CallAbort } from "../http/call-signal.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import type { Session } from "../session/session.ts";
import { LIST_PATH, OBJECT_PATH } from "./stand-in.ts";

/** More requests bring little. */
const REQUESTS = 500;
/** One in so many is a list. */
const LIST_EVERY = 16;
/** With less of a CPU since its start the process has none to spare: the warm-up would hold up the operator. */
const MIN_CPU_SHARE = 0.3;

interface WarmUpOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly certificate: ServingCertificate;
  readonly session: Pick<Session, "current" | "onChange">;
  /** The longest time, in milliseconds; 0 turns the warm-up off. */
  readonly maxMs: number;
  /** As base/env.ts. */
  readonly cpuShare: () => number;
}

export function createWarmUp({ certificate, session, maxMs, cpuShare, clock, random, log }: WarmUpOptions): Runnable {
  const over = new CallAbort();
  const end = () => over.abort(new Error("the warm-up is over"));

  const run = async (caFile: string) => {
    const startMs = clock.monotonicMs();
    // Loaded only where it is used.
    const { startWarmUpProxy } = await import("./warm-up-proxy.ts");
    const proxy = await startWarmUpProxy(certificate, caFile, { clock, random });
    let sent = 0;
    try {
      for (; sent < REQUESTS && !over.aborted; sent++) await proxy.get(sent % LIST_EVERY === 1 ? LIST_PATH : OBJECT_PATH, over);
    } catch (error) {
      if (!over.aborted) throw error;
    } finally {
      await proxy.stop();
    }
    log.debug({ requests: sent, ms: Math.round(clock.monotonicMs() - startMs) }, "warmed up");
  };
  const begin = () => {
    const { caFile } = certificate;
    // The CA of a certificate from files is not known.
    if (caFile === undefined || over.aborted || cpuShare() < MIN_CPU_SHARE) return;
    const timer = clock.after(maxMs, end);
    const failed = (error: unknown) =>
      log.info(
        { err: error },
        "the warm-up failed at its own stand-in for the API server: the operator's first requests are slower",
      );
    void run(caFile).catch(failed).finally(timer.cancel);
  };
  return {
    name: "warm-up",
    async start(signal) {
      if (maxMs === 0) return;
      onAbort(signal, end);
      if (session.current !== undefined) return begin();
      // The first routes come before it.
      const unsubscribe = session.onChange(() => {
        unsubscribe();
        begin();
      });
    },
    // Does not wait for what is left of it: the drain of the operator's requests comes first.
    stop: async () => end(),
  };
}
