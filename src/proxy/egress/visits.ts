// The requests that the egress proxy serves now. Invariants: each one is counted once with its result, and
// logged once at its end; its signal fires at its end at the latest, so that nothing outlives it; each cluster, and
// each server outside of clusters, has a fair share of the places, so that none of them takes them all.
import { type Clock, sleep } from "../../base/clock.ts";
import { createPlaces, type Place } from "../../base/connection-places.ts";
import { formatAddress } from "../../base/settings.ts";
import type { Waited } from "../../policy/engine/faults.ts";
import { type AccessLog, delayFields } from "../observe/access-log.ts";
import { EgressError, type EgressResult } from "./egress-error.ts";
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

type ServerNotes = Required<Pick<VisitNotes, "host" | "port">> & Pick<VisitNotes, "path">;

export interface Visit {
  /** Fires when the request is over, whichever way. */
  readonly signal: AbortSignal;
  readonly notes: VisitNotes;
  /** The visit lasts until both connections of its tunnel have ended. */
  isTunnel: boolean;
  /** Bytes of the client may have reached the server. */
  readonly hasSent: boolean;
  /** True if the visit may be cut while the proxy drains. Tunnels replace it. */
  isQuiet: () => boolean;
  /**
   * Notes the server and takes a place for it, once.
   * @param cluster that it belongs to; undefined: none
   * @throws EgressError if there is no place
   */
  goesTo(server: ServerNotes, cluster: string | undefined): void;
  /** From now on, the visit loses its place only to a server that has less than its share. */
  noteSent(): void;
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
  /** Tunnels and requests at a time; default 1,000. */
  readonly maxOpen?: number | undefined;
}

export const MAX_OPEN = 1_000;

const LOOK_MS = 100;

const clusterOf = ({ notes: { cluster = NO_CLUSTER } }: Visit) => cluster;

export function createVisits({ clock, metrics, accessLog, maxOpen = MAX_OPEN }: VisitsDeps) {
  const openVisits = new Set<Visit>();
  const places = createPlaces({ max: maxOpen, clock });
  return {
    begin(method: string): Visit {
      const write = accessLog.pick();
      const startedMs = clock.monotonicMs();
      const abort = new AbortController();
      let result: EgressResult | undefined;
      let place: Place | undefined;
      let hasSent = false;
      const cut = () => {
        visit.decided("too-many");
        visit.over();
      };
      const visit: Visit = {
        signal: abort.signal,
        notes: { method },
        isTunnel: false,
        get hasSent() {
          return hasSent;
        },
        isQuiet: () => false,
        goesTo(server, name) {
          Object.assign(visit.notes, server);
          if (name !== undefined) {
            visit.notes.cluster = name;
            metrics.open(-1, NO_CLUSTER);
            metrics.open(1, name);
          }
          place = places.take(name ?? formatAddress(server), cut);
          if (place === undefined) throw tooMany(server, maxOpen);
        },
        noteSent() {
          hasSent = true;
          place?.become("busy");
        },
        decided(what) {
          if (result !== undefined) return;
          result = what;
          metrics.decided(what, clusterOf(visit));
        },
        over() {
          if (!openVisits.delete(visit)) return;
          place?.leave();
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

function tooMany({ host, port }: ServerNotes, maxOpen: number): EgressError {
  const why = `all ${maxOpen} places are taken, and this server has its share of them`;
  return new EgressError("too-many", `ctrlmesh egress: ${host}:${port}: ${why}`);
}
