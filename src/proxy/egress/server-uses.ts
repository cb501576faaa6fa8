// The servers to which this pod has tunnels, or had tunnels so recently that the server may still work on a request. Invariant:
// routes that take a server away from the pod are not acknowledged while the server is in use.
import type { Clock, Timer } from "../../base/clock.ts";
import { DEFAULT_DRAIN_MS } from "../../mesh/ownership/clusters.ts";
import type { ClusterSession } from "../session/session.ts";

interface ServerUse {
  open: number;
  hasSent: boolean;
  /** Tells the session that the use has ended. */
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
    /** @param drainMs how long the server may work on a request; undefined if no divided cluster has it */
    ended(server: string, hasSent: boolean, drainMs = DEFAULT_DRAIN_MS): void {
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
