// The servers to which this pod has tunnels, or had some a moment ago: a server may still work on what it has accepted. Invariant:
// routes that take a server away from the pod are not acknowledged before that time is over.
import type { Clock, Timer } from "../../base/clock.ts";
import type { ClusterSession } from "../session/session.ts";

/** A server that becomes a divided cluster's was in use before; its API server's default of --request-timeout is assumed. */
const UNKNOWN_DRAIN_MS = 60_000;

interface ServerUse {
  open: number;
  hasSent: boolean;
  /** Ends the count of the session. */
  readonly end: () => void;
  ending?: Timer | undefined;
}

export type ServerUses = ReturnType<typeof createServerUses>;

export function createServerUses(session: Pick<ClusterSession, "beginEgress">, clock: Pick<Clock, "after">) {
  const servers = new Map<string, ServerUse>();
  return {
    begin(server: string): void {
      const use = servers.get(server) ?? { open: 0, hasSent: false, end: session.beginEgress(server) };
      servers.set(server, use);
      use.ending?.cancel();
      use.open++;
    },
    /** @param drainMs how long the server may work on a request; undefined if it is no divided cluster's */
    ended(server: string, hasSent: boolean, drainMs = UNKNOWN_DRAIN_MS): void {
      const use = servers.get(server);
      if (use === undefined) return;
      use.open--;
      use.hasSent ||= hasSent;
      if (use.open > 0) return;
      const over = () => {
        servers.delete(server);
        use.end();
      };
      if (use.hasSent) use.ending = clock.after(drainMs, over);
      else over();
    },
  };
}
