// A watch of which the client gets what the plan says. It begins with the whole state, or continues from a
// version: then the client first gets what moved since, or has to list again. Invariant: the client then
// knows exactly what a list at its version and the events after that version would show.
import type { Encoding } from "../../../kube/codec/codec.ts";
import { NEVER } from "../../../kube/resource-version.ts";
import { hasMoved, type Known, TOLD_NOTHING } from "../../../mesh/moves/known.ts";
import { planOf } from "../../../mesh/ownership/decide.ts";
import { type Planner, type QueryPlan, type ResourceScope, WHOLE } from "../../../mesh/ownership/plan-query.ts";
import {
  askReadableCollection,
  createRecord,
  filterReply,
  type Handler,
  type ResourceCall,
  readableEncoding,
} from "../../call/call.ts";
import { endBySnapshot, endWhen } from "../../filter/end-when.ts";
import { expiredWatch } from "../../filter/expired.ts";
import { attemptRenewal, renewalFailed } from "../../filter/renewal.ts";
import { type Renewed, type RenewingDeps, renewingWatch } from "../../filter/renewing-watch.ts";
import type { CollectionRequest, SentRequest } from "../../filter/sent-request.ts";
import { countedSource, followedBy } from "../../http/body-sources.ts";
import { asSource, type ByteSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow } from "../../session/session.ts";
import type { ByNamespace } from "../lists/by-namespace.ts";
import { checkedList } from "../lists/proxy-list.ts";
import type { ServerSideFilter } from "../lists/server-side-filter.ts";
import { createCatchUp, createTurns, watchFrom } from "./catch-up.ts";

export interface NarrowWatchDeps extends RenewingDeps {
  readonly planner: Planner;
  readonly send: ServerSideFilter;
  readonly byNamespace: ByNamespace;
}

export type NarrowWatch = (
  call: ResourceCall,
  request: CollectionRequest,
  plan: QueryPlan,
  scope: ResourceScope,
  next: Handler,
) => Promise<Reply>;

/** How many watches may fetch moved objects at a time: the lists are in memory until they are sent. */
const MAX_CATCHING_UP = 3;

export function createNarrowWatch(deps: NarrowWatchDeps): NarrowWatch {
  const { session, moves, clock, planner, send, byNamespace } = deps;
  const turns = createTurns(MAX_CATCHING_UP);
  const planNow = ({ info }: ResourceCall, scope: ResourceScope) =>
    planOf(enforcedNow(session).view(info.group, info.resource), info, scope, planner);

  /**
   * Begins the watch by lists by namespace, and continues it as any watch from their version. Undefined if
   * the one watch has to be sent.
   */
  const begin: (...of: Parameters<NarrowWatch>) => Promise<Reply | undefined> = async (asked, request, plan, scope, next) => {
    const { collection } = request;
    const call = askReadableCollection(asked);
    const startedMs = clock.monotonicMs();
    const open = moves.of(collection).beginList();
    try {
      const initial = await byNamespace.answer(call, collection, plan, open, next);
      if (initial === undefined) return undefined;
      const { headers, body, version, encoding } = initial;
      const rest = async () => {
        // The record of the call belongs to its answer, which has begun.
        const record = createRecord(call.info, call.record, "narrowed");
        const watch = watchFrom(version, { ...call, record }, clock.monotonicMs() - startedMs);
        return checkedList(await goOn(watch, { collection, version }, scope, next), renewalFailed, encoding).body;
      };
      return { status: 200, headers, body: followedBy(body, rest) };
    } finally {
      open.end();
    }
  };

  /** Serves the watch by the routes in force. */
  const goOn = async (call: ResourceCall, request: CollectionRequest, scope: ResourceScope, next: Handler) => {
    const plan = planNow(call, scope);
    return plan === undefined ? expiredWatch(call) : serve(call, request, plan, scope, next);
  };

  // A watch that passes whole is sent as the client wrote it.
  const serve: NarrowWatch = async (asked, request, plan, scope, next) => {
    const { collection, version = NEVER } = request;
    const isFiltered = plan !== WHOLE;
    const call = isFiltered ? askReadableCollection(asked) : asked;
    const { signal } = call;
    const renew = createCatchUp(askReadableCollection(asked), collection, {
      session,
      moves,
      clock,
      turns,
      list: next,
      planNow: (current) => planNow(current, scope),
      send: (watch, from, currentPlan) => send(watch, from, currentPlan, next),
    });
    const known: Known = { version, told: TOLD_NOTHING };
    const log = moves.of(collection);
    log.resume(version);
    if (version !== NEVER && log.since(collection, known).kind !== "nothing") {
      const first = await attemptRenewal(signal, (asking) => renew(known, asking), deps);
      if (first === undefined) return expiredWatch(call);
      return filterReply(call, first.reply, (_, encoding) => renewingWatch({ first, known, encoding, renew, signal }, deps));
    }
    const { reply, sent } = await send(call, request, plan, next);
    const watched = (source: ByteSource, encoding: Encoding) => {
      const first: Renewed = { names: [], events: [], request: sent, reply, source };
      return renewingWatch({ first, known, encoding, renew, signal }, deps);
    };
    return isFiltered ? filterReply(call, reply, watched) : wholeWatch(reply, sent, watched, deps);
  };

  return async (asked, request, plan, scope, next) => {
    if (plan === WHOLE || request.version !== undefined) return serve(asked, request, plan, scope, next);
    const log = moves.of(request.collection);
    const { position } = log;
    const begun = await begin(asked, request, plan, scope, next);
    if (begun !== undefined) return begun;
    // A plan holds for the moment of its decision.
    return log.position === position ? serve(asked, request, plan, scope, next) : goOn(asked, request, scope, next);
  };
}

/** The reply to a watch that passes whole. If it is unreadable, it breaks off at a move. */
function wholeWatch(
  reply: Reply,
  { collection, told }: SentRequest,
  watched: (source: ByteSource, encoding: Encoding) => ByteSource,
  { moves, session }: NarrowWatchDeps,
): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  const { "content-length": _, ...headers } = reply.headers;
  if (encoding !== undefined) return { ...reply, headers, body: watched(asSource(reply.body), encoding) };
  // For the log it is a list under way, since the versions that the client is given cannot be read.
  const open = moves.of(collection).beginList();
  const source = countedSource(asSource(reply.body), () => open.answered(undefined));
  const isOver = () => hasMoved(moves.of(collection).since(collection, { version: NEVER, told }));
  return { ...reply, headers, body: endWhen(source, endBySnapshot(session, isOver), "break") };
}
