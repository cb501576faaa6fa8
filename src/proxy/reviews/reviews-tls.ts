// The two certificates of the listener: API servers see the operator's, and peers the mesh's, which the main
// thread has. Invariants: a client is verified only under the name of peers, and by the present CAs of the
// mesh; a flood of handshakes asks the main thread one question a second.
import { createSecureContext, type SecureContext } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import type { TlsPair } from "../identity/tls-pair.ts";
import type { ServerTls } from "../server/traffic-server.ts";
import type { OperatorCertificate } from "./operator-certificate.ts";
import { PEER_SERVER_NAME } from "./review-call.ts";
import type { PeerCredentials } from "./thread-messages.ts";

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
      const use = (pair: TlsPair) => server.setSecureContext({ ...pair, minVersion: "TLSv1.2" });
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

export interface PeerIdentity {
  /** @throws Error that says why there are none */
  current(): Promise<PeerCredentials>;
}

/** How long an answer is used. A rotated certificate stays valid far longer. */
const USED_MS = 1_000;

export function createAskedIdentity(ask: () => void, clock: Pick<Clock, "monotonicMs">) {
  let asked: PromiseWithResolvers<PeerCredentials> | undefined;
  let isWaiting = false;
  let answeredMs = 0;
  return {
    current(): Promise<PeerCredentials> {
      if (asked === undefined || (!isWaiting && clock.monotonicMs() - answeredMs >= USED_MS)) {
        asked = Promise.withResolvers();
        isWaiting = true;
        ask();
      }
      return asked.promise;
    },
    answered(credentials: PeerCredentials | { readonly problem: string }): void {
      isWaiting = false;
      answeredMs = clock.monotonicMs();
      if ("problem" in credentials) asked?.reject(new Error(credentials.problem));
      else asked?.resolve(credentials);
    },
  };
}
