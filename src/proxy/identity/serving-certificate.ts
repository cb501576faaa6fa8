// The certificate for the operator, from files, from the manager or made by the proxy itself.

import { X509Certificate } from "node:crypto";
import { MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { createListeners } from "../../base/listeners.ts";
import { Gauge, type Registry } from "../../base/metrics.ts";
import type { TlsPair } from "./tls-pair.ts";

export interface ServingCertificate extends Runnable {
  /** @throws MeshError `NOT_STARTED` before `start` */
  current(): TlsPair;
  /** The file with the CA for the operator; undefined if the certificate comes from files. */
  readonly caFile: string | undefined;
  /** Returns the unsubscription. */
  onChange(listener: (now: TlsPair) => void): () => void;
  /** Why no operator can use the certificate, for /readyz. */
  readonly notReady: string | undefined;
  /** Why the certificate will soon be of no use, for /readyz. */
  readonly warning: string | undefined;
}

/** The names by which operators call the API server, and the addresses on which the proxy listens. */
export const SERVING_NAMES = {
  dnsNames: ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"],
  ipAddresses: ["127.0.0.1", "::1"],
} as const;

export type CertificateHolder = ReturnType<typeof createCertificateHolder>;

/** The pair in use, with its listeners and its metric. */
export function createCertificateHolder(registry: Registry) {
  const listeners = createListeners<TlsPair>();
  let pair: TlsPair | undefined;
  const expiry = new Gauge({
    name: "ctrlmesh_certificate_expiry_timestamp_seconds",
    help: "When the certificate ends, in seconds since the epoch.",
    labelNames: ["name"],
    registers: [registry],
  });
  return {
    get pair(): TlsPair | undefined {
      return pair;
    },
    /** False if the pair is in use already. */
    use(now: TlsPair): boolean {
      if (now.cert === pair?.cert && now.key === pair.key) return false;
      pair = now;
      expiry.set({ name: "serving" }, new X509Certificate(now.cert).validToDate.getTime() / 1000);
      listeners.tell(now);
      return true;
    },
    current(): TlsPair {
      if (pair === undefined) throw new MeshError("NOT_STARTED", "reading the serving certificate: not started");
      return pair;
    },
    onChange: listeners.add,
  };
}
