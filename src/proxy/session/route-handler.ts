// The handler of the resource type "routes": carries out what the core decides about each update
// (src/mesh/link/proxy-routes.ts), with the enforcer, the snapshot file and timers.
import { onAbort } from "../../base/abort.ts";
import type { Timer } from "../../base/clock.ts";
import { runMachine } from "../../base/machine.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { PodRef, UpdateMessage } from "../../mesh/contract/messages.ts";
import {
  CLUSTER_FREEZE,
  CLUSTER_OBJECTS,
  CLUSTER_REQUESTS,
  CLUSTER_SERVERS,
  FREEZE,
  ROUTE,
} from "../../mesh/contract/route-type.ts";
import { type Claims, heldClaims, isSettled } from "../../mesh/link/held-claims.ts";
import { inheritedWritesMs, NO_ROUTES, type RoutesEffect, type RoutesEvent, stepRoutes } from "../../mesh/link/proxy-routes.ts";
import { readUpdate } from "../../mesh/link/read-update.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import type { Enforcer } from "./enforcer.ts";
import type { LastWrites } from "./last-writes.ts";
import type { Answers } from "./resource-handler.ts";
import type { SessionMetrics } from "./session-metrics.ts";
import type { SnapshotFile } from "./snapshot-file.ts";
import { whenShown } from "./when-shown.ts";

export interface RouteHandlerDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly pod: PodRef;
  /** The proxy sees what the pod sends to other servers. */
  readonly seesEgress?: boolean;
  readonly enforcer: Enforcer;
  readonly lastWrites: Pick<LastWrites, "places">;
  readonly file: Pick<SnapshotFile, "load" | "willChange" | "save">;
  readonly metrics: SessionMetrics;
  /** Nothing more is stored after it. */
  readonly signal: AbortSignal;
}

export function createRouteHandler(deps: RouteHandlerDeps) {
  const { enforcer, seesEgress = false, lastWrites, file, metrics, clock, log, signal } = deps;
  const routes = runMachine(NO_ROUTES, (state, event: RoutesEvent) => stepRoutes(state, event, clock.monotonicMs()), carryOut);
  let saving: Promise<void> = Promise.resolve();
  let updates = 0;
  /** To the last update that was taken, which alone may still be acknowledged. */
  let answers: Answers | undefined;

  /** By kind of event. Updates that come while the disk fails are tried at once, and their timers must not add up. */
  const timers = new Map<RoutesEvent["kind"], Timer>();
  const keep = (kind: RoutesEvent["kind"], start: () => Timer) => {
    timers.get(kind)?.cancel();
    if (!signal.aborted) timers.set(kind, start());
  };
  const enterAfter = (ms: number, event: RoutesEvent) => keep(event.kind, () => clock.after(ms, () => routes.enter(event)));
  const enterWhenShown = (ms: number, mostMs: number) => {
    const enter = () => routes.enter({ kind: "own-writes-shown" });
    keep("own-writes-shown", () => whenShown(() => enforcer.renewals, { ms, mostMs }, enter, clock));
  };
  onAbort(signal, () => {
    for (const timer of timers.values()) timer.cancel();
  });

  const save = async (snapshot: Snapshot, isAllShown: boolean) => {
    const isStored = await file.save(snapshot, isAllShown).then(
      () => true,
      (error: unknown) => {
        log.error({ err: error }, "snapshot not acknowledged: it cannot be stored");
        return false;
      },
    );
    routes.enter({ kind: "stored", isStored });
  };

  function carryOut(effect: RoutesEffect) {
    switch (effect.kind) {
      case "mark-unstored":
        return file.willChange();
      case "enforce":
        return enforce(effect.routes);
      case "relabel":
        metrics.routeVersion.set(effect.routes.version);
        return enforcer.relabel(effect.routes);
      case "drain":
        return enforcer.whenDrained(() => routes.enter({ kind: "drained" }));
      case "settle":
        return enterAfter(effect.ms, { kind: "settled" });
      case "store":
        if (!signal.aborted) saving = save(effect.routes, effect.isAllShown);
        return;
      case "retry-later":
        return enterAfter(effect.ms, { kind: "retry" });
      case "show-own-writes":
        return enterWhenShown(effect.ms, effect.mostMs);
      case "acknowledge":
        answers?.ack();
        answers = undefined;
        return;
      default:
        effect satisfies never;
    }
  }

  function enforce(snapshot: Snapshot): void {
    const { version, digest, subset } = snapshot;
    metrics.routeVersion.set(version);
    enforcer.enforce(snapshot);
    log.info({ version, digest, subset: subsetDisplayName(subset) }, "route snapshot enforced");
  }

  return {
    /**
     * Puts the stored snapshot in force, if there is a usable one.
     * @param endedCleanly the process before left no write in flight
     * @param hasPromised an earlier process has followed a leader, so it may have served without a snapshot
     */
    async restore(endedCleanly: boolean, hasPromised = false): Promise<void> {
      const stored = await file.load(hasPromised);
      const inheritsWrites = !endedCleanly && (stored !== undefined || hasPromised);
      if (inheritsWrites)
        log.info(
          { waitMs: inheritedWritesMs(stored) },
          "the process before was killed: nothing is acknowledged until its writes are over",
        );
      routes.enter({ kind: "started", stored, inheritsWrites });
    },
    capabilities: [
      FREEZE,
      CLUSTER_OBJECTS,
      ...(seesEgress ? [CLUSTER_SERVERS, CLUSTER_REQUESTS, CLUSTER_FREEZE] : []),
      ...(ROUTE.delta === undefined ? [] : [ROUTE.delta.capability]),
    ],
    take(update: UpdateMessage, answersTo: Answers) {
      const version = update.resource?.version;
      const read = readUpdate(update, routes.state.inForce, deps.pod.namespace);
      switch (read.kind) {
        case "take":
          answers = answersTo;
          return routes.enter({ kind: "update", update: ++updates, routes: read.routes, written: lastWrites.places });
        case "refuse":
          metrics.snapshotRejected.inc({ reason: read.reason });
          log.warn({ err: read.error, version }, "route snapshot refused, the last good one stays");
          return answersTo.nack(read.problems);
        case "needs-whole":
          metrics.snapshotRejected.inc({ reason: "delta" });
          log.info({ err: read.error, version }, "delta not taken, asking for the whole snapshot");
          return answersTo.needsWhole();
        default:
          read satisfies never;
      }
    },
    /** Saves the snapshot once more, since other content of the file has changed. */
    storeAgain: () => routes.enter({ kind: "outdated" }),
    get claims(): Claims {
      return heldClaims(routes.state, clock.monotonicMs());
    },
    get isSettled(): boolean {
      return isSettled(routes.state, clock.monotonicMs());
    },
    /** Resolves when the last save that has begun is over. */
    idle: () => saving,
  };
}
