// The certificate of this replica's servers and the bundle of trusted CAs. The certificate is renewed at half
// its life, or when another CA signs. Invariants: the last valid CA stays in use, whatever the Secret
// contains; the start waits for a CA, or fails if the CA is invalid.

import { generateKeyPairSync } from "node:crypto";
import { isIP } from "node:net";
import type { KeyCertificate, LeafOptions } from "../../base/certificates.ts";
import { backoffMs, sleep, type Timer } from "../../base/clock.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { createListeners } from "../../base/listeners.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { type Authority, type AuthoritySource, expiryOf, signLeaf } from "./authority.ts";

export interface MeshIdentity extends Runnable {
  /** With its chain; undefined until there is a CA. */
  readonly serving: KeyCertificate | undefined;
  /** PEM: all CAs of the mesh that are trusted now; "" until there is one. */
  readonly trustPem: string;
  /** Calls the listener after a change of the certificate or the bundle, until the result is called. */
  onChange(listener: () => void): () => void;
}

export interface SigningIdentity extends MeshIdentity {
  readonly authority: Authority | undefined;
  /** Why there is no CA yet, or why the last read failed. */
  readonly problem: string | undefined;
  /** When certificates expire, by name: `ca`, `next-ca`, `serving`. */
  readonly expiries: Readonly<Record<string, number>>;
  refresh(): Promise<void>;
}

export type ServerNames = Pick<LeafOptions, "commonName" | "dnsNames" | "ipAddresses">;

export interface ManagerNames {
  readonly namespace: string;
  readonly serviceName: string;
  readonly clusterDomain: string;
  /** Further names and addresses, which should not be names of the API server. */
  readonly serverNames: readonly string[];
}

interface MeshIdentityOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly source: AuthoritySource;
  readonly names: ServerNames;
}

const READ_MS = 60_000;
const READ_TIMEOUT_MS = 30_000;
const LEAF_LIFETIME_MS = 24 * 3_600_000;
const START_BACKOFF = { baseMs: 500, maxMs: 10_000 };

export function createMeshIdentity({ source, names, clock, random, log }: MeshIdentityOptions): SigningIdentity {
  const listeners = createListeners<void>();
  const lifetime = new AbortController();
  let authority: Authority | undefined;
  let serving: KeyCertificate | undefined;
  let renewAtMs = 0;
  let problem: string | undefined;
  let currentRead: Promise<void> | undefined;
  let isStale = false;
  let isStarted = false;
  let timer: Timer | undefined;

  function take(next: Authority): void {
    const now = clock.now();
    const isNewSigner = next.signer.certPem !== authority?.signer.certPem || next.chainPem !== authority.chainPem;
    const isNewTrust = next.trustPem !== authority?.trustPem;
    authority = next;
    const isDue = serving === undefined || isNewSigner || now >= renewAtMs;
    if (isDue) {
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const certPem = signLeaf(next, privateKey, { ...names, now, lifetimeMs: LEAF_LIFETIME_MS });
      serving = { certPem, keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
      renewAtMs = now + (expiryOf(certPem) - now) / 2;
      log.debug({ expires: new Date(expiryOf(certPem)).toISOString() }, "serving certificate made");
    }
    if (isDue || isNewTrust) listeners.tell();
  }

  async function read(): Promise<void> {
    const signal = AbortSignal.any([lifetime.signal, AbortSignal.timeout(READ_TIMEOUT_MS)]);
    try {
      take(await source.refresh(signal));
      if (problem !== undefined) log.info("the mesh CA can be read again");
      problem = undefined;
    } catch (error) {
      if (lifetime.signal.aborted) return;
      const message = errorMessage(error);
      if (problem !== message) log.error({ err: error }, "the mesh CA cannot be read");
      problem = message;
      if (authority !== undefined) return take(authority); // the leaf is renewed all the same
      throw error;
    }
  }

  // A read may miss a change that happens during the read.
  async function readAll(): Promise<void> {
    do {
      isStale = false;
      await read();
    } while (isStale && !lifetime.signal.aborted);
  }

  function refresh(): Promise<void> {
    isStale = true;
    currentRead ??= readAll().finally(() => {
      currentRead = undefined;
      schedule();
    });
    return currentRead;
  }

  function schedule(): void {
    timer?.cancel();
    if (!isStarted || lifetime.signal.aborted) return;
    const untilNextMs = (authority?.nextSignsAtMs ?? 0) - clock.now();
    const delayMs = untilNextMs > 0 ? Math.min(READ_MS, untilNextMs) : READ_MS;
    timer = clock.after(delayMs, () => void refresh().catch(() => undefined));
  }

  return {
    name: "mesh identity",
    get serving() {
      return serving;
    },
    get trustPem() {
      return authority?.trustPem ?? "";
    },
    get authority() {
      return authority;
    },
    get problem() {
      return problem;
    },
    get expiries() {
      return {
        ...(authority === undefined ? {} : { ca: expiryOf(authority.signer.certPem) }),
        ...(authority?.nextPem === undefined ? {} : { "next-ca": expiryOf(authority.nextPem) }),
        ...(serving === undefined ? {} : { serving: expiryOf(serving.certPem) }),
      };
    },
    onChange: listeners.add,
    refresh: () => refresh().catch(() => undefined),
    async start(signal) {
      for (let attempt = 0; authority === undefined && !signal.aborted; attempt++) {
        try {
          await refresh();
        } catch (error) {
          if (isMeshError(error, "CERTIFICATE_INVALID")) throw error;
          await sleep(clock, backoffMs(attempt, START_BACKOFF, random), signal).catch(() => undefined);
        }
      }
      isStarted = true;
      schedule();
    },
    async stop() {
      lifetime.abort();
      timer?.cancel();
      await currentRead?.catch(() => undefined);
    },
  };
}

export function managerNames({ namespace, serviceName, clusterDomain, serverNames: more }: ManagerNames): ServerNames {
  const service = `${serviceName}.${namespace}.svc`;
  return {
    commonName: "ctrlmesh-manager",
    dnsNames: [service, `${service}.${clusterDomain}`, ...more.filter((name) => isIP(name) === 0)],
    ipAddresses: more.filter((name) => isIP(name) !== 0),
  };
}
