// The two certificates of the listener: API servers see the operator's, and peers the mesh's. Invariant: a
// client is verified only under the name of peers, and by the present CAs of the mesh. Used by the traffic
// server.
import { createSecureContext, type SecureContext } from "node:tls";
import type { ServerTls } from "../server/server-tls.ts";
import type { OperatorCertificate } from "./operator-certificate.ts";
import type { PeerIdentity } from "./peer-identity.ts";
import { PEER_SERVER_NAME } from "./review-call.ts";

export function reviewsTls(operator: OperatorCertificate, identity: PeerIdentity): ServerTls {
  const peerContext = createPeerContext(identity);
  return {
    question: "does the caBundle of the webhook fit the certificate in certDir?",
    options: {
      requestCert: true,
      // An API server may show a certificate of its own. `peerNamesOf` looks at the result.
      rejectUnauthorized: false,
      SNICallback(name, done) {
        if (name === PEER_SERVER_NAME) peerContext().then((context) => done(null, context), done);
        else done(null); // the server's own
      },
    },
    follow(server) {
      const use = (pair: { readonly cert: string; readonly key: string }) =>
        server.setSecureContext({ ...pair, minVersion: "TLSv1.2" });
      if (operator.pair !== undefined) use(operator.pair);
      return operator.onChange(use);
    },
  };
}

function createPeerContext(identity: PeerIdentity): () => Promise<SecureContext> {
  let made: { readonly by: readonly string[]; readonly context: SecureContext } | undefined;
  return async () => {
    const { ca, cert, key } = await identity.current();
    if (made?.by[0] !== ca || made.by[1] !== cert) {
      made = { by: [ca, cert], context: createSecureContext({ ca, cert, key, minVersion: "TLSv1.3" }) };
    }
    return made.context;
  };
}
