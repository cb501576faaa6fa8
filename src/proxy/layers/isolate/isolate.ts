// The layer that keeps a subset to its slice: allows, refuses or narrows every request for objects. Invariants: what it
// narrows is an intersection with what the caller asked; a reply that cannot be filtered is refused, never passed; a write
// is counted as in flight from its decision to its answer. Lock traffic, which the election layer marks, passes.
import type { Clock, Random } from "../../../base/clock.ts";
import type { Registry } from "../../../base/metrics.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { parseResourceVersion } from "../../../kube/resource-version.ts";
import { StatusError } from "../../../kube/status.ts";
import { decide } from "../../../route/decide.ts";
import { createPlanner, NO_PLAN, type Scope } from "../../../route/plan-query.ts";
import { isNamespaces, type LabelFilter, type ResourceView } from "../../../route/snapshot.ts";
import { isLongRunning } from "../../api-server/pools.ts";
import type { ServerFeatures } from "../../api-server/server-features.ts";
import { endBySnapshot } from "../../filter/end-when.ts";
import { createStreamMetrics, type StreamMetrics } from "../../filter/stream-metrics.ts";
import type { Call, Handler, Layer, Reply } from "../../http/handler.ts";
import { isResourceCall, type ResourceCall } from "../../http/resource-call.ts";
import { type Collection, createResync } from "../../relist/resync.ts";
import type { Enforced, Session } from "../../session/session.ts";
import { endReply } from "../end-reply.ts";
import { whenReplyDone } from "../reply-done.ts";
import { admit, enforcedNow } from "./admission.ts";
import { continuesFromList } from "./continues-from-list.ts";
import { expiredWatch } from "./expired-watch.ts";
import { createHoldPlaces } from "./hold.ts";
import { type AskedScope, createNarrow, type NarrowDeps, watchAllowed } from "./narrow.ts";
import { guardObject } from "./object-guard.ts";
import { createPages } from "./pages.ts";
import type { PlanLog } from "./plan-log.ts";

export interface IsolateDeps {
  readonly session: Session;
  /** Asked only for collections over all namespaces. */
  readonly discovery: { scopeOf(call: Call): Promise<Scope> };
  readonly clock: Clock;
  readonly random: Random;
  readonly registry: Registry;
  /** Shared by the layers of one proxy; default: registered here. */
  readonly metrics?: StreamMetrics;
  /** What the API servers do not know; shared by the layers of one proxy, default: a memory of its own. */
  readonly features?: ServerFeatures;
  /** Where plans are noted for `/debug/plans`. */
  readonly plans?: PlanLog;
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
  const metrics = deps.metrics ?? createStreamMetrics(deps.registry);
  const heldBudget = { maxBytes: deps.maxAllHeldBytes ?? MAX_ALL_HELD_BYTES, bytes: 0 };
  const plan = createPlanner();
  const streams: NarrowDeps = { ...deps, resync, pages, metrics, heldBudget, planner: plan };
  const narrow = createNarrow(streams);
  const places = createHoldPlaces(deps.maxHeld ?? MAX_HELD);
  const holdMs = deps.holdMs ?? 2_000;

  const allowRead = async (call: ResourceCall, next: Handler): Promise<Reply> => {
    if (call.info.verb !== "list" && call.info.verb !== "watch") return next(call);
    return sendCollection(call, async (collection) => {
      // The first page may have been narrowed still.
      const isPage = call.info.query.has("continue");
      const asked = isPage ? pages.resume(call, collection, NO_PLAN, () => NO_PLAN).call : call;
      const reply = await next(asked);
      return call.info.verb === "watch" ? watchAllowed(reply, scopeOfWatch(call, collection), streams) : reply;
    });
  };

  // Refuses a watch that would go on from a list made under other routes, and notes what is listed.
  const sendCollection = async (call: ResourceCall, send: (collection: Collection) => Promise<Reply>): Promise<Reply> => {
    const collection = collectionOf(call);
    const { query, verb } = call.info;
    if (verb !== "watch" || !continuesFromList(query)) {
      const showsAll = call.method === "GET" && !query.get("continue");
      return showsAll ? resync.list(collection, () => send(collection)) : send(collection);
    }
    if (!resync.mustListAgain(collection, query.get("resourceVersion") ?? "")) return send(collection);
    call.record.decision = "fenced";
    call.record.reason = "list-again";
    return expiredWatch(call);
  };

  const scopeOf = async (call: ResourceCall): Promise<Scope> => {
    const startedMs = clock.monotonicMs();
    const scope = await deps.discovery.scopeOf(call);
    call.record.waitedMs = (call.record.waitedMs ?? 0) + clock.monotonicMs() - startedMs;
    return scope;
  };

  const judge = async (call: ResourceCall, view: ResourceView, done: (() => void) | undefined, next: Handler) => {
    const send = () => guardObject(call, view, next);
    const reply = done === undefined ? await send() : await countedWrite(call, send, done);
    return hasNoEnd(call.info) ? whileAllowed(reply, call.info, session, view.labelFilter) : reply;
  };

  return (next) => async (call) => {
    if (!isResourceCall(call) || call.record.lock) return next(call);
    refuseUpgrade(call);
    const scope = needsScope(call.info, session) ? await scopeOf(call) : "unknown";
    return admit(call, scope, { session, clock, ask: next, holdMs, places, plan }, async (admitted) => {
      if (admitted.kind === "missing") return admitted.reply;
      if (admitted.kind === "expired") return expiredWatch(call);
      if (admitted.kind === "narrow") {
        const { plan, unknown } = admitted;
        return sendCollection(call, (collection) => {
          call.record.decision = "narrowed";
          if (unknown !== undefined) resync.leftOut.note(collection, unknown);
          return narrow(call, scopeOfWatch(call, collection), plan, next);
        });
      }
      const { done } = admitted;
      if (admitted.kind === "judge") return judge(call, admitted.view, done, next);
      const reply = done === undefined ? await allowRead(call, next) : await countedWrite(call, next, done);
      return hasNoEnd(call.info) ? whileAllowed(reply, call.info, session) : reply;
    });
  };
}

// Logs that are followed, proxies, tunnels. Watches have ends of their own, which know what frames are.
function hasNoEnd(info: ResourceInfo): boolean {
  return info.verb !== "watch" && isLongRunning(info);
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
  if (upgrade === undefined || (info.verb !== "list" && info.verb !== "watch")) return;
  record.decision = "refused";
  record.reason = "upgrade";
  throw new StatusError("ServiceUnavailable", `ctrlmesh: ${info.verb} over ${upgrade} is not supported, use plain HTTP`);
}

function needsScope(info: ResourceInfo, session: Session): boolean {
  if (info.namespace !== "" || isNamespaces(info)) return false;
  if (info.verb !== "list" && info.verb !== "watch" && info.verb !== "deletecollection") return false;
  return !enforcedNow(session).view(info.group, info.resource).ownsAll;
}

// The user agent is no part of the shape: @kubernetes/client-node lists under one name and watches under another.
function collectionOf({ info }: ResourceCall): Collection {
  const { group, version, resource, namespace, query } = info;
  const selectors = ["labelSelector", "fieldSelector", "shardSelector"].map((name) => query.get(name) ?? "");
  const shape = JSON.stringify([group, version, resource, namespace, ...selectors]);
  // For `namespaces/x` the info's namespace is x, yet the collection is all of them.
  return { group, resource, namespace: isNamespaces(info) ? "" : namespace, shape };
}

function scopeOfWatch({ info }: ResourceCall, collection: Collection): AskedScope {
  if (info.verb !== "watch" || !continuesFromList(info.query)) return { collection, continues: false };
  return { collection, continues: true, version: parseResourceVersion(info.query.get("resourceVersion") ?? "") };
}
