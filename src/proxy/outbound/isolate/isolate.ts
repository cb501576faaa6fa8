// The layer that limits a subset to what it owns: it allows, refuses or narrows every call for objects.
// Invariants: a narrowed call requests no more objects than the caller did (but metadata in a Table's rows);
// a reply that cannot be filtered is refused, never passed; a write counts as in flight from its decision to
// its answer. Lock traffic passes (the election layer marks it), and so do calls that excluded-callers has
// let through.
import type { Clock, Random } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { isEndless, isListOrWatch, isProxied } from "../../../kube/request-kind.ts";
import { StatusError } from "../../../kube/status.ts";
import { decide } from "../../../route/decide.ts";
import type { planLists } from "../../../route/plan-lists.ts";
import { createPlanner, type ResourceScope } from "../../../route/plan-query.ts";
import { isNamespaces, type LabelFilter } from "../../../route/snapshot.ts";
import type { Discovery } from "../../api-server/discovery.ts";
import type { ServerFeatures } from "../../api-server/server-features.ts";
import { type Call, type Handler, isResourceCall, type Layer, type ResourceCall } from "../../call/call.ts";
import { endBySnapshot, endReply } from "../../filter/end-when.ts";
import { expiredWatch } from "../../filter/expired.ts";
import { createReleaseOrder } from "../../filter/release-order.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import { countedSource } from "../../http/counted-source.ts";
import type { Reply } from "../../http/handler.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import { type Enforced, enforcedNow, type Session } from "../../session/session.ts";
import { admit } from "./admission.ts";
import { askedInitialEvents } from "./asked-list.ts";
import { learnVersion, WHOLE } from "./catch-up.ts";
import { requestOf } from "./collection.ts";
import { createForeignWrites } from "./foreign-writes.ts";
import { createNarrow } from "./narrow.ts";
import { guardObject } from "./object-guard.ts";
import { createPages } from "./pages.ts";
import type { PlanLog } from "./plan-log.ts";
import { createRecentLoss } from "./recent-loss.ts";

export interface IsolateDeps {
  readonly session: Session;
  readonly discovery: Discovery;
  /** What the API servers do not know. */
  readonly features: ServerFeatures;
  readonly metrics: StreamMetrics;
  readonly moves: MoveLog;
  readonly log: Logger;
  /** Where `/debug/plans` reads the plans. */
  readonly plans: PlanLog;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Requests that may wait so at a time; further ones get the answer for a wait that is over. Default 256.
   */
  readonly maxHeld?: number;
  /** Chooses between one list and lists by namespace. Default `planLists`. */
  readonly planLists?: typeof planLists | undefined;
}

/** The body of a held request waits in its socket: some 64 KiB each, 16 MiB together. */
const MAX_HELD = 256;
/** Bound of what all stalled watches together hold. */
const MAX_ALL_HELD_BYTES = 32 * 1024 * 1024;

/** Makes the layer. */
export function isolate(deps: IsolateDeps): Layer {
  const { session, clock, moves } = deps;
  const pages = createPages(clock);
  const heldBudget = { maxBytes: MAX_ALL_HELD_BYTES, bytes: 0 };
  const planner = createPlanner();
  const releases = createReleaseOrder(clock);
  const narrow = createNarrow({ ...deps, pages, heldBudget, planner, releases });
  const foreignWrites = createForeignWrites(clock, deps.log);
  const recentLoss = createRecentLoss(session, clock);
  const places = { free: deps.maxHeld ?? MAX_HELD };

  const sendAllowed = (call: ResourceCall, scope: ResourceScope, next: Handler): Promise<Reply> =>
    isListOrWatch(call.info) ? narrow(call, requestOf(call, scope), WHOLE, scope, next) : next(call);

  return (next) => async (asked) => {
    if (!isResourceCall(asked) || asked.record.lock || asked.record.excludedBy !== undefined) return next(asked);
    refuseUpgrade(asked);
    const scope = needsScope(asked.info, session) ? await deps.discovery.scopeOf(asked) : "unknown";
    // Before the list, so that the list is of a later version; before the decision, which may only hold for
    // this moment.
    if (asked.info.verb === "list" || askedInitialEvents(asked) !== undefined)
      await learnVersion(asked, requestOf(asked, scope).collection, { moves, list: next }).catch(() => undefined);
    return admit(asked, scope, { session, clock, ask: next, places, planner, recentLoss }, async (admitted, call) => {
      switch (admitted.kind) {
        case "missing":
          return admitted.reply;
        case "expired":
          return expiredWatch(call);
        case "narrow": {
          const request = requestOf(call, scope);
          call.record.decision = "narrowed";
          if (admitted.unknown !== undefined) moves.of(request.collection).leaveOut(admitted.unknown);
          return narrow(call, request, admitted.queryPlan, scope, next);
        }
        case "allow": {
          const reply = await counted(call, () => sendAllowed(call, scope, next), admitted.done);
          return foreignWrites.told(call, whileAllowed(reply, call, session));
        }
        case "check-labels": {
          const reply = await counted(call, () => guardObject(call, admitted.view, next), admitted.done);
          return foreignWrites.told(call, whileAllowed(reply, call, session, admitted.view.labelFilter));
        }
        default:
          return admitted satisfies never;
      }
    });
  };
}

/**
 * A reply without an end of its own (a followed log, a proxy, a tunnel) breaks off when the routes no longer
 * allow it. A watch has an end of its own, which knows what frames are.
 * @param objects the labels by which it was decided; it goes on for as long as these decide
 */
function whileAllowed(reply: Reply, { info, record }: ResourceCall, session: Session, objects?: LabelFilter): Reply {
  if (!isEndless(info)) return reply;
  const isOver = (now: Enforced) => {
    const decision = decide(now.view(info.group, info.resource), info, "unknown");
    if (decision.kind === "check-labels") return decision.objects.labelSelector !== objects?.labelSelector;
    return decision.kind !== "allow" && !(decision.kind === "warn" && record.warning !== undefined);
  };
  return endReply(reply, endBySnapshot(session, isOver));
}

/** @param done ends the count of a write in flight; undefined for other calls */
async function counted(call: Call, send: () => Promise<Reply>, done: (() => void) | undefined): Promise<Reply> {
  if (done === undefined) return send();
  try {
    return whenReplyDone(call, await send(), done);
  } catch (error) {
    done();
    throw error;
  }
}

// The frames of a tunnel cannot be filtered. The server makes no tunnel of a list or watch either.
function refuseUpgrade({ info, upgrade, record }: ResourceCall): void {
  if (upgrade === undefined || !isListOrWatch(info)) return;
  record.decision = "refused";
  record.reason = "upgrade";
  throw new StatusError("ServiceUnavailable", `ctrlmesh: ${info.verb} over ${upgrade} is not supported, use plain HTTP`);
}

function needsScope(info: ResourceInfo, session: Session): boolean {
  if (info.namespace !== "" || isNamespaces(info)) return false;
  if (!isListOrWatch(info) && info.verb !== "deletecollection") return false;
  return !enforcedNow(session).view(info.group, info.resource).ownsAll;
}

/**
 * Calls `done` exactly once: when the write of the reply is over. The API server answers after its commit, so
 * a write is over with the head of its answer. Only a write that another server answers (the subresource
 * `proxy`) may go on until the body is read or cancelled.
 */
export function whenReplyDone({ info }: Call, reply: Reply, done: () => void): Reply {
  if (!isProxied(info) || reply.body === null || reply.body instanceof Uint8Array) {
    done();
    return reply;
  }
  return { ...reply, body: countedSource(reply.body, done) };
}
