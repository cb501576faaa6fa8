// The clusters to which connections fail, for the status that the manager writes. Invariants: only clusters that the pod's subset owns
// are reported, each until a connection succeeds or the subset loses the cluster; a failure is reported after FAILING_MS at the earliest.
import type { Clock } from "../../base/clock.ts";
import { formatAddress } from "../../base/settings.ts";
import { type ClusterReportMessage, MAX_UNREACHABLE } from "../../mesh/contract/messages.ts";
import { accessTo, clusterAt } from "../../mesh/ownership/clusters.ts";
import type { EnforcedRoutes } from "../../mesh/ownership/enforced.ts";
import type { Dial } from "./dial.ts";
import { EgressError, isServersFault } from "./egress-error.ts";

type Server = Parameters<Dial["plain"]>[0];

/** Connections have to fail for this time, with none that succeeds. */
const FAILING_MS = 5_000;

interface Failing {
  readonly sinceMs: number;
  readonly reason: string;
  readonly isTold: boolean;
}

export interface ClusterReachDeps {
  readonly session: EnforcedRoutes;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly report: (clusters: ClusterReportMessage) => void;
}

/** The dial, which notes how its connections to clusters begin. */
export function withReach(dial: Dial, { session, clock, report }: ClusterReachDeps): Dial {
  const failing = new Map<string, Failing>();
  const tell = () => {
    const told = [...failing].flatMap(([cluster, { isTold, reason }]) => (isTold ? [{ cluster, reason }] : []));
    report({ unreachable: told.slice(0, MAX_UNREACHABLE) });
  };
  const note = (server: Server, reason: string | undefined) => {
    const cluster = session.current && clusterAt(session.current.snapshot, formatAddress(server))?.name;
    if (cluster === undefined) return;
    const before = failing.get(cluster);
    if (reason === undefined) failing.delete(cluster);
    else {
      const sinceMs = before?.sinceMs ?? clock.monotonicMs();
      failing.set(cluster, { sinceMs, reason, isTold: clock.monotonicMs() - sinceMs >= FAILING_MS });
    }
    if (before?.isTold || failing.get(cluster)?.isTold) tell();
  };
  session.onChange(({ snapshot: { subset, clusters = [] } }) => {
    const own = new Set(clusters.flatMap((each) => (accessTo(each, subset) === "own" ? [each.name] : [])));
    const lost = [...failing.keys()].filter((name) => !own.has(name));
    for (const name of lost) failing.delete(name);
    if (lost.length > 0) tell();
  });
  const watched = (connect: Dial["plain"]): Dial["plain"] => {
    return async (server, signal, rules) => {
      try {
        const socket = await connect(server, signal, rules);
        note(server, undefined);
        return socket;
      } catch (error) {
        if (error instanceof EgressError && isServersFault(error)) note(server, error.message);
        throw error;
      }
    };
  };
  return { plain: watched(dial.plain), connect: watched(dial.connect) };
}
