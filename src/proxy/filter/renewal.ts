// One attempt to renew a watch, and its errors, after which the client has to list again.
import { onAbort } from "../../base/abort.ts";
import { isMeshError, MeshError } from "../../base/errors.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { CallAbort, type CallSignal } from "../http/call-signal.ts";
import { PolicyError } from "../policies/policy-refusal.ts";
import type { Session } from "../session/session.ts";
import type { StreamMetrics } from "./stream-metrics.ts";

/** How long a renewal may take, its wait for a turn included. The client gets no event meanwhile. */
const RENEWAL_MS = 5_000;

export interface RenewalDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly session: Session;
  readonly metrics: StreamMetrics;
}

/**
 * Renews within `RENEWAL_MS`, counts the result and logs a failure, which returns undefined.
 * @throws PolicyError for a new watch that a policy refuses; a watch that has begun is never refused
 */
export async function attemptRenewal<T>(
  signal: CallSignal,
  renew: (asking: CallSignal) => Promise<T>,
  { session, clock, metrics, log }: RenewalDeps,
): Promise<T | undefined> {
  const asking = new CallAbort();
  const end = session.beginRenewal();
  const unlink = onAbort(signal, () => asking.abort(signal.reason));
  const timer = clock.after(RENEWAL_MS, () => asking.abort(new MeshError("ABORTED", "renewing a watch: no answer in time")));
  try {
    const renewed = await renew(asking);
    metrics.renewals.inc({ result: "renewed" });
    return renewed;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (error instanceof PolicyError) throw error;
    const isExpected = isMeshError(error, "NOT_RENEWED");
    metrics.renewals.inc({ result: isExpected ? "expired" : "failed" });
    log[isExpected ? "debug" : "warn"]({ err: error }, "watch not renewed: its client has to list again");
    return undefined;
  } finally {
    end();
    timer.cancel();
    unlink();
  }
}

/** The error for a watch that cannot continue although nothing is wrong. */
export function notRenewed(why: string): MeshError {
  return new MeshError("NOT_RENEWED", `renewing a watch: ${why}`);
}

/** The error for a reply that a renewal cannot use. A 410 and an unreadable reply are expected. */
export function renewalFailed(what: string, status: number): MeshError {
  return status === 200 || status === 410 ? notRenewed(what) : new MeshError("RENEWAL_FAILED", `renewing a watch: ${what}`);
}
