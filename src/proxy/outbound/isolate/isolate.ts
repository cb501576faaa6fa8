// The layer that limits a subset to what it owns: it allows, refuses or narrows every call for objects, after a
// bounded wait if the owner of the namespace is unknown. Invariants: a narrowed call requests no more objects
// than the caller did (but metadata in a Table's rows); a reply that cannot be filtered is refused, never passed;
// a write counts as in flight from the tick of its decision to its answer, so that no snapshot comes in between.
// Lock traffic passes (the election layer marks it), and so do calls that excluded-callers has let through.
import type { Clock, Random } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { isEndless, isListOrWatch, isProxied } from "../../../kube/request-kind.ts";
import { decide, isAct, isNamedByBody, reachOf, type WriteReach } from "../../../route/decide.ts";
import type { planLists } from "../../../route/plan-lists.ts";
import { createPlanner, planNothing, type QueryPlan, type ResourceScope, WHOLE } from "../../../route/plan-query.ts";
import { governingPlace, isNamespaces, type LabelFilter, type ResourceView } from "../../../route/snapshot.ts";
import type { Discovery } from "../../api-server/discovery.ts";
import type { ServerFeatures } from "../../api-server/server-features.ts";
import { type Call, type Handler, isResourceCall, type Layer, type ResourceCall } from "../../call/call.ts";
import { endBySnapshot, endReply } from "../../filter/end-when.ts";
import { expiredWatch } from "../../filter/expired.ts";
import { createReleaseOrder } from "../../filter/release-order.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import { discardBody } from "../../http/byte-stream.ts";
import { countedSource } from "../../http/counted-source.ts";
import type { Reply } from "../../http/handler.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import { type Enforced, enforcedNow, type Session } from "../../session/session.ts";
import { askedInitialEvents } from "../lists/asked-list.ts";
import { createByNamespace } from "../lists/by-namespace.ts";
import { continuesFromList, requestOf } from "../lists/collection-request.ts";
import { narrowList } from "../lists/narrow-list.ts";
import { createPages } from "../lists/pages.ts";
import type { PlanLog } from "../lists/plan-log.ts";
import { createServerSideFilter } from "../lists/server-side-filter.ts";
import { learnVersion } from "../lists/versions.ts";
import { createNarrowWatch } from "../watches/narrow-watch.ts";
import { createForeignWrites, passForeign } from "./foreign-writes.ts";
import { beginHold, type Hold } from "./hold.ts";
import { guardObject } from "./object-guard.ts";
import { withNameFromBody } from "./object-labels.ts";
import { createRecentLoss } from "./recent-loss.ts";
import { ownerUnknown, refusal, upgradedCollection } from "./refusals.ts";

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

export function isolate(deps: IsolateDeps): Layer {
  const { session, clock, moves, discovery } = deps;
  const planner = createPlanner();
  const narrow = createNarrow(deps, planner);
  const foreignWrites = createForeignWrites(clock, deps.log);
  const recentLoss = createRecentLoss(session, clock);
  const places = { free: deps.maxHeld ?? MAX_HELD };

  const allow = async (call: ResourceCall, scope: ResourceScope, reach: WriteReach, next: Handler): Promise<Reply> => {
    const done = countWrite(session, call.info, reach);
    const isCollection = isListOrWatch(call.info);
    const reply = await counted(call, () => (isCollection ? narrow(call, WHOLE, scope, next) : next(call)), done);
    return foreignWrites.withWarning(call, whileAllowed(reply, call, session));
  };
  const checkLabels = async (call: ResourceCall, scope: ResourceScope, view: ResourceView, next: Handler): Promise<Reply> => {
    const done = countWrite(session, call.info, reachOf(call.info, scope));
    const reply = await counted(call, () => guardObject(call, view, next), done);
    return foreignWrites.withWarning(call, whileAllowed(reply, call, session, view.labelFilter));
  };
  const narrowed = (call: ResourceCall, plan: QueryPlan, scope: ResourceScope, next: Handler): Promise<Reply> => {
    call.record.decision = "narrowed";
    return narrow(call, plan, scope, next);
  };
  // The client gets an empty collection, and lists again once the namespace is granted.
  const nothingOf = (namespace: string, call: ResourceCall, scope: ResourceScope, next: Handler): Promise<Reply> => {
    moves.of(requestOf(call, scope).collection).leaveOut(namespace);
    return narrowed(call, planNothing(namespace), scope, next);
  };

  /** Decides until a decision stands. It is acted upon in its own tick, with the last call: its body may have been read. */
  const admit = async (asked: ResourceCall, scope: ResourceScope, next: Handler): Promise<Reply> => {
    let call = asked;
    let hold: Hold | undefined;
    let hasWaited = false;
    try {
      for (;;) {
        const { info } = call;
        const enforced = enforcedNow(session);
        const view = enforced.view(info.group, info.resource);
        if (call === asked && isNamedByBody(view, info)) {
          call = await withNameFromBody(call);
          continue;
        }
        const decision = decide(view, info, scope, planner);
        switch (decision.kind) {
          case "allow":
            return allow(call, scope, reachOf(info, scope), next);
          case "warn":
            passForeign(call, decision.message);
            return allow(call, scope, "foreign", next);
          case "check-labels":
            return checkLabels(call, scope, view, next);
          case "narrow":
            return narrowed(call, decision.queryPlan, scope, next);
          case "refuse": {
            const mayBeLoss = !hasWaited && hold === undefined && isAct(info) && decision.why === "other-subset";
            if (mayBeLoss && (await recentLoss.outlast())) {
              hasWaited = true;
              continue;
            }
            const error = refusal(decision, enforced, call);
            // A watch that would go on from an old list while its namespace moves has to list again.
            if (decision.why === "moving" && continuesFromList(call)) return expiredWatch(call);
            throw error;
          }
          case "hold": {
            const { namespace } = decision;
            hold ??= beginHold(call, namespace, { session, clock, ask: next, places });
            const missing = hold?.takeMissing();
            const isOver = hold === undefined || clock.monotonicMs() >= hold.deadlineMs;
            if (missing !== undefined && !isListOrWatch(info)) return missing;
            if (missing !== undefined) discardBody(missing.body);
            if (isListOrWatch(info) && (missing !== undefined || isOver)) return nothingOf(namespace, call, scope, next);
            if (isOver) throw ownerUnknown(namespace, call);
            await hold?.next();
            break;
          }
          default:
            return decision satisfies never;
        }
      }
    } finally {
      hold?.end();
    }
  };

  return (next) => async (call) => {
    if (!isResourceCall(call) || call.record.lock || call.record.excludedBy !== undefined) return next(call);
    if (call.upgrade !== undefined && isListOrWatch(call.info)) throw upgradedCollection(call);
    const scope = needsScope(call.info, session) ? await discovery.scopeOf(call) : "unknown";
    // Before the list, so that the list is of a later version; before the decision, which may only hold for
    // this moment.
    if (call.info.verb === "list" || askedInitialEvents(call) !== undefined)
      await learnVersion(call, requestOf(call, scope).collection, { moves, list: next }).catch(() => undefined);
    return admit(call, scope, next);
  };
}

/** Answers lists and watches of which the client gets what the plan says. */
function createNarrow(deps: IsolateDeps, planner: ReturnType<typeof createPlanner>) {
  const pages = createPages(deps.clock);
  const send = createServerSideFilter({ ...deps, pages });
  const byNamespace = createByNamespace(deps);
  const heldBudget = { maxBytes: MAX_ALL_HELD_BYTES, bytes: 0 };
  const releases = createReleaseOrder(deps.clock);
  const narrowWatch = createNarrowWatch({ ...deps, planner, send, byNamespace, heldBudget, releases });
  const listDeps = { ...deps, pages, send, byNamespace };
  return (call: ResourceCall, plan: QueryPlan, scope: ResourceScope, next: Handler): Promise<Reply> => {
    const request = requestOf(call, scope);
    if (call.info.verb === "watch") return narrowWatch(call, request, plan, scope, next);
    return narrowList(call, request, plan, next, listDeps);
  };
}

function countWrite(session: Session, info: ResourceInfo, reach: WriteReach): (() => void) | undefined {
  if (!isAct(info)) return undefined;
  return session.beginWrite(governingPlace(info.group, info.resource, info), info, reach);
}

/**
 * A reply without an end of its own (a followed log, a proxy, a tunnel) breaks off when the routes no longer
 * allow it. A watch has an end of its own, which knows what frames are.
 * @param objects the labels by which it was decided; it goes on for as long as these decide
 */
function whileAllowed(reply: Reply, { info, record }: ResourceCall, session: Session, objects?: LabelFilter): Reply {
  if (!isEndless(info)) return reply;
  const isOver = (enforced: Enforced) => {
    const decision = decide(enforced.view(info.group, info.resource), info, "unknown");
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
