// Limits tunnels to the other clusters that the app divides. Invariants: a byte goes there only while this pod's subset owns the
// cluster and the API server at home accepts this pod. When a server begins to belong to a divided cluster, its open tunnels and
// requests are cut, since they were not checked.
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { formatAddress } from "../../base/settings.ts";
import { clusterAt, mayReach, PROOF_MS } from "../../mesh/ownership/clusters.ts";
import type { EgressTarget } from "../../policy/policy-request.ts";
import type { HomeProof } from "../home/home-proof.ts";
import type { ClusterSession } from "../session/session.ts";
import { clusterRefusal } from "./refusals.ts";
import { createServerUses } from "./server-uses.ts";
import type { Visit } from "./visits.ts";

export interface ClusterGateDeps {
  readonly session: ClusterSession;
  readonly home: Pick<HomeProof, "leftMs" | "authorization">;
  /** `closedFor` is the lock's new name while writes are refused, until this pod leads by that name. */
  readonly lock: { readonly closedFor: string | undefined };
  readonly clock: Clock;
  readonly log: Logger;
}

interface Passage {
  readonly visit: Visit;
  readonly server: string;
  /** The divided cluster that had the server when the tunnel began; undefined if none had it. */
  readonly cluster: string | undefined;
}

export type ClusterGate = ReturnType<typeof createClusterGate>;

export function createClusterGate({ session, home, lock, clock, log }: ClusterGateDeps) {
  const passages = new Set<Passage>();
  const uses = createServerUses(session, clock);
  let isWatchingHome = false;

  const cut = ({ visit, server, cluster }: Passage, why: string) => {
    log.warn({ cluster, server, why }, "tunnel to a cluster cut");
    visit.over();
  };
  const clusterOf = (server: string) => session.current && clusterAt(session.current.snapshot, server);
  const mayPass = (server: string) =>
    session.current !== undefined &&
    mayReach(session.current.snapshot, server) &&
    lock.closedFor === undefined &&
    home.leftMs() > 0;

  session.onChange(({ snapshot }, before) => {
    const isOtherSubset = before !== undefined && before.snapshot.subset !== snapshot.subset;
    for (const passage of [...passages]) {
      const { server, cluster } = passage;
      const isUnjudged = cluster === undefined && clusterAt(snapshot, server) !== undefined;
      const mayLeadNoMore = isOtherSubset && cluster !== undefined;
      if (isUnjudged || mayLeadNoMore || !mayReach(snapshot, server))
        cut(passage, "the cluster's owner, its servers or this pod's subset has changed");
    }
  });

  const watchHome = () => {
    const judged = [...passages].filter(({ cluster }) => cluster !== undefined);
    const leftMs = home.leftMs();
    isWatchingHome = judged.length > 0 && leftMs > 0;
    if (isWatchingHome) clock.after(leftMs, watchHome);
    else for (const passage of judged) cut(passage, `the API server at home has not accepted this pod for ${PROOF_MS / 1_000} s`);
  };

  return {
    /**
     * Counts the tunnel or request as a use of its server. If a divided cluster has the server, the result is a test that each
     * chunk of bytes to it has to pass; else undefined.
     * @throws EgressError if the pod may not write there now
     */
    enter({ host, port }: Pick<EgressTarget, "host" | "port">, visit: Visit): (() => boolean) | undefined {
      const server = formatAddress({ host, port });
      const cluster = clusterOf(server);
      const subset = session.current?.snapshot.subset ?? "";
      const refusal = cluster && clusterRefusal(cluster, { subset, closedFor: lock.closedFor, home });
      if (refusal !== undefined) throw refusal;
      const passage: Passage = { visit, server, cluster: cluster?.name };
      passages.add(passage);
      uses.begin(server);
      onAbort(visit.signal, () => {
        passages.delete(passage);
        uses.ended(server, visit.hasSent, clusterOf(server)?.drainMs);
      });
      if (cluster === undefined) return undefined;
      if (!isWatchingHome) watchHome();
      return () => mayPass(server);
    },
    /** True if a divided cluster has the server. */
    isCluster: ({ host, port }: Pick<EgressTarget, "host" | "port">): boolean =>
      clusterOf(formatAddress({ host, port })) !== undefined,
  };
}
