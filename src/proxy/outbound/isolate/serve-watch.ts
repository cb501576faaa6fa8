// Serves a watch without a version, or one from a version that the client got from a list, an event, a create
// or elsewhere. If something has moved since that version, the client is first told of it, or has to list
// again. Invariant: after a watch that continues, the client knows exactly what a list at its version and the
// events after that version would show. Called by isolate.ts.
import type { Encoding } from "../../../kube/codec/codec.ts";
import { NEVER } from "../../../kube/resource-version.ts";
import type { QueryPlan, ResourceScope } from "../../../route/plan-query.ts";
import type { Call, ResourceCall } from "../../call/call.ts";
import { askReadableCollection, filterReply, readableEncoding } from "../../call/readable.ts";
import { endBySnapshot, endWhen } from "../../filter/end-when.ts";
import { expiredWatch } from "../../filter/expired.ts";
import { attemptRenewal, type Renewed, type RenewingDeps, renewingWatch } from "../../filter/renewing-watch.ts";
import type { CollectionRequest, SentRequest } from "../../filter/sent-request.ts";
import { asSource, type ByteSource } from "../../http/byte-stream.ts";
import { countedSource } from "../../http/counted-source.ts";
import type { Reply } from "../../http/handler.ts";
import { hasMoved, type Known, TOLD_NOTHING } from "../../moves/resource-log.ts";
import { type CatchUpDeps, createCatchUp, WHOLE } from "./catch-up.ts";

export type WatchServerDeps = CatchUpDeps & RenewingDeps;

/**
 * A watch that passes whole, without filtering, is sent as the client wrote it. If its answer cannot be read,
 * it breaks off at a move.
 */
export async function serveWatch(
  asked: ResourceCall,
  request: CollectionRequest,
  queryPlan: QueryPlan,
  scope: ResourceScope,
  deps: WatchServerDeps,
): Promise<Reply> {
  const { collection, version = NEVER } = request;
  const isFiltered = queryPlan !== WHOLE;
  const call: Call = isFiltered ? askReadableCollection(asked) : asked;
  const { signal } = call;
  const renew = createCatchUp(askReadableCollection(asked), request, scope, deps);
  const known: Known = { version, told: TOLD_NOTHING };

  const log = deps.moves.of(collection);
  log.resume(version);
  if (version !== NEVER && log.since(collection, known).kind !== "nothing") {
    const first = await attemptRenewal(signal, (asking) => renew(known, asking), deps);
    if (first === undefined) return expiredWatch(call);
    return filterReply(call, first.reply, (_, encoding) => renewingWatch({ first, known, encoding, renew, signal }, deps));
  }
  const { reply, sent } = await deps.watch(call, request, queryPlan);
  const begun = (source: ByteSource, encoding: Encoding) => {
    const first: Renewed = { names: [], events: [], request: sent, reply, source };
    return renewingWatch({ first, known, encoding, renew, signal }, deps);
  };
  return isFiltered ? filterReply(call, reply, begun) : passed(reply, sent, begun, deps);
}

/** The reply to a watch that passes whole. */
function passed(
  reply: Reply,
  { collection, told }: SentRequest,
  begun: (source: ByteSource, encoding: Encoding) => ByteSource,
  { moves, session }: WatchServerDeps,
): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  const { "content-length": _, ...headers } = reply.headers;
  if (encoding !== undefined) return { ...reply, headers, body: begun(asSource(reply.body), encoding) };
  // The log treats it as a list under way, since the versions that it gives to the client cannot be read.
  const open = moves.of(collection).beginList();
  const source = countedSource(asSource(reply.body), () => open.answered(undefined));
  const isOver = () => hasMoved(moves.of(collection).since(collection, { version: NEVER, told }));
  return { ...reply, headers, body: endWhen(source, endBySnapshot(session, isOver), "break") };
}
