// The clusters to which connections fail, for the status that the manager writes. Invariants: only clusters that the pod may use are
// reported, each until a connection succeeds or the pod may use the cluster no more; a failure is reported after FAILING_MS at the
// earliest.
import type { Clock } from "../../base/clock.ts";
import { type ClusterReportMessage, MAX_UNREACHABLE } from "../../mesh/contract/messages.ts";
import { accessTo } from "../../mesh/ownership/clusters.ts";
import type { EnforcedRoutes } from "../../mesh/ownership/enforced.ts";

/** Connections have to fail for this time, with none that succeeds. */
const FAILING_MS = 5_000;

interface Failing {
  readonly sinceMs: number;
  readonly reason: string;
  readonly isTold: boolean;
}

interface ClusterReachDeps {
  readonly session: Pick<EnforcedRoutes, "onChange">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly report: (clusters: ClusterReportMessage) => void;
}

export type ClusterReach = ReturnType<typeof createClusterReach>;

export function createClusterReach({ session, clock, report }: ClusterReachDeps) {
  const failing = new Map<string, Failing>();
  const tell = () => {
    const told = [...failing].flatMap(([cluster, { isTold, reason }]) => (isTold ? [{ cluster, reason }] : []));
    report({ unreachable: told.slice(0, MAX_UNREACHABLE) });
  };
  session.onChange(({ snapshot: { subset, clusters = [] } }) => {
    const used = new Set(
      clusters.flatMap((each) => (each.upstream !== undefined || accessTo(each, subset) === "own" ? [each.name] : [])),
    );
    const lost = [...failing.keys()].filter((name) => !used.has(name));
    for (const name of lost) failing.delete(name);
    if (lost.length > 0) tell();
  });
  return {
    /** How a connection to the cluster has begun. @param failure undefined: it succeeded */
    note(cluster: string, failure: string | undefined): void {
      const before = failing.get(cluster);
      if (failure === undefined) failing.delete(cluster);
      else {
        const sinceMs = before?.sinceMs ?? clock.monotonicMs();
        failing.set(cluster, { sinceMs, reason: failure, isTold: clock.monotonicMs() - sinceMs >= FAILING_MS });
      }
      if (before?.isTold || failing.get(cluster)?.isTold) tell();
    },
  };
}
