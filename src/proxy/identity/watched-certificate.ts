// A serving certificate that is checked every minute: one from files, as cert-manager renews them in a
// mounted Secret, or one of the proxy's own. Invariant: while no better one can be had, the old one stays in use.
import { X509Certificate } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../base/certificates.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { replaceFile } from "../../base/durable-file.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { type CertificateHolder, SERVING_NAMES, type ServingCertificate } from "./serving-certificate.ts";
import { readPair, type TlsPair } from "./tls-pair.ts";

export interface WatchedCertificateOptions extends Pick<ProcessContext, "clock" | "log"> {
  /** `before` is the pair in use. */
  readonly next: (before: TlsPair | undefined) => Promise<TlsPair>;
  readonly caFile?: string;
  readonly holder: CertificateHolder;
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

type OwnCertificateOptions = Omit<WatchedCertificateOptions, "next" | "caFile"> & { readonly dataDir: string };

const DAY_MS = 86_400_000;
const LEAF_DAYS = 90;
const CA_DAYS = 3650;
/**
 * A certificate is renewed when less than this is left. For the CA it is longer than LEAF_DAYS, so that no
 * leaf outlives its CA.
 */
const RENEW_LEAF_MS = 30 * DAY_MS;
const RENEW_CA_MS = 180 * DAY_MS;

/**
 * For the loopback and for tests. The data folder keeps the CA, so an operator still trusts a restarted
 * proxy.
 */
export function createOwnCertificate({ dataDir, ...options }: OwnCertificateOptions): ServingCertificate {
  const { clock } = options;
  return createWatchedCertificate({
    ...options,
    caFile: join(dataDir, "ca.crt"),
    async next(before) {
      if (before !== undefined && remainingMs(before.cert, clock) > RENEW_LEAF_MS) return before;
      const leaf = issueServerCertificate(await loadCa(dataDir, clock), { ...SERVING_NAMES, now: clock.now(), days: LEAF_DAYS });
      return { cert: leaf.certPem, key: leaf.keyPem };
    },
  });
}

// The key is written first, since a certificate without its key is of no use.
async function loadCa(dataDir: string, clock: Clock): Promise<KeyCertificate> {
  const certFile = join(dataDir, "ca.crt");
  const keyFile = join(dataDir, "ca.key");
  try {
    const { cert, key } = await readPair(certFile, keyFile);
    if (remainingMs(cert, clock) > RENEW_CA_MS) return { certPem: cert, keyPem: key };
  } catch {
    // There is no CA yet, or it is half written.
  }
  const ca = createCa({ commonName: "ctrlmesh-proxy", now: clock.now(), days: CA_DAYS });
  await mkdir(dataDir, { recursive: true }); // the operator may run as another user
  await replaceFile(keyFile, ca.keyPem);
  await replaceFile(certFile, ca.certPem, 0o644);
  return ca;
}

function remainingMs(certPem: string, clock: Clock): number {
  return new X509Certificate(certPem).validToDate.getTime() - clock.now();
}
