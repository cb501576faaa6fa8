// Reports a certificate that the manager does not issue or renew, at /readyz and in the log. The log has a
// line when the trouble begins or gets worse, and then every ten minutes.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";

/** From good to bad. */
const STATES = ["fine", "not renewed", "ends soon", "none yet", "over"] as const;
type State = (typeof STATES)[number];

const SAY_AGAIN_MS = 600_000;
/** With less than this part of its life left, a certificate that is not renewed is logged as an error. */
const SOON = 0.25;

export function createCertificateTrouble(manager: string, clock: Clock, log: Logger) {
  let certificate: X509Certificate | undefined;
  let reason: string | undefined;
  let lastLine: { readonly state: State; readonly reason: string | undefined; readonly ms: number } | undefined;

  const stateNow = (): State => {
    if (certificate === undefined) return "none yet";
    const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
    const left = (to - clock.now()) / (to - from);
    if (left <= 0) return "over";
    if (reason === undefined) return "fine";
    return left < SOON ? "ends soon" : "not renewed";
  };
  const writeLog = (state: State) => {
    const fields = { manager, reason, ends: certificate?.validTo };
    if (state === "none yet") log.warn(fields, "the manager has not issued a certificate to serve with yet; asking again");
    if (state === "not renewed") log.warn(fields, "the manager has not renewed the serving certificate; keeping the old one");
    if (state === "ends soon") log.error(fields, "the serving certificate ends soon and the manager does not renew it");
    if (state === "over")
      log.error(fields, "the serving certificate is over: the operator cannot connect to this proxy any more");
  };
  return {
    get reason(): string | undefined {
      return reason;
    },
    /** Called every few seconds, with the certificate in use and why the last request for another failed. */
    update(now: X509Certificate | undefined, why: string | undefined): void {
      certificate = now;
      reason = why;
      const state = stateNow();
      if (state === "fine") lastLine = undefined;
      if (state === "fine" || (state === "none yet" && reason === undefined)) return;
      const isNews =
        lastLine === undefined || lastLine.reason !== reason || STATES.indexOf(state) > STATES.indexOf(lastLine.state);
      if (!isNews && clock.monotonicMs() - (lastLine?.ms ?? 0) < SAY_AGAIN_MS) return;
      lastLine = { state, reason, ms: clock.monotonicMs() };
      writeLog(state);
    },
    get notReady(): string | undefined {
      const why = reason === undefined ? "" : `: ${reason}`;
      const state = stateNow();
      if (state === "none yet") return `no certificate from the manager yet${why}`;
      if (state !== "over") return undefined;
      return `the serving certificate was good until ${endOf(certificate)}: the operator cannot connect any more${why}`;
    },
    get warning(): string | undefined {
      const state = stateNow();
      if (state !== "not renewed" && state !== "ends soon") return undefined;
      return `the serving certificate ends at ${endOf(certificate)} and the manager does not renew it: ${reason ?? ""}`;
    },
  };
}

function endOf(certificate: X509Certificate | undefined): string {
  return certificate?.validToDate.toISOString() ?? "";
}
