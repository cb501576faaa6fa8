// The certificate that the proxy serves its operator with, in one of three ways: from files, by the mesh's identity, or made by
// itself. Invariant: who uses it need not know which. Made in assemble.ts; used by the traffic server.
import type { Runnable } from "../../base/lifecycle.ts";

/** Certificate (with what leads to its CA behind it) and key as node:tls takes them. */
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
  /** Why no operator could use it, in words for the reader of /readyz. */
  readonly notReady: string | undefined;
  /** What will become a trouble if nobody does anything, likewise. */
  readonly warning: string | undefined;
}

/** What operators call the API server, and where we listen. */
export const SERVING_NAMES = {
  dnsNames: ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"],
  ipAddresses: ["127.0.0.1", "::1"],
} as const;
