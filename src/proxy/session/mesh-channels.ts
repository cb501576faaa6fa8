// The proxy's connections to replicas. Invariant: one connection is open, and besides it the one to the
// Service, as long as its replica is alive and does not serve: asking it again costs no handshake. After
// KEPT_MS another replica is asked, because one that is cut off from the API server never learns who leads.
import type { Clock } from "../../base/clock.ts";
import type { ManagerPass } from "../identity/manager-access.ts";
import type { ManagerChannel } from "../identity/manager-channel.ts";

const KEPT_MS = 20_000;

/** @param service host:port that leads to any replica */
export function createChannels(service: string, connect: (endpoint: string, pass: ManagerPass) => ManagerChannel, clock: Clock) {
  let redirectChannel: ManagerChannel | undefined;
  let serviceChannel: ManagerChannel | undefined;
  let openedMs = 0;
  let openedWith: ManagerPass | undefined;

  const drop = () => {
    serviceChannel?.close();
    serviceChannel = undefined;
  };
  return {
    /** To be released when its stream is over. @param pass for a new connection */
    to(endpoint: string, pass: ManagerPass): ManagerChannel {
      if (endpoint !== service) {
        redirectChannel = connect(endpoint, pass);
        return redirectChannel;
      }
      // A connection that breaks is made anew by gRPC, which keeps its first trust.
      const trustsOthers = pass.credentials !== openedWith?.credentials;
      if (trustsOthers || clock.monotonicMs() - openedMs >= KEPT_MS) drop();
      if (serviceChannel === undefined) {
        serviceChannel = connect(service, pass);
        openedWith = pass;
        openedMs = clock.monotonicMs();
      }
      return serviceChannel;
    },
    served(endpoint: string): void {
      if (endpoint !== service) drop();
    },
    /** @param answered the replica at the other end is alive, and only does not serve */
    release(endpoint: string, answered: boolean): void {
      if (endpoint === service && !answered) drop();
      redirectChannel?.close();
      redirectChannel = undefined;
    },
    close: drop,
  };
}
