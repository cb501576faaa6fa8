// The routes of one proxy, from an update to its acknowledgement. Pure. Invariant: an acknowledgement means
// that the routes are enforced, that no write that they refuse is in flight (from this process or the one
// before), and that a restart cannot restore older routes.
//
//   Draining => Settling   when no write is in flight that the routes refuse
//   Settling => Storing    when no write of a killed process can still take effect
//   Storing => Held        when the file has the routes, perhaps after some attempts: they are acknowledged
//   any => Draining        when an update brings other routes (also those before, if the change is undone), or these once more
//
// A proxy begins with Held: nothing waits for an acknowledgement. Until writes of a killed process are over, it claims more than it has.
//
// If the pod loses places in place and has just written to one, it retains them read-only for a moment (own-writes.ts). No write is
// allowed there, so nothing above waits for it.
import type { Transition } from "../../base/machine.ts";
import { routeDigest } from "../contract/route-type.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { LONGEST_RETAINED_MS, OWN_WRITES_MS, type Retaining, retainedUnder } from "./own-writes.ts";

export type Stage = "draining" | "settling" | "storing" | "held";

export interface ProxyRoutes {
  /** Undefined: the proxy serves nothing. */
  readonly inForce: Snapshot | undefined;
  /** Undefined if the pod retains nothing of its own accord. */
  readonly retaining: Retaining | undefined;
  readonly stage: Stage;
  /** The last routes that could be acknowledged. */
  readonly acknowledged: Snapshot | undefined;
  /** The routes that came into force since then, oldest first. */
  readonly inDoubt: readonly Snapshot[];
  /** When this process started, on the monotonic clock, if writes of a killed process may take effect; else long ago. */
  readonly inheritedSinceMs: number;
  readonly file: RouteFile;
  /**
   * The number of the update that is answered once its routes are held. A later update takes its place. Numbers begin anew
   * with each manager, so an answer must go to the stream that brought the update.
   */
  readonly due: number | undefined;
}

/**
 * `digest`: of the routes that the file has, or will have when it is written; undefined if they are unknown, or if
 * other routes came into force since. `isOutdated`: its other content has changed since.
 */
type RouteFile =
  | { readonly kind: "idle" | "writing"; readonly digest: string | undefined; readonly isOutdated: boolean }
  /** The next attempt waits for `retry`, or for other routes. */
  | { readonly kind: "failed" };

export type RoutesEvent =
  | { readonly kind: "started"; readonly stored: Snapshot | undefined; readonly inheritsWrites: boolean }
  /** Routes that were checked (read-update.ts). `written`: the places to which the pod writes, or has just written. */
  | { readonly kind: "update"; readonly update: number; readonly routes: Snapshot; readonly written: ReadonlySet<string> }
  /** No write is in flight that the routes in force refuse. */
  | { readonly kind: "drained" }
  | { readonly kind: "settled" }
  /** A save is over. */
  | { readonly kind: "stored"; readonly isStored: boolean }
  | { readonly kind: "retry" }
  /** Clients have been shown the events of the pod's last writes. */
  | { readonly kind: "own-writes-shown" }
  /** Other content of the file has changed: the lock gate. */
  | { readonly kind: "outdated" };

/** In the order in which they have to be carried out. */
export type RoutesEffect =
  /** What the file says of moves is no longer believed, since clients will see more. Its routes are. Precedes `enforce`. */
  | { readonly kind: "mark-unstored" }
  /** Returns after new writes are judged by these routes. */
  | { readonly kind: "enforce"; readonly routes: Snapshot }
  /** The rules stay, and get another version. */
  | { readonly kind: "relabel"; readonly routes: Snapshot }
  /** Calls for `drained`, in place of any earlier call. */
  | { readonly kind: "drain" }
  /** Calls for `settled`, in place of any earlier call. */
  | { readonly kind: "settle"; readonly ms: number }
  /** `isAllShown`: no client sees more than these routes. If one does, the next process must not believe what the file says of that. */
  | { readonly kind: "store"; readonly routes: Snapshot; readonly isAllShown: boolean }
  /** Calls for `retry`, in place of any earlier call. */
  | { readonly kind: "retry-later"; readonly ms: number }
  /** Calls for `own-writes-shown` after `ms` in which no watch has renewed itself, or after `mostMs`. In place of any earlier call. */
  | { readonly kind: "show-own-writes"; readonly ms: number; readonly mostMs: number }
  | { readonly kind: "acknowledge"; readonly update: number };

const UNKNOWN_CONTENT: RouteFile = { kind: "idle", digest: undefined, isOutdated: false };

type Step = Transition<ProxyRoutes, RoutesEffect>;

/**
 * How long after a start the API server may still carry out a write of a killed process, in milliseconds. The
 * kernel closes the connections of a killed process, and an API server cancels a request as soon as it reads
 * that. This is the assumed bound of the time for which a live API server leaves a connection unread. The
 * strict bound would be its request timeout, 60 s, but then each crash of a sidecar would delay every
 * handover by that time.
 */
export const INHERITED_WRITES_MS = 10_000;

/**
 * How long after a start writes of a killed process may take effect that the routes refuse. It may have enforced routes that were never
 * stored, so it may have written to each of their clusters.
 */
export function inheritedWritesMs(routes: Pick<Snapshot, "clusters"> | undefined): number {
  return Math.max(INHERITED_WRITES_MS, ...(routes?.clusters ?? []).map(({ drainMs }) => drainMs));
}

/** On the monotonic clock: from then on no write of a killed process takes effect that the routes in force refuse. */
export function inheritedUntilMs({ inheritedSinceMs, inForce }: ProxyRoutes): number {
  return inheritedSinceMs + inheritedWritesMs(inForce);
}

/**
 * The most routes in doubt that a registration names. One more is kept, as a sign that some are missing: then the
 * registration sets `mayHoldMore`. Without a bound, a disk that fails for long would fill the memory.
 */
export const MAX_IN_DOUBT = 4;

const STORE_RETRY_MS = 1_000;

export const NO_ROUTES: ProxyRoutes = {
  inForce: undefined,
  retaining: undefined,
  stage: "held",
  acknowledged: undefined,
  inDoubt: [],
  inheritedSinceMs: Number.NEGATIVE_INFINITY,
  file: UNKNOWN_CONTENT,
  due: undefined,
};

export function stepRoutes(routes: ProxyRoutes, event: RoutesEvent, nowMs: number): Step {
  switch (event.kind) {
    case "started":
      return start(routes, event, nowMs);
    case "update":
      return takeUpdate(routes, event, nowMs);
    case "drained":
      return routes.stage === "draining" ? afterDrain(routes, nowMs) : stay(routes);
    case "settled":
      return routes.stage === "settling" ? settle(routes, nowMs) : stay(routes);
    case "stored":
      return afterSave(routes, event.isStored);
    case "retry":
      return routes.file.kind === "failed" ? advance({ ...routes, file: UNKNOWN_CONTENT }) : stay(routes);
    case "own-writes-shown":
      return retainNoMore(routes);
    case "outdated":
      return outdate(routes);
    default:
      return event satisfies never;
  }
}

function start(routes: ProxyRoutes, { stored, inheritsWrites }: Start, nowMs: number): Step {
  const inheritedSinceMs = inheritsWrites ? nowMs : routes.inheritedSinceMs;
  if (stored === undefined) return stay({ ...routes, inheritedSinceMs });
  // A proxy of another version may have stored them, and left out what it did not know. So their digest is not that of the update.
  const found = { ...stored, digest: routeDigest(stored) };
  const file: RouteFile = { kind: "idle", digest: found.digest, isOutdated: false };
  const next: ProxyRoutes = { ...routes, inForce: found, acknowledged: found, inheritedSinceMs, file };
  return { state: next, effects: [{ kind: "enforce", routes: found }] };
}

type Start = Extract<RoutesEvent, { kind: "started" }>;
type Update = Extract<RoutesEvent, { kind: "update" }>;

function takeUpdate(before: ProxyRoutes, update: Update, nowMs: number): Step {
  const { routes } = update;
  const next: ProxyRoutes = { ...before, inForce: routes, due: update.update, stage: "draining" };
  if (before.inForce?.digest === routes.digest) {
    const { retaining } = before;
    const again = retaining && { ...retaining, routes: { ...routes, table: retaining.routes.table } };
    return {
      state: { ...next, retaining: again },
      effects: [{ kind: "relabel", routes: again?.routes ?? routes }, { kind: "drain" }],
    };
  }
  const retaining = retainedUnder(before, update, nowMs);
  const wait = retaining !== undefined && !retaining.isDrained ? [showOwnWrites(retaining, LONGEST_RETAINED_MS, nowMs)] : [];
  return {
    state: {
      ...next,
      retaining,
      inDoubt: [...before.inDoubt.slice(-MAX_IN_DOUBT), routes],
      file: withoutRoutes(before.file),
    },
    effects: [{ kind: "mark-unstored" }, { kind: "enforce", routes: retaining?.routes ?? routes }, ...wait, { kind: "drain" }],
  };
}

function showOwnWrites({ endMs }: Retaining, waitMs: number, nowMs: number): RoutesEffect {
  const mostMs = Math.max(0, endMs - nowMs);
  return { kind: "show-own-writes", ms: Math.min(waitMs, mostMs), mostMs };
}

function afterDrain(before: ProxyRoutes, nowMs: number): Step {
  const { retaining } = before;
  const routes: ProxyRoutes = { ...before, stage: "settling" };
  if (retaining === undefined || retaining.isDrained) return settle(routes, nowMs);
  const { state, effects } = settle({ ...routes, retaining: { ...retaining, isDrained: true } }, nowMs);
  return { state, effects: [showOwnWrites(retaining, OWN_WRITES_MS, nowMs), ...effects] };
}

/** Clients are then sent DELETED events for what the pod has lost, so the moves in the file are outdated. */
function retainNoMore(routes: ProxyRoutes): Step {
  const { inForce, retaining } = routes;
  if (inForce === undefined || retaining === undefined) return stay(routes);
  const { state, effects } = outdate({ ...routes, retaining: undefined });
  return { state, effects: [{ kind: "mark-unstored" }, { kind: "enforce", routes: inForce }, ...effects] };
}

/** A save that has failed is tried again anyway, with what the file has to have by then. */
function outdate(routes: ProxyRoutes): Step {
  const { file } = routes;
  return file.kind === "failed" ? stay(routes) : advance({ ...routes, file: { ...file, isOutdated: true } });
}

function settle(routes: ProxyRoutes, nowMs: number): Step {
  const ms = inheritedUntilMs(routes) - nowMs;
  return ms > 0 ? { state: routes, effects: [{ kind: "settle", ms }] } : advance({ ...routes, stage: "storing" });
}

/** Acknowledges the routes if their turn has come and the file has them, and writes the file if it lacks something. */
function advance(routes: ProxyRoutes): Step {
  const { inForce, stage, file, due } = routes;
  if (inForce === undefined || file.kind !== "idle") return stay(routes);
  const effects: RoutesEffect[] = [];
  let next = routes;
  const hasRoutes = file.digest === inForce.digest;
  if (hasRoutes && stage === "storing") {
    next = { ...routes, stage: "held", acknowledged: inForce, inDoubt: [], due: undefined };
    if (due !== undefined) effects.push({ kind: "acknowledge", update: due });
  }
  // If no routes are in doubt, the file had these before, so it may be written while writes end.
  const mayStore = next.inDoubt.length === 0 || stage === "storing";
  if (mayStore && (!hasRoutes || file.isOutdated)) {
    next = { ...next, file: { kind: "writing", digest: inForce.digest, isOutdated: false } };
    effects.push({ kind: "store", routes: inForce, isAllShown: next.retaining === undefined });
  }
  return { state: next, effects };
}

function afterSave(routes: ProxyRoutes, isStored: boolean): Step {
  const { file } = routes;
  if (file.kind !== "writing") return stay(routes);
  if (!isStored)
    return { state: { ...routes, file: { kind: "failed" } }, effects: [{ kind: "retry-later", ms: STORE_RETRY_MS }] };
  return advance({ ...routes, file: { ...file, kind: "idle" } });
}

function withoutRoutes(file: RouteFile): RouteFile {
  return file.kind === "failed" ? UNKNOWN_CONTENT : { ...file, digest: undefined };
}

function stay(routes: ProxyRoutes): Step {
  return { state: routes, effects: [] };
}
