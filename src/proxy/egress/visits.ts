// The requests that the egress proxy serves now. Invariants: each one is counted once with its result, and
// logged once at its end; its signal fires at its end at the latest, so that nothing outlives it.
import { type Clock, sleep } from "../../base/clock.ts";
import type { Waited } from "../../policy/engine/faults.ts";
import { type AccessLog, delayFields } from "../observe/access-log.ts";
import type { EgressResult } from "./egress-error.ts";
import { type EgressMetrics, NO_CLUSTER } from "./egress-metrics.ts";

/** What the access log has of a request: never a query, a header or a body. */
export interface VisitNotes {
  method: string;
  host?: string;
  port?: number;
  /** The divided cluster that the server belonged to when the request began. */
  cluster?: string;
  path?: string | undefined;
  code?: number;
  rule?: string | undefined;
  delay?: Waited | undefined;
  bytes?: () => number;
}

export interface Visit {
  /** Fires when the request is over, whichever way. */
  readonly signal: AbortSignal;
  readonly notes: VisitNotes;
  /** The visit lasts until both connections of its tunnel have ended. */
  isTunnel: boolean;
  /** Bytes of the client may have reached the server. */
  hasSent: boolean;
  /** True if the visit may be cut while the proxy drains. Tunnels replace it. */
  isQuiet: () => boolean;
  /** Notes the server, once. @param cluster that it belongs to; undefined: none */
  goesTo(server: Pick<VisitNotes, "host" | "port" | "path">, cluster: string | undefined): void;
  /** Counts the request, once. */
  decided(result: EgressResult): void;
  /** Later calls do nothing. */
  over(): void;
}

export type Visits = ReturnType<typeof createVisits>;

export interface VisitsDeps {
  readonly clock: Clock;
  readonly metrics: EgressMetrics;
  readonly accessLog: Pick<AccessLog, "pick">;
}

const LOOK_MS = 100;

const clusterOf = ({ notes: { cluster = NO_CLUSTER } }: Visit) => cluster;

export function createVisits({ clock, metrics, accessLog }: VisitsDeps) {
  const openVisits = new Set<Visit>();
  return {
    begin(method: string): Visit {
      const write = accessLog.pick();
      const startedMs = clock.monotonicMs();
      const abort = new AbortController();
      let result: EgressResult | undefined;
      const visit: Visit = {
        signal: abort.signal,
        notes: { method },
        isTunnel: false,
        hasSent: false,
        isQuiet: () => false,
        goesTo(server, name) {
          Object.assign(visit.notes, server);
          if (name === undefined) return;
          visit.notes.cluster = name;
          metrics.open(-1, NO_CLUSTER);
          metrics.open(1, name);
        },
        decided(what) {
          if (result !== undefined) return;
          result = what;
          metrics.decided(what, clusterOf(visit));
        },
        over() {
          if (!openVisits.delete(visit)) return;
          visit.decided("client-gone");
          metrics.open(-1, clusterOf(visit));
          abort.abort();
          const seconds = (clock.monotonicMs() - startedMs) / 1_000;
          const { bytes, delay, ...notes } = visit.notes;
          const about = { ...notes, ...delayFields(delay), bytes: bytes?.() ?? 0 };
          write?.({ direction: "egress", ...about, decision: result, seconds });
        },
      };
      openVisits.add(visit);
      metrics.open(1, NO_CLUSTER);
      return visit;
    },
    get open(): number {
      return openVisits.size;
    },
    /** Resolves when no visit is left. Quiet visits end immediately, all others after this time. */
    async drain(withinMs: number): Promise<void> {
      const endMs = clock.monotonicMs() + withinMs;
      while (openVisits.size > 0) {
        const isLate = clock.monotonicMs() >= endMs;
        for (const visit of [...openVisits]) if (isLate || visit.isQuiet()) visit.over();
        if (openVisits.size > 0) await sleep(clock, LOOK_MS);
      }
    },
  };
}
