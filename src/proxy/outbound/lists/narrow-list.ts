// A list of which the client gets what the plan says. Invariants: an object passes only if the snapshot in
// force at that instant gives it to the subset. A list that cannot be filtered to its end breaks off and
// never ends as a shorter list. No page is asked for in a way that skips objects.
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import { createListFilter, type Encoding, type ItemMeta } from "../../../kube/codec/codec.ts";
import { parseFieldSelector } from "../../../kube/field-selector.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Collection, OpenList } from "../../../mesh/moves/known.ts";
import { isHiddenBy, NO_NAMESPACE, NO_PLAN, planQuery, type QueryPlan, WHOLE } from "../../../mesh/ownership/plan-query.ts";
import { governingPlace, isOwned, readViewOf } from "../../../mesh/ownership/snapshot.ts";
import {
  askReadableCollection,
  filterReply,
  type Handler,
  inNamespace,
  type ResourceCall,
  readableEncoding,
} from "../../call/call.ts";
import { lenientFilter, listStream } from "../../filter/filtered-body.ts";
import { type CollectionRequest, hidesNamespaces, type SentRequest } from "../../filter/sent-request.ts";
import { asSource, type ByteSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import type { ByNamespace } from "./by-namespace.ts";
import { listed, readViewNow } from "./proxy-list.ts";
import type { ServerSideFilter, ServerSideFilterDeps } from "./server-side-filter.ts";

export interface NarrowListDeps extends Pick<ServerSideFilterDeps, "session" | "moves" | "metrics"> {
  readonly clock: Clock;
  readonly send: ServerSideFilter;
  readonly byNamespace: ByNamespace;
}

export type NarrowList = (call: ResourceCall, request: CollectionRequest, plan: QueryPlan, next: Handler) => Promise<Reply>;

export function createNarrowList(deps: NarrowListDeps): NarrowList {
  const { session, clock, moves, send, byNamespace } = deps;
  const pages = createPages(session, clock);
  return (asked, request, plan, next) => {
    const { collection } = request;
    return listed(moves.of(collection), async (list) => {
      // An earlier page may have been narrowed.
      if (plan === WHOLE) return wholeList(await next(pages.resume(asked, collection, NO_PLAN).call), collection, list, session);
      const call = askReadableCollection(asked);
      const joined = await byNamespace.answer(call, collection, plan, list, next);
      if (joined !== undefined) return { status: 200, headers: joined.headers, body: joined.body };
      const page = pages.resume(call, collection, plan);
      const { reply, sent } = await send(page.call, request, page.plan, next);
      pages.sent(page.call, sent);
      const read = { ...sent, onRead: byNamespace.learner(call, sent) };
      return filterReply(call, reply, (body, encoding) => ownedList(body, encoding, read, list, deps));
    });
  };
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
  let reportIgnored = hidesNamespaces(serverFilter) ? onIgnored : undefined;
  const keep = (meta: ItemMeta) => {
    const view = viewNow();
    if (isOwned(view, meta)) return true;
    const namespace = governingPlace(group, resource, meta);
    if (view.ownershipOf(namespace) === "unknown") moves.of(collection).leaveOut(namespace);
    if (reportIgnored !== undefined && isHiddenBy(serverFilter, namespace)) {
      reportIgnored();
      reportIgnored = undefined;
    }
    return false;
  };
  const filter = createListFilter(encoding, keep, {
    labels: viewNow().labelFilter !== undefined,
    onVersion: list.answered,
    // The API server repeats the selector, which is the proxy's and not the caller's.
    cutShardInfo: serverFilter.shards !== undefined,
  });
  const served = metrics.servedBy(plan);
  return listStream(body, filter, (filteredBytes, readBytes) => {
    list.end();
    const { kept, dropped } = filter.counts;
    onRead?.({ items: kept + dropped, bytes: readBytes, kept });
    metrics.filteredBytes.inc(filteredBytes);
    served.read.inc(readBytes);
    served.sent.inc(readBytes - filteredBytes);
    served.dropped.inc(dropped);
  });
}

/** The list of a collection that the subset owns as a whole: it passes as it is. */
function wholeList(reply: Reply, collection: Collection, list: OpenList, session: Session): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  // A resource that the subset owns everywhere moves only with the rules, so its list is not read.
  if (encoding === undefined || enforcedNow(session).view(collection.group, collection.resource).ownsAll) {
    list.answered(undefined);
    return reply;
  }
  const filter = lenientFilter(createListFilter(encoding, () => true, { keepsAll: true, onVersion: list.answered }));
  return { ...reply, body: listStream(asSource(reply.body), filter, () => list.answered(undefined)) };
}

/** A compaction (by default every 5 minutes) makes earlier tokens void. This leaves a margin. */
const TOKEN_MS = 15 * 60_000;
/** Clients choose resources freely. */
const MAX_RESOURCES = 1_000;

// Later pages of a list that was limited to one namespace. kube-apiserver (seen on 1.36) makes the token of
// `fieldSelector=metadata.namespace=x` relative to x, but reads it relative to all namespaces, and so
// silently loses the rest of x. In x's own path it reads the token correctly. Tokens of other plans work with
// every plan except that one. A page that cannot be asked for gets 410 Expired, after which clients list
// again.
function createPages(session: Session, clock: Clock) {
  // Resource => namespace to which a list was limited => the time of the last such list.
  const singles = new BoundedMap<string, Map<string, number>>(MAX_RESOURCES);

  const recentSingles = (key: string): string[] => {
    const known = singles.get(key);
    if (known === undefined) return [];
    for (const [namespace, atMs] of known) if (clock.monotonicMs() - atMs > TOKEN_MS) known.delete(namespace);
    if (known.size === 0) singles.delete(key);
    return [...known.keys()];
  };
  // The plan without `metadata.namespace=`.
  const overAll = (plan: QueryPlan, { group, resource }: Collection) =>
    plan.only === undefined
      ? plan
      : planQuery(readViewOf(enforcedNow(session).view(group, resource)), plan.scope, { oneNamespace: false });

  return {
    /** A list was sent whose answer may have further pages. */
    sent({ info }: ResourceCall, { collection: { group, resource }, serverFilter: { only } }: SentRequest): void {
      if (only === undefined || only === NO_NAMESPACE || !info.query.has("limit")) return;
      const key = `${group}/${resource}`;
      const known = singles.get(key) ?? new Map<string, number>();
      known.set(only, clock.monotonicMs());
      singles.set(key, known);
    },
    /** How to ask for the page of a call, if it continues a list. @throws StatusError Expired */
    resume(
      call: ResourceCall,
      collection: Collection,
      plan: QueryPlan,
    ): { readonly call: ResourceCall; readonly plan: QueryPlan } {
      const token = call.info.query.get("continue") ?? "";
      if (token === "" || collection.namespace !== "" || namesNamespace(call)) return { call, plan };
      const kind = kindOfToken(token);
      const [single, ...ambiguous] = recentSingles(`${collection.group}/${collection.resource}`);
      if (kind === "all-namespaces" || (single === undefined && kind === "unknown"))
        return { call, plan: overAll(plan, collection) };
      // Tokens of a resource without namespaces look like tokens of one namespace.
      if (single === undefined && plan.scope !== "namespaced") return { call, plan };
      if (single === undefined || ambiguous.length > 0) throw expired();
      if (kind === "unknown") {
        // The protocol binds an unknown token to the selector of the first page.
        if (plan.only !== single) throw expired();
        return { call, plan };
      }
      const inPath = { namespacePlan: "one-namespace", fieldSelector: "", only: single, isByPath: true } as const;
      return { call: inNamespace(call, single, call.info.query), plan: { ...plan, ...inPath } };
    },
  };
}

/** True if the caller itself limits the list to a namespace. */
function namesNamespace({ info }: ResourceCall): boolean {
  const selector = info.query.get("fieldSelector") ?? "";
  if (!selector.includes("metadata.namespace")) return false;
  try {
    return parseFieldSelector(selector).some(({ field, operator }) => field === "metadata.namespace" && operator === "=");
  } catch {
    return true; // the API server refuses it
  }
}

// k8s.io/apiserver's tokens are JSON in base64:
// {"v":"meta.k8s.io/v1","rv":7,"start":"/namespace/name\u0000"}.
function kindOfToken(token: string): "all-namespaces" | "one-namespace" | "unknown" {
  try {
    const read: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (typeof read !== "object" || read === null || !("v" in read) || !("start" in read)) return "unknown";
    if (read.v !== "meta.k8s.io/v1" || typeof read.start !== "string") return "unknown";
    return read.start.replace(/^\//, "").includes("/") ? "all-namespaces" : "one-namespace";
  } catch {
    return "unknown";
  }
}

function expired(): StatusError {
  return new StatusError("Expired", "ctrlmesh: the list was begun under other routes or by another process, list again");
}
