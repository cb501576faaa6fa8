// Serves a watch without a version, or one from a version that the client got from a list, an event, a create or elsewhere. If something
// has moved since that version, the client is first told of it, or has to list again. Invariant: after a watch that continues, the client
// knows exactly what a list at its version and the events after that version would show. Called by isolate.ts.
import { MeshError } from "../../../base/errors.ts";
import type { Encoding } from "../../../kube/codec/types.ts";
import { NEVER } from "../../../kube/resource-version.ts";
import type { QueryPlan, ResourceScope } from "../../../route/plan-query.ts";
import { readViewOf } from "../../../route/snapshot.ts";
import type { Call, ResourceCall } from "../../call/call.ts";
import { askReadableCollection, filterReply, readableEncoding } from "../../call/readable.ts";
import { endWhen } from "../../filter/end-when.ts";
import { expiredWatch } from "../../filter/expired.ts";
import { rankOf } from "../../filter/release-order.ts";
import { noteNotRenewed, RENEWAL_MS, type RenewingDeps, renewingWatch } from "../../filter/renewing-watch.ts";
import type { CollectionRequest, SentRequest } from "../../filter/sent-request.ts";
import { asSource, type ByteSource } from "../../http/byte-stream.ts";
import { CallAbort } from "../../http/call-signal.ts";
import { countedSource } from "../../http/counted-source.ts";
import type { Reply } from "../../http/handler.ts";
import { TOLD_NOTHING } from "../../moves/mark.ts";
import { hasMoved, type Known } from "../../moves/resource-log.ts";
import { enforcedNow } from "../../session/session.ts";
import { type CatchUp, type CatchUpDeps, type CaughtUp, createCatchUp, WHOLE } from "./catch-up.ts";

export type WatchServerDeps = CatchUpDeps & Omit<RenewingDeps, "rankOf">;

/** A watch that passes whole, without filtering, is sent as the client wrote it. If its answer cannot be read, it breaks off at a move. */
export async function serveWatch(
  asked: ResourceCall,
  request: CollectionRequest,
  queryPlan: QueryPlan,
  scope: ResourceScope,
  deps: WatchServerDeps,
): Promise<Reply> {
  const { moves } = deps;
  const { collection, version } = request;
  const isFiltered = queryPlan !== WHOLE;
  const call: Call = isFiltered ? askReadableCollection(asked) : asked;
  const catchUp = createCatchUp(askReadableCollection(asked), request, scope, deps);
  const stream = (first: Omit<CaughtUp, "reply" | "encoding">, known: Known, encoding: Encoding) =>
    renewingWatch(first, known, encoding, catchUp, call.signal, renewingDeps(collection, deps));

  moves.resumed(collection, version ?? NEVER);
  if (version !== undefined) {
    const known: Known = { version, told: TOLD_NOTHING };
    if (moves.since(collection, known).kind !== "nothing") {
      const first = await caughtUp(call, known, catchUp, deps);
      if (first === undefined) return expiredWatch(call);
      return filterReply(call, first.reply, (_body, encoding) => stream(first, known, encoding));
    }
  }
  const known: Known = { version: version ?? NEVER, told: moves.position };
  const { reply, sent } = await deps.watch(call, request, queryPlan);
  const departed = version === undefined ? known : { version, told: TOLD_NOTHING };
  const request_ = { ...sent, told: known.told, departed };
  const begun = (source: ByteSource, encoding: Encoding) =>
    stream({ names: [], events: [], source, request: request_ }, known, encoding);
  return isFiltered ? filterReply(call, reply, begun) : passed(reply, request_, begun, deps);
}

function renewingDeps(collection: CollectionRequest["collection"], deps: WatchServerDeps): RenewingDeps {
  const isGain = (known: Known) => {
    const due = deps.moves.since(collection, known);
    const view = readViewOf(enforcedNow(deps.session).view(collection.group, collection.resource));
    return due.kind === "moved" && due.moved.some((name) => view.ownershipOf(name) === "own");
  };
  return { ...deps, rankOf: (known) => rankOf(collection, isGain(known)) };
}

/** Undefined if the client has to list. */
async function caughtUp(call: Call, known: Known, catchUp: CatchUp, deps: WatchServerDeps): Promise<CaughtUp | undefined> {
  const asking = new CallAbort();
  const onGone = () => asking.abort(call.signal.reason);
  call.signal.addEventListener("abort", onGone, { once: true });
  if (call.signal.aborted) onGone();
  const timer = deps.clock.after(RENEWAL_MS, () =>
    asking.abort(new MeshError("ABORTED", "continuing a watch: no answer in time")),
  );
  try {
    return await catchUp(known.version, known, asking);
  } catch (error) {
    noteNotRenewed(error, deps);
    return undefined;
  } finally {
    timer.cancel();
  }
}

/** The reply to a watch that passes whole. */
function passed(
  reply: Reply,
  { collection, told }: SentRequest,
  begun: (source: ByteSource, encoding: Encoding) => ByteSource,
  { moves }: WatchServerDeps,
): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  const { "content-length": _, ...headers } = reply.headers;
  if (encoding !== undefined) return { ...reply, headers, body: begun(asSource(reply.body), encoding) };
  // The log treats it as a list under way, since the versions that it gives to the client cannot be read.
  const open = moves.beginList(collection);
  const source = countedSource(asSource(reply.body), () => open.answered(undefined));
  const isOver = () => hasMoved(moves.since(collection, { version: NEVER, told }));
  return { ...reply, headers, body: endWhen(source, { onChange: moves.onChange, isOver }, "break") };
}
