// The proxy's connections to replicas. Invariants: one at a time is open, but for the service's, which stays while the replica that
// it leads to is alive and does not serve: asking that one again who leads costs no handshake, and does not go to a stopped one by
// chance. After KEPT_MS another may be asked: one that is cut off from the API server never hears who leads. Used by mesh-client.
import type { Clock } from "../../base/clock.ts";
import type { MeshChannel } from "./mesh-stream.ts";

export interface MeshChannels {
  /** To be released when its stream is over. */
  to(endpoint: string): MeshChannel;
  /** The replica at the endpoint serves. */
  served(endpoint: string): void;
  /** @param answered the replica at the other end is alive, and only does not serve */
  release(endpoint: string, answered: boolean): void;
  close(): void;
}

const KEPT_MS = 20_000;

/** @param options.service host:port that leads to any replica */
export function createChannels(options: {
  readonly service: string;
  readonly connect: (endpoint: string) => MeshChannel;
  readonly clock: Clock;
}): MeshChannels {
  const { service, connect, clock } = options;
  let inUse: MeshChannel | undefined;
  let kept: MeshChannel | undefined;
  let openedMs = 0;

  const drop = () => {
    kept?.close();
    kept = undefined;
  };
  return {
    to(endpoint) {
      if (endpoint !== service) {
        inUse = connect(endpoint);
        return inUse;
      }
      if (clock.monotonicMs() - openedMs >= KEPT_MS) drop();
      if (kept === undefined) {
        kept = connect(service);
        openedMs = clock.monotonicMs();
      }
      return kept;
    },
    served(endpoint) {
      if (endpoint !== service) drop();
    },
    release(endpoint, answered) {
      if (endpoint === service && !answered) drop();
      inUse?.close();
      inUse = undefined;
    },
    close: drop,
  };
}
