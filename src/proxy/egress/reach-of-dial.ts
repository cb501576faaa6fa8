// Notes how the connections of the forward proxy to clusters begin.
import { formatAddress } from "../../base/settings.ts";
import { clusterAt } from "../../mesh/ownership/clusters.ts";
import type { EnforcedRoutes } from "../../mesh/ownership/enforced.ts";
import type { ClusterReach } from "../observe/cluster-reach.ts";
import type { Dial } from "./dial.ts";
import { EgressError, isServersFault } from "./egress-error.ts";

export function withReach(dial: Dial, reach: ClusterReach, session: Pick<EnforcedRoutes, "current">): Dial {
  const watched = (connect: Dial["plain"]): Dial["plain"] => {
    return async (server, signal, rules) => {
      const note = (failure: string | undefined) => {
        const cluster = session.current && clusterAt(session.current.snapshot, formatAddress(server));
        if (cluster !== undefined) reach.note(cluster.name, failure);
      };
      try {
        const socket = await connect(server, signal, rules);
        note(undefined);
        return socket;
      } catch (error) {
        if (error instanceof EgressError && isServersFault(error)) note(error.message);
        throw error;
      }
    };
  };
  return { plain: watched(dial.plain), connect: watched(dial.connect) };
}
