// What the thread of the listener shows to peers: the certificate and the CAs of the mesh, which the main
// thread has. Invariant: at most one question a second, however many handshakes a stranger begins. Used by
// reviews-tls.ts and peer-clients.ts.
import type { Clock } from "../../base/clock.ts";
import type { PeerCredentials } from "./thread-messages.ts";

export interface PeerIdentity {
  /** For one connection. @throws Error that says why there are none */
  current(): Promise<PeerCredentials>;
}

export interface AskedIdentity extends PeerIdentity {
  answered(credentials: PeerCredentials | { readonly problem: string }): void;
}

/** A rotated certificate is valid together with the one before for far longer. */
const USED_MS = 1_000;

/** @param ask sends the question */
export function createAskedIdentity(ask: () => void, clock: Pick<Clock, "monotonicMs">): AskedIdentity {
  let asked: PromiseWithResolvers<PeerCredentials> | undefined;
  let isWaiting = false;
  let answeredMs = 0;
  return {
    current() {
      if (asked === undefined || (!isWaiting && clock.monotonicMs() - answeredMs >= USED_MS)) {
        asked = Promise.withResolvers();
        isWaiting = true;
        ask();
      }
      return asked.promise;
    },
    answered(credentials) {
      isWaiting = false;
      answeredMs = clock.monotonicMs();
      if ("problem" in credentials) asked?.reject(new Error(credentials.problem));
      else asked?.resolve(credentials);
    },
  };
}
