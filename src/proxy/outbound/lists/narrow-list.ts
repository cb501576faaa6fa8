// A list of which the client gets what the plan says. Invariants: an object passes only if the snapshot in
// force at that instant gives it to the subset; a list that cannot be filtered to its end breaks off and never
// ends as a shorter list; a successful reply that is not a readable list is refused, never passed.
import { createListFilter, type Encoding, type ItemMeta } from "../../../kube/codec/codec.ts";
import { isHiddenBy, NO_PLAN, type QueryPlan, WHOLE } from "../../../route/plan-query.ts";
import { governingPlace, isOwned } from "../../../route/snapshot.ts";
import { askReadableCollection, filterReply, type Handler, type ResourceCall, readableEncoding } from "../../call/call.ts";
import { lenientFilter, listStream } from "../../filter/filtered-body.ts";
import { type CollectionRequest, hidesNamespaces, type SentRequest } from "../../filter/sent-request.ts";
import { asSource, type ByteSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import type { OpenList } from "../../moves/known.ts";
import { enforcedNow } from "../../session/session.ts";
import type { ByNamespace } from "./by-namespace.ts";
import type { Pages } from "./pages.ts";
import { listed, readViewNow } from "./proxy-list.ts";
import type { ServerSideFilter, ServerSideFilterDeps } from "./server-side-filter.ts";

export interface NarrowListDeps extends Pick<ServerSideFilterDeps, "session" | "moves" | "metrics"> {
  readonly pages: Pages;
  readonly send: ServerSideFilter;
  readonly byNamespace: ByNamespace;
}

export function narrowList(
  asked: ResourceCall,
  request: CollectionRequest,
  plan: QueryPlan,
  next: Handler,
  deps: NarrowListDeps,
): Promise<Reply> {
  const { collection } = request;
  const { moves, send, byNamespace, pages } = deps;
  return listed(moves.of(collection), async (list) => {
    if (plan === WHOLE) return wholeList(asked, request, list, next, deps);
    const call = askReadableCollection(asked);
    const joined = await byNamespace.answer(call, collection, plan, list, next);
    if (joined !== undefined) return { status: 200, headers: joined.headers, body: joined.body };
    const page = pages.resume(call, collection, plan);
    const { reply, sent } = await send(page.call, request, page.plan, next);
    pages.sent(page.call, sent);
    const read = { ...sent, onRead: byNamespace.learner(call, sent) };
    return filterReply(call, reply, (body, encoding) => ownedList(body, encoding, read, list, deps));
  });
}

function ownedList(
  body: ByteSource,
  encoding: Encoding,
  { collection, serverFilter, plan = "none", onIgnored, onRead }: SentRequest,
  list: OpenList,
  { session, moves, metrics }: NarrowListDeps,
): ByteSource {
  const { group, resource } = collection;
  const viewNow = readViewNow(session, collection);
  let suspect = hidesNamespaces(serverFilter) ? onIgnored : undefined;
  const keep = (meta: ItemMeta) => {
    const view = viewNow();
    if (isOwned(view, meta)) return true;
    const namespace = governingPlace(group, resource, meta);
    if (view.ownershipOf(namespace) === "unknown") moves.of(collection).leaveOut(namespace);
    if (suspect !== undefined && isHiddenBy(serverFilter, namespace)) {
      suspect();
      suspect = undefined;
    }
    return false;
  };
  const filter = createListFilter(encoding, keep, {
    labels: viewNow().labelFilter !== undefined,
    onVersion: list.answered,
    // The proxy's own selector, which the API server repeats.
    cutShardInfo: serverFilter.shards !== undefined,
  });
  const served = metrics.servedBy(plan);
  return listStream(body, filter, (filteredBytes, readBytes) => {
    list.end();
    onRead?.({ items: filter.counts.kept + filter.counts.dropped, bytes: readBytes });
    metrics.filteredBytes.inc(filteredBytes);
    served.read.inc(readBytes);
    served.sent.inc(readBytes - filteredBytes);
    served.dropped.inc(filter.counts.dropped);
  });
}

/** Answers a list of what the subset owns as a whole. The answer passes as it is. */
async function wholeList(
  asked: ResourceCall,
  { collection }: CollectionRequest,
  list: OpenList,
  next: Handler,
  { session, pages }: NarrowListDeps,
): Promise<Reply> {
  // The first page may have been narrowed.
  const reply = await next(pages.resume(asked, collection, NO_PLAN).call);
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  // Nothing is read of a resource that the subset owns everywhere: it moves only with the rules.
  if (encoding === undefined || enforcedNow(session).view(collection.group, collection.resource).ownsAll) {
    list.answered(undefined);
    return reply;
  }
  const filter = lenientFilter(createListFilter(encoding, () => true, { keepsAll: true, onVersion: list.answered }));
  return { ...reply, body: listStream(asSource(reply.body), filter, () => list.answered(undefined)) };
}
