// The certificate that the proxy serves with: from files (looked at again every minute), or made by itself with a CA that
// it keeps in its data folder, so that a restarted proxy is trusted by the operator that already runs. Invariant: the CA
// certificate that operators read is written before a port is bound; the key is readable by us alone.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../base/certificates.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";

/** Certificate and key as node:tls takes them. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

export interface ServingCertificate extends Runnable {
  /** @throws MeshError `NOT_STARTED` before `start` */
  current(): TlsPair;
  /** The file with the CA for the operator; undefined if the certificate comes from files. */
  readonly caFile: string | undefined;
  /** Calls the listener with each new pair. Returns the unsubscription. */
  onChange(listener: (now: TlsPair) => void): () => void;
}

export interface ServingCertificateOptions {
  /** Given: serve with these files. Else: make one. */
  readonly files: { readonly cert: string; readonly key: string } | undefined;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What operators call the API server, and where we listen. */
export const SERVING_NAMES = {
  dnsNames: ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"],
  ipAddresses: ["127.0.0.1", "::1"],
} as const;

const DAY_MS = 86_400_000;
const CHECK_MS = 60_000;
const LEAF_DAYS = 90;
const CA_DAYS = 3650;
/** Renewed when this little is left: far longer than any restart takes. */
const RENEW_LEAF_MS = 30 * DAY_MS;
const RENEW_CA_MS = 180 * DAY_MS;

/** Makes the source; `start` loads or makes the first pair. */
export function createServingCertificate(options: ServingCertificateOptions): ServingCertificate {
  const { files, dataDir, clock, log } = options;
  const listeners = new Set<(now: TlsPair) => void>();
  let pair: TlsPair | undefined;
  let timer: Timer | undefined;

  const next = async (): Promise<TlsPair> => {
    if (files !== undefined) return readPair(files.cert, files.key);
    if (pair !== undefined && remainingMs(pair.cert, clock) > RENEW_LEAF_MS) return pair;
    const leaf = issueServerCertificate(await loadCa(dataDir, clock), { ...SERVING_NAMES, now: clock.now(), days: LEAF_DAYS });
    return { cert: leaf.certPem, key: leaf.keyPem };
  };
  const check = async () => {
    try {
      const now = await next();
      if (now.cert === pair?.cert && now.key === pair.key) return;
      pair = now;
      for (const listener of listeners) listener(now);
      log.info("the serving certificate was renewed");
    } catch (error) {
      log.error({ err: error }, "renewing the serving certificate failed; keeping the old one");
    }
  };
  const schedule = () => {
    timer = clock.after(CHECK_MS, () => void check().then(() => timer !== undefined && schedule()));
  };

  return {
    name: "serving-certificate",
    caFile: files === undefined ? join(dataDir, "ca.crt") : undefined,
    async start() {
      pair = await next();
      schedule();
    },
    async stop() {
      timer?.cancel();
      timer = undefined;
    },
    current() {
      if (pair === undefined) throw new MeshError("NOT_STARTED", "reading the serving certificate: not started");
      return pair;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

async function readPair(certFile: string, keyFile: string): Promise<TlsPair> {
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

// The CA of the data folder, or a new one. The key is written first: a certificate without its key would be of no use.
async function loadCa(dataDir: string, clock: Clock): Promise<KeyCertificate> {
  const certFile = join(dataDir, "ca.crt");
  const keyFile = join(dataDir, "ca.key");
  try {
    const { cert, key } = await readPair(certFile, keyFile);
    if (remainingMs(cert, clock) > RENEW_CA_MS) return { certPem: cert, keyPem: key };
  } catch {
    // none yet, or half written: made anew below
  }
  const ca = createCa({ commonName: "ctrlmesh-proxy", now: clock.now(), days: CA_DAYS });
  await mkdir(dataDir, { recursive: true });
  await replaceFile(keyFile, ca.keyPem, 0o600);
  await replaceFile(certFile, ca.certPem, 0o644);
  return ca;
}

async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const fresh = `${file}.new`;
  await writeFile(fresh, text, { mode });
  await rename(fresh, file);
}

function remainingMs(certPem: string, clock: Clock): number {
  return new X509Certificate(certPem).validToDate.getTime() - clock.now();
}
