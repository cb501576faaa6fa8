// A serving certificate that is there at the start, and that is looked at again every minute: one from files, as cert-manager renews
// them in a mounted Secret, or one of the proxy's own. Invariant: while no better one can be had, the old one stays in use.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { CertificateHolder, ServingCertificate, TlsPair } from "./serving-certificate.ts";

export interface WatchedCertificateOptions {
  /** The pair to use from now on. `before` is the one in use. */
  readonly next: (before: TlsPair | undefined) => Promise<TlsPair>;
  readonly caFile?: string;
  readonly holder: CertificateHolder;
  readonly clock: Clock;
  readonly log: Logger;
}

const CHECK_MS = 60_000;

export function createWatchedCertificate({ next, caFile, holder, clock, log }: WatchedCertificateOptions): ServingCertificate {
  let timer: Timer | undefined;
  const check = async () => {
    try {
      if (holder.use(await next(holder.pair))) log.info("the serving certificate was renewed");
    } catch (error) {
      log.error({ err: error }, "renewing the serving certificate failed; keeping the old one");
    }
  };
  const schedule = () => {
    timer = clock.after(CHECK_MS, () => void check().then(() => timer !== undefined && schedule()));
  };
  return {
    name: "serving-certificate",
    caFile,
    current: holder.current,
    onChange: holder.onChange,
    notReady: undefined,
    warning: undefined,
    async start() {
      holder.use(await next(undefined));
      schedule();
    },
    async stop() {
      timer?.cancel();
      timer = undefined;
    },
  };
}

/**
 * Reads a certificate and its key. Somebody may be replacing the two files, so that a pair that does not match is an error.
 * @throws MeshError `CERTIFICATE_UNREADABLE`
 */
export async function readPair(certFile: string, keyFile: string): Promise<TlsPair> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
      throw new Error("the key does not belong to the certificate");
    }
    return { cert, key };
  } catch (cause) {
    throw new MeshError("CERTIFICATE_UNREADABLE", `reading the serving certificate ${certFile} and its key`, { cause });
  }
}
