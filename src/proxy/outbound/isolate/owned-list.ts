// A list's body as this subset may see it. Invariants: an object passes only if the snapshot in force at that
// instant gives it to the subset; a list that cannot be filtered to its end breaks off and never ends as a
// shorter list. Called by narrow.ts.

import { createListFilter, type Encoding, type ItemMeta } from "../../../kube/codec/codec.ts";
import { parseResourceVersion } from "../../../kube/resource-version.ts";
import type { GroupResource } from "../../../kube/types.ts";
import { isHiddenBy } from "../../../route/plan-query.ts";
import { governingPlace, isOwned, type ResourceView, readViewOf } from "../../../route/snapshot.ts";
import { readableEncoding } from "../../call/readable.ts";
import { listStream } from "../../filter/filtered-body.ts";
import { LenientFilter } from "../../filter/lenient-filter.ts";
import { hidesNamespaces, type SentRequest } from "../../filter/sent-request.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import { asSource, type ByteSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import type { Collection } from "../../moves/collection.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import type { OpenList } from "../../moves/resource-log.ts";
import { type Enforced, enforcedNow, type Session } from "../../session/session.ts";
import { resourceMoves } from "./admission.ts";

export interface OwnedListDeps {
  readonly session: Session;
  readonly moves: MoveLog;
  readonly metrics: StreamMetrics;
}

/** The filtered body. */
export function ownedList(
  body: ByteSource,
  encoding: Encoding,
  request: SentRequest,
  list: OpenList,
  deps: OwnedListDeps,
): ByteSource {
  const { collection, serverFilter, plan = "none" } = request;
  const { group, resource } = collection;
  const viewNow = readViewNow(deps.session, collection);
  let suspect = hidesNamespaces(serverFilter) ? request.onIgnored : undefined;
  const keep = (meta: ItemMeta) => {
    const view = viewNow();
    if (isOwned(view, meta)) return true;
    const namespace = governingPlace(group, resource, meta);
    const ownership = view.ownershipOf(namespace);
    if (ownership === "unknown") deps.moves.of(collection).leaveOut(namespace);
    if (suspect !== undefined && isHiddenBy(serverFilter, namespace)) {
      suspect();
      suspect = undefined;
    }
    return false;
  };
  const filter = createListFilter(encoding, keep, {
    labels: viewNow().labelFilter !== undefined,
    onVersion: (version) => list.answered(parseResourceVersion(version)),
    // The proxy's own selector, which the API server repeats.
    cutShardInfo: serverFilter.shards !== undefined,
  });
  const served = deps.metrics.servedBy(plan);
  return listStream(body, filter, (filteredBytes, readBytes) => {
    list.end();
    request.onRead?.({ items: filter.kept + filter.dropped, bytes: readBytes });
    deps.metrics.filteredBytes.inc(filteredBytes);
    served.read(readBytes);
    served.sent(readBytes - filteredBytes);
    served.dropped(filter.dropped);
  });
}

/**
 * The view for reads that is in force at the time of the call.
 * @throws StatusError while the resource moves: the rest of a list would come out empty, and clients would
 * believe it
 */
export function readViewNow(session: Session, { group, resource }: GroupResource): () => ResourceView {
  let enforced: Enforced | undefined;
  let view: ResourceView;
  return () => {
    const now = enforcedNow(session);
    if (now !== enforced) {
      enforced = now;
      view = readViewOf(now.view(group, resource));
    }
    if (view.isMoving) throw resourceMoves();
    return view;
  };
}

/** The answer to a list of what the subset owns as a whole. It passes as it is. */
export function wholeList(reply: Reply, { group, resource }: Collection, list: OpenList, session: Session): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  // Nothing is read of a resource that the subset owns everywhere: it moves only with the rules.
  if (encoding === undefined || enforcedNow(session).view(group, resource).ownsAll) {
    list.answered(undefined);
    return reply;
  }
  const onVersion = (version: string | undefined) => list.answered(parseResourceVersion(version));
  const filter = new LenientFilter(createListFilter(encoding, () => true, { keepsAll: true, onVersion }));
  return { ...reply, body: listStream(asSource(reply.body), filter, () => list.answered(undefined)) };
}
