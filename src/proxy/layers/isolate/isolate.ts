// The layer that keeps a subset to its slice: allows, refuses or narrows every request for objects. Invariants: what it
// narrows is an intersection with what the caller asked; a reply that cannot be filtered is refused, never passed; a write
// is counted as in flight from its decision to its answer. Lock traffic, which the election layer marks, passes.
import type { Clock, Random } from "../../../base/clock.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { isEndless, isListOrWatch } from "../../../kube/request-kind.ts";
import { StatusError } from "../../../kube/status.ts";
import { decide } from "../../../route/decide.ts";
import { createPlanner, NO_PLAN } from "../../../route/plan-query.ts";
import { isNamespaces, type LabelFilter, type ResourceView } from "../../../route/snapshot.ts";
import type { Discovery } from "../../api-server/discovery.ts";
import type { ServerFeatures } from "../../api-server/server-features.ts";
import type { Call, Handler, Layer } from "../../call/call.ts";
import { whenReplyDone } from "../../call/reply-done.ts";
import { isResourceCall, type ResourceCall } from "../../call/resource-call.ts";
import { endBySnapshot, endReply } from "../../filter/end-when.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import type { Reply } from "../../http/handler.ts";
import { type Collection, createResync } from "../../relist/resync.ts";
import type { Enforced, Session } from "../../session/session.ts";
import { admit, enforcedNow } from "./admission.ts";
import { collectionOf, continuesFromList, requestOf, showsAll } from "./collection.ts";
import { expiredWatch } from "./expired-watch.ts";
import { createHoldPlaces } from "./hold.ts";
import { createNarrow, type NarrowDeps, watchAllowed } from "./narrow.ts";
import { guardObject } from "./object-guard.ts";
import { createPages } from "./pages.ts";
import type { PlanLog } from "./plan-log.ts";

export interface IsolateDeps {
  readonly session: Session;
  readonly discovery: Discovery;
  /** What the API servers do not know. */
  readonly features: ServerFeatures;
  readonly metrics: StreamMetrics;
  /** Where `/debug/plans` reads the plans. */
  readonly plans: PlanLog;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a request waits for the owner of an unknown namespace; default 2,000. */
  readonly holdMs?: number;
  /** Requests that wait so at a time; the next ones are answered as if time were over. Default 256. */
  readonly maxHeld?: number;
  /** How long an event of an unknown namespace may stall a watch; default 5,000. */
  readonly watchHoldMs?: number;
  /** Bound of what all stalled watches together hold; default 32 MiB. */
  readonly maxAllHeldBytes?: number;
  /** Watches that a route change ends are spread over this time; default 1,000. */
  readonly resyncJitterMs?: number;
}

/** What a held request has sent of its body waits in its socket: some 64 KiB each, 16 MiB together. */
const MAX_HELD = 256;
const MAX_ALL_HELD_BYTES = 32 * 1024 * 1024;

/** Makes the layer. */
export function isolate(deps: IsolateDeps): Layer {
  const { session, clock } = deps;
  const resync = createResync(session, clock);
  const pages = createPages(clock);
  const heldBudget = { maxBytes: deps.maxAllHeldBytes ?? MAX_ALL_HELD_BYTES, bytes: 0 };
  const planner = createPlanner();
  const streams: NarrowDeps = { ...deps, resync, pages, heldBudget, planner };
  const narrow = createNarrow(streams);
  const places = createHoldPlaces(deps.maxHeld ?? MAX_HELD);
  const holdMs = deps.holdMs ?? 2_000;

  const allowRead = async (call: ResourceCall, next: Handler): Promise<Reply> => {
    if (!isListOrWatch(call.info)) return next(call);
    return sendCollection(call, async (collection) => {
      // The first page may have been narrowed still.
      const isPage = call.info.query.has("continue");
      const asked = isPage ? pages.resume(call, collection, NO_PLAN, () => NO_PLAN).call : call;
      const reply = await next(asked);
      return call.info.verb === "watch" ? watchAllowed(reply, requestOf(call, collection), streams) : reply;
    });
  };

  // Refuses a watch that would go on from a list made under other routes, and notes what is listed.
  const sendCollection = async (call: ResourceCall, send: (collection: Collection) => Promise<Reply>): Promise<Reply> => {
    const collection = collectionOf(call);
    if (showsAll(call)) return resync.list(collection, () => send(collection));
    const version = call.info.query.get("resourceVersion") ?? "";
    if (!continuesFromList(call) || !resync.mustListAgain(collection, version)) return send(collection);
    call.record.decision = "fenced";
    call.record.reason = "list-again";
    return expiredWatch(call);
  };

  const judge = async (call: ResourceCall, view: ResourceView, done: (() => void) | undefined, next: Handler) => {
    const send = () => guardObject(call, view, next);
    const reply = done === undefined ? await send() : await countedWrite(call, send, done);
    return isEndless(call.info) ? whileAllowed(reply, call.info, session, view.labelFilter) : reply;
  };

  return (next) => async (call) => {
    // `excluded-callers` has decided about callers that own nothing here.
    if (!isResourceCall(call) || call.record.lock || call.record.excludedBy !== undefined) return next(call);
    refuseUpgrade(call);
    const scope = needsScope(call.info, session) ? await deps.discovery.scopeOf(call) : "unknown";
    return admit(call, scope, { session, clock, ask: next, holdMs, places, planner }, async (admitted) => {
      if (admitted.kind === "missing") return admitted.reply;
      if (admitted.kind === "expired") return expiredWatch(call);
      if (admitted.kind === "narrow") {
        const { queryPlan, unknown } = admitted;
        return sendCollection(call, (collection) => {
          call.record.decision = "narrowed";
          if (unknown !== undefined) resync.leftOut.note(collection, unknown);
          return narrow(call, requestOf(call, collection), queryPlan, next);
        });
      }
      const { done } = admitted;
      if (admitted.kind === "judge") return judge(call, admitted.view, done, next);
      const reply = done === undefined ? await allowRead(call, next) : await countedWrite(call, next, done);
      return isEndless(call.info) ? whileAllowed(reply, call.info, session) : reply;
    });
  };
}

/** @param objects the labels by which it was judged; it goes on as long as the same ones are asked for */
function whileAllowed(reply: Reply, info: ResourceInfo, session: Session, objects?: LabelFilter): Reply {
  const isOver = (now: Enforced) => {
    const decision = decide(now.view(info.group, info.resource), info, "unknown");
    if (decision.kind === "judge") return decision.objects.labelSelector !== objects?.labelSelector;
    return decision.kind !== "allow";
  };
  return endReply(reply, endBySnapshot(session, isOver));
}

async function countedWrite(call: Call, next: Handler, done: () => void): Promise<Reply> {
  try {
    return whenReplyDone(call, await next(call), done);
  } catch (error) {
    done();
    throw error;
  }
}

// The frames of a tunnel cannot be filtered. The server makes none of a list or watch; this is the second lock on that door.
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
