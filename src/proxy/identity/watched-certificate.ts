// A serving certificate that nobody needs to be asked for: it is there at the start, and looked at again every minute. Invariant: one
// that cannot be had any more leaves the old one in use. Used for a certificate from files and for one of our own.
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { CertificateHolder } from "./certificate-holder.ts";
import type { ServingCertificate, TlsPair } from "./serving-certificate.ts";

export interface WatchedCertificateOptions {
  /** The pair to use from now on, given the one in use. */
  readonly next: (before: TlsPair | undefined) => Promise<TlsPair>;
  readonly caFile: string | undefined;
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
