// The pair that is in use, for whichever way it came: who wants to know is told, and the metric says when it ends. Used by the three
// makers of a ServingCertificate.
import { X509Certificate } from "node:crypto";
import { MeshError } from "../../base/errors.ts";
import { Gauge, type Registry } from "../../base/metrics.ts";
import type { ServingCertificate, TlsPair } from "./serving-certificate.ts";

export interface CertificateHolder extends Pick<ServingCertificate, "current" | "onChange"> {
  /** Takes the pair into use. False if it is in use already. */
  use(pair: TlsPair): boolean;
  /** Undefined before the first. */
  readonly pair: TlsPair | undefined;
}

export function createCertificateHolder(registry: Registry): CertificateHolder {
  const listeners = new Set<(now: TlsPair) => void>();
  let pair: TlsPair | undefined;
  const expiry = new Gauge({
    name: "ctrlmesh_certificate_expiry_timestamp_seconds",
    help: "When the certificate ends, in seconds since the epoch.",
    labelNames: ["name"],
    registers: [registry],
  });
  return {
    get pair() {
      return pair;
    },
    use(now) {
      if (now.cert === pair?.cert && now.key === pair.key) return false;
      pair = now;
      expiry.set({ name: "serving" }, new X509Certificate(now.cert).validToDate.getTime() / 1000);
      for (const listener of listeners) listener(now);
      return true;
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
