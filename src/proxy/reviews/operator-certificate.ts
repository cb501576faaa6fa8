// The certificate of the operator's webhook server, from the folder that the operator reads too. Invariants:
// a pair that cannot be read or does not match leaves the last good one in use; the server next to this proxy
// counts as the operator only with the present certificate or the one before.

import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import type { Timer } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import { createListeners } from "../../base/listeners.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { readPair, type TlsPair } from "../identity/tls-pair.ts";

export type OperatorCertificate = ReturnType<typeof createOperatorCertificate>;

export interface OperatorCertificateOptions extends Pick<ProcessContext, "clock" | "log"> {
  readonly certDir: string;
  /** Called often: why there has been no certificate for a while, or "". */
  readonly report: (problem: string) => void;
}

/** Kubelets replace the files of a Secret within a minute or two; this adds little to that. */
const CHECK_MS = 2_000;
/** An operator that writes the files itself needs some time after its start. */
const REPORT_AFTER_MS = 30_000;

export function createOperatorCertificate({ certDir, report, clock, log }: OperatorCertificateOptions) {
  const sinceMs = clock.monotonicMs();
  const listeners = createListeners<TlsPair>();
  let pair: TlsPair | undefined;
  /** The newest first, at most two. */
  let leaves: readonly X509Certificate[] = [];
  let problem: string | undefined = "has not been read yet";
  let timer: Timer | undefined;
  let isStopped = false;

  const read = async () => {
    try {
      const now = await readPair(join(certDir, "tls.crt"), join(certDir, "tls.key"));
      problem = undefined;
      if (now.cert === pair?.cert && now.key === pair.key) return;
      pair = now;
      leaves = [new X509Certificate(now.cert), ...leaves].slice(0, 2);
      log.info({ certDir, ends: leaves[0]?.validTo }, "serving webhooks with the operator's certificate");
      listeners.tell(now);
    } catch (error) {
      const why = problemOf(certDir, error);
      if (why !== problem) log.warn({ certDir, reason: why }, "the operator's webhook certificate cannot be used");
      problem = why;
    }
  };
  const run = async () => {
    await read();
    const isMissing = pair === undefined && clock.monotonicMs() - sinceMs >= REPORT_AFTER_MS;
    report(isMissing ? (problem ?? "") : "");
    if (!isStopped) timer = clock.after(CHECK_MS, () => void run());
  };
  return {
    get pair() {
      return pair;
    },
    /** Why the files cannot be used, with the remedy; undefined if they can. */
    get problem() {
      return problem;
    },
    /** A name of the certificate, for SNI. */
    get serverName() {
      return /(?:^|, )DNS:([^*",]+)(?:,|$)/.exec(leaves[0]?.subjectAltName ?? "")?.[1];
    },
    onChange: listeners.add,
    /** Whether this DER is the present certificate or the one before. If not, reads the files again. */
    async isOperators(leaf: Buffer): Promise<boolean> {
      const isKnown = () => leaves.some(({ raw }) => raw.equals(leaf));
      if (!isKnown()) await read();
      return isKnown();
    },
    /** Resolves after the first attempt: the operator may write the files after its own start. */
    start: run,
    stop() {
      isStopped = true;
      timer?.cancel();
    },
  };
}

function problemOf(certDir: string, error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "ENOENT") return `${certDir} has no tls.crt and tls.key yet`;
  if (code === "EACCES")
    return `the proxy may not read ${certDir}: set fsGroup in the pod's securityContext, or defaultMode 0444 for the Secret's volume`;
  return `${certDir}: ${errorMessage(cause)}`;
}
