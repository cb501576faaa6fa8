// The certificates of the traffic server's listener. A new certificate is for new connections, and cuts none.
import type { Server, TlsOptions } from "node:tls";
import type { ServingCertificate } from "../identity/serving-certificate.ts";

export interface ServerTls {
  readonly options?: Pick<TlsOptions, "SNICallback" | "requestCert" | "rejectUnauthorized">;
  /** What the reader of the log should ask when a client breaks off the handshake. */
  readonly question: string;
  /** Sets the certificate for clients that `options` does not name, now and later. Returns the end. */
  follow(server: Pick<Server, "setSecureContext">): () => void;
}

export function singleCertificate(certificate: Pick<ServingCertificate, "current" | "onChange">): ServerTls {
  return {
    question: "does it trust the CA of this proxy?",
    follow(server) {
      const use = (pair: ReturnType<ServingCertificate["current"]>) =>
        server.setSecureContext({ ...pair, minVersion: "TLSv1.2" });
      use(certificate.current());
      return certificate.onChange(use);
    },
  };
}
