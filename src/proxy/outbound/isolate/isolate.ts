// Allows, refuses or narrows every call for objects, after a bounded wait if the namespace's owner is
// unknown. Invariants: a reply that cannot be filtered is refused, never passed; a write counts as in flight
// from the tick of its decision to its answer, so that no snapshot comes in between.
import type { ProcessContext } from "../../../base/process-context.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { isEndless, isListOrWatch, isProxied } from "../../../kube/request-kind.ts";
import { decide, hasFrozen, isAct, isNamedByBody, reachOf, type WriteReach } from "../../../mesh/ownership/decide.ts";
import type { Enforced } from "../../../mesh/ownership/enforced.ts";
import {
  createPlanner,
  type Planner,
  planNothing,
  type QueryPlan,
  type ResourceScope,
  WHOLE,
} from "../../../mesh/ownership/plan-query.ts";
import { governingPlace, isNamespaces, type LabelFilter } from "../../../mesh/ownership/snapshot.ts";
import type { Discovery } from "../../api-server/discovery.ts";
import { type Call, type Handler, isResourceCall, type Layer, type ResourceCall } from "../../call/call.ts";
import { endBySnapshot, endReply } from "../../filter/end-when.ts";
import { expiredWatch } from "../../filter/expired.ts";
import { createReleaseOrder } from "../../filter/release-order.ts";
import { countedSource } from "../../http/body-sources.ts";
import { discardBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import { type ByNamespaceDeps, createByNamespace } from "../lists/by-namespace.ts";
import { askedInitialEvents, continuesFromList, requestOf } from "../lists/collection-request.ts";
import { createNarrowList } from "../lists/narrow-list.ts";
import { learnVersion } from "../lists/proxy-list.ts";
import { createServerSideFilter } from "../lists/server-side-filter.ts";
import { createNarrowWatch } from "../watches/narrow-watch.ts";
import { beginHold, createRecentLoss, type Hold } from "./hold.ts";
import { guardObject } from "./object-guard.ts";
import { withBytes, withNameFromBody } from "./object-labels.ts";
import { createOwnEvents } from "./own-events.ts";
import { createForeignWrites, frozenRefusal, ownerUnknown, passForeign, refusal, upgradedCollection } from "./refusals.ts";

export interface IsolateDeps extends ByNamespaceDeps, Pick<ProcessContext, "random" | "log"> {
  readonly discovery: Discovery;
  readonly podName: string;
  /** How many requests may wait at a time. A further one is answered as after its wait. Default 256. */
  readonly maxHeld?: number;
}

/** The body of a held request waits in its socket: some 64 KiB each, 16 MiB together. */
const MAX_HELD = 256;
/** The most bytes that all stalled watches together hold. */
const MAX_ALL_HELD_BYTES = 32 * 1024 * 1024;

export function isolate(deps: IsolateDeps): Layer {
  const { session, clock, moves, discovery } = deps;
  const planner = createPlanner();
  const narrow = createNarrow(deps, planner);
  const withWarning = createForeignWrites(clock, deps.log);
  const outlastLoss = createRecentLoss(session, clock);
  const ownEvents = createOwnEvents(session, deps.podName);
  const places = { free: deps.maxHeld ?? MAX_HELD };

  /** @param objects the labels that decide about the call's object */
  const pass = async (call: ResourceCall, reach: WriteReach, send: () => Promise<Reply>, objects?: LabelFilter) => {
    const { info } = call;
    const done = isAct(info) ? session.beginWrite(governingPlace(info.group, info.resource, info), info, reach) : undefined;
    const reply = done === undefined ? await send() : await untilWritten(call, send, done);
    return withWarning(call, whileAllowed(reply, call, session, objects));
  };
  const allow = (call: ResourceCall, scope: ResourceScope, reach: WriteReach, next: Handler): Promise<Reply> =>
    pass(call, reach, () => (isListOrWatch(call.info) ? narrow(call, WHOLE, scope, next) : next(call)));
  const narrowed = (call: ResourceCall, plan: QueryPlan, scope: ResourceScope, next: Handler): Promise<Reply> => {
    call.record.decision = "narrowed";
    return narrow(call, plan, scope, next);
  };
  // The client gets an empty collection, and lists again once the namespace is granted.
  const nothingOf = (namespace: string, call: ResourceCall, scope: ResourceScope, next: Handler): Promise<Reply> => {
    moves.of(call.info).leaveOut(namespace);
    return narrowed(call, planNothing(namespace), scope, next);
  };

  /** Decides again after each wait. The last decision is acted upon in its own tick. */
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
            return pass(call, reachOf(info, scope), () => guardObject(call, view, next), view.labelFilter);
          case "narrow":
            return narrowed(call, decision.queryPlan, scope, next);
          case "frozen":
            throw frozenRefusal(decision, enforced, call);
          case "refuse": {
            const mayBeLoss = !hasWaited && hold === undefined && isAct(info) && decision.why === "other-subset";
            const place = governingPlace(info.group, info.resource, info);
            if (mayBeLoss && (await outlastLoss(view.readView?.isForMoment?.(place) === true))) {
              hasWaited = true;
              continue;
            }
            const error = refusal(decision, enforced, call);
            // While its namespace moves, a watch that continues from an old list has to list again.
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

  return (next) => async (sent) => {
    if (!isResourceCall(sent) || sent.record.lock || sent.record.excludedBy !== undefined) return next(sent);
    let call: ResourceCall = sent;
    const event = ownEvents.writeOf(sent);
    if (event !== undefined) {
      const read = await withBytes(sent);
      const reply = await ownEvents.send(read, event, next);
      if (reply !== undefined) return reply;
      call = read;
    }
    if (call.upgrade !== undefined && isListOrWatch(call.info)) throw upgradedCollection(call);
    const scope = needsScope(call.info, session) ? await discovery.scopeOf(call) : "unknown";
    // Before the list, which must have a later version, and before the decision, which must not grow old.
    if (call.info.verb === "list" || askedInitialEvents(call) !== undefined)
      await learnVersion(call, moves.of(call.info), next).catch(() => undefined);
    return admit(call, scope, next);
  };
}

function createNarrow(deps: IsolateDeps, planner: Planner) {
  const send = createServerSideFilter(deps);
  const byNamespace = createByNamespace(deps);
  const heldBudget = { maxBytes: MAX_ALL_HELD_BYTES, bytes: 0 };
  const narrowWatch = createNarrowWatch({
    ...deps,
    planner,
    send,
    byNamespace,
    heldBudget,
    releases: createReleaseOrder(deps.clock),
  });
  const narrowList = createNarrowList({ ...deps, send, byNamespace });
  return (call: ResourceCall, plan: QueryPlan, scope: ResourceScope, next: Handler): Promise<Reply> => {
    const request = requestOf(call, scope);
    if (call.info.verb === "watch") return narrowWatch(call, request, plan, scope, next);
    return narrowList(call, request, plan, next);
  };
}

/** Breaks off a followed log, a proxy or a tunnel once the routes forbid it, or other labels decide. */
function whileAllowed(reply: Reply, { info, record }: ResourceCall, session: Session, objects?: LabelFilter): Reply {
  if (!isEndless(info)) return reply;
  const isOver = (enforced: Enforced) => {
    const decision = decide(enforced.view(info.group, info.resource), info, "unknown");
    if (decision.kind === "check-labels") return decision.objects.labelSelector !== objects?.labelSelector;
    return decision.kind !== "allow" && !(decision.kind === "warn" && record.warning !== undefined);
  };
  return endReply(reply, endBySnapshot(session, isOver));
}

/**
 * Calls `done` once, with the head of the write's answer, since the API server answers after its commit.
 * Behind the subresource `proxy` another server answers, so there the write is over with the body.
 */
export async function untilWritten({ info }: Call, send: () => Promise<Reply>, done: () => void): Promise<Reply> {
  try {
    const reply = await send();
    if (isProxied(info) && reply.body !== null && !(reply.body instanceof Uint8Array))
      return { ...reply, body: countedSource(reply.body, done) };
    done();
    return reply;
  } catch (error) {
    done();
    throw error;
  }
}

function needsScope(info: ResourceInfo, session: Session): boolean {
  if (info.namespace !== "" || isNamespaces(info)) return false;
  if (!isListOrWatch(info) && info.verb !== "deletecollection") return false;
  const view = enforcedNow(session).view(info.group, info.resource);
  return !view.ownsAll || (info.verb === "deletecollection" && hasFrozen(view));
}
