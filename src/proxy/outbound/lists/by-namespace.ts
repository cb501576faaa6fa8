// Answers a list over all namespaces, or the beginning of a watch, by a list of each own namespace, all at
// one version, joined into one (docs/decisions/0021). Invariants: the answer shows the objects that one list
// at that version shows; after a failure before the first byte the one list is sent.
import { onAbort } from "../../../base/abort.ts";
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import { isMeshError, MeshError } from "../../../base/errors.ts";
import { createListJoiner, type Encoding, isCodecError, type Keep } from "../../../kube/codec/codec.ts";
import { watchContentType } from "../../../kube/codec/content-negotiation.ts";
import { createEventJoiner } from "../../../kube/codec/list-events.ts";
import type { Version } from "../../../kube/resource-version.ts";
import type { Collection, OpenList } from "../../../mesh/moves/known.ts";
import { type ListSize, planLists } from "../../../mesh/ownership/plan-lists.ts";
import { ownsUnknown, type QueryPlan } from "../../../mesh/ownership/plan-query.ts";
import { governingPlace, isOwned } from "../../../mesh/ownership/snapshot.ts";
import { addWait, createRecord, type Handler, type ResourceCall } from "../../call/call.ts";
import type { SentRequest } from "../../filter/sent-request.ts";
import { readAhead } from "../../http/body-sources.ts";
import type { ByteSource } from "../../http/byte-stream.ts";
import { CallAbort } from "../../http/call-signal.ts";
import type { ReplyHeaders } from "../../http/handler.ts";
import { type AskedList, askedInitialEvents, askedList, takesBookmarks } from "./collection-request.ts";
import { joinedList } from "./joined-list.ts";
import { checkedList, listAt, measureList, readViewNow } from "./proxy-list.ts";
import type { ServerSideFilterDeps } from "./server-side-filter.ts";

export interface ByNamespaceDeps extends ServerSideFilterDeps {
  readonly clock: Clock;
  /** Chooses between one list and lists by namespace. Default `planLists`. */
  readonly planLists?: typeof planLists | undefined;
}

export type ByNamespace = ReturnType<typeof createByNamespace>;

/** The body is a list; for a watch, an event for each object, and a bookmark if the client takes any. */
export interface NamespacesAnswer {
  readonly headers: ReplyHeaders;
  readonly body: ByteSource;
  readonly version: Version;
  readonly encoding: Encoding;
}

/** Until so many bytes are there, the one list can replace a failed answer. */
const AHEAD_BYTES = 1024 * 1024;
/** A protobuf list is held until its length is known. */
const MAX_HELD_BYTES = 4 * 1024 * 1024;

export function createByNamespace(deps: ByNamespaceDeps) {
  const { session, moves, metrics, features, plans, clock } = deps;
  const choiceOf = deps.planLists ?? planLists;
  const sizes = createListSizes(clock);

  /** The namespaces to ask for; undefined if the one list is the better way. */
  const choose = (collection: Collection, size: ListSize, maxAnswerBytes?: number): readonly string[] | undefined => {
    const view = readViewNow(session, collection)();
    if (view.ownsAll || view.labelFilter !== undefined || ownsUnknown(view)) return undefined;
    const { own, others } = view.namespaces();
    const choice = choiceOf({ namespaces: { own: own.length, foreign: others.length }, size, maxAnswerBytes });
    plans.chose(collection, { ...choice, ...size });
    return choice.way === "by-namespace" ? [...own].sort(byKey) : undefined;
  };

  const ask = async (call: AskingCall, asked: AskedList, collection: Collection, open: OpenList, next: Handler) => {
    const known = sizes.of(asked.key);
    if (known === undefined && asked.hasSelectors) return undefined;
    const [first] = (known && choose(collection, known)) ?? [];
    if (known !== undefined && first === undefined) return undefined;
    const measured = await measureList(call, next, measureFailed, first);
    const { encoding, headers } = measured;
    if (measured.version === undefined) throw listFailed("the version cannot be compared");
    const size = measured.size ?? known;
    if (size === undefined) return undefined;
    if (measured.size !== undefined) sizes.note(asked.key, size);
    const isHeld = call.info.verb === "list" && encoding === "protobuf";
    const namespaces = choose(collection, size, isHeld ? MAX_HELD_BYTES : undefined);
    if (namespaces === undefined || measured.version < asked.atLeast) return undefined;
    const version = asked.exact ?? measured.version;
    // Before anything is sent, as for each query that leaves out unknown namespaces.
    moves.of(collection).hideUnknown();
    const body = await readAhead(joined(call, collection, { namespaces, version, encoding, next }), AHEAD_BYTES);
    readViewNow(session, collection)();
    open.answered(version);
    return { headers, body, version, encoding, count: namespaces.length };
  };

  const joined = (call: AskingCall, collection: Collection, { namespaces, version, encoding, next }: JoinRequest): ByteSource => {
    const isWatch = call.info.verb === "watch";
    const view = readViewNow(session, collection);
    const served = metrics.servedBy("by-namespace");
    return joinedList({
      namespaces,
      joiner: isWatch
        ? createEventJoiner(encoding, version, { hasBookmark: takesBookmarks(call) })
        : createListJoiner(encoding, version, MAX_HELD_BYTES),
      ask: async (namespace) => checkedList(await listAt(version, namespace, call, next), listFailed, encoding).body,
      keepOf(namespace): Keep {
        const isIn = (meta: Parameters<Keep>[0]) => governingPlace(collection.group, collection.resource, meta) === namespace;
        return (meta) => isOwned(view(), meta) && isIn(meta);
      },
      onDone({ readBytes, writtenBytes, kept, dropped }, error) {
        if (isWatch) metrics.eventsOf(collection).forwarded.value += kept;
        served.read.inc(readBytes);
        served.sent.inc(writtenBytes);
        served.dropped.inc(dropped);
        metrics.filteredBytes.inc(Math.max(0, readBytes - writtenBytes));
        if (error === undefined) return;
        if (!call.signal.aborted && isLasting(error)) features.lacks(collection, "namespaces", "refused");
        // Requests that still wait for a connection end too.
        call.signal.abort(error);
      },
    });
  };

  const note = ({ record, info }: ResourceCall, own: number, foreign: number) => {
    record.asked = true;
    record.plan = "by-namespace";
    metrics.narrowed.inc({ plan: "by-namespace" });
    plans.record({ info }, { plan: "by-namespace", namespaces: { own, foreign }, notSent: [], status: 200 });
  };

  return {
    /** The answer to a list, or the beginning of a watch; undefined if the one list or watch has to be sent. */
    async answer(
      call: ResourceCall,
      collection: Collection,
      plan: QueryPlan,
      open: OpenList,
      next: Handler,
    ): Promise<NamespacesAnswer | undefined> {
      const isWatch = call.info.verb === "watch";
      if (!isReplaceable(plan)) return undefined;
      const asked = isWatch ? askedInitialEvents(call) : askedList(call);
      if (asked === undefined || features.lackOf(collection, "namespaces") !== undefined) return undefined;
      const startedMs = clock.monotonicMs();
      const asking = new CallAbort();
      onAbort(call.signal, () => asking.abort(call.signal.reason));
      // The record of the proxy's own requests, so that they note nothing in the call's.
      const record = createRecord(call.info, call.record, "narrowed");
      try {
        const answer = await ask({ ...call, signal: asking, record }, asked, collection, open, next);
        if (answer === undefined) return undefined;
        note(call, answer.count, plan.namespaces?.foreign ?? 0);
        if (!isWatch) return answer;
        return { ...answer, headers: { ...answer.headers, "content-type": watchContentType(answer.encoding) } };
      } catch (error) {
        asking.abort(error);
        if (call.signal.aborted) throw error;
        if (isLasting(error)) features.lacks(collection, "namespaces", "refused");
        plans.chose(collection, { way: "one-list", why: "failed" });
        return undefined;
      } finally {
        addWait(call.record, clock.monotonicMs() - startedMs);
      }
    },
    /** A function that takes the size of the one list; undefined if the API server leaves out objects. */
    learner(
      call: ResourceCall,
      { collection, serverFilter: { only, excluded, shards } }: SentRequest,
    ): ((size: ListSize) => void) | undefined {
      const asked = askedList(call);
      // With this version the API server ignores a limit.
      const isWhole = !call.info.query.has("limit") || call.info.query.get("resourceVersion") === "0";
      if (asked === undefined || !isWhole || only !== undefined || excluded.length > 0) return undefined;
      return (size) => {
        if (shards === undefined || features.lackOf(collection, "shards") === "ignored") sizes.note(asked.key, size);
      };
    },
  };
}

/** Statuses after which the next attempt may work. */
const PASSING = new Set([401, 410, 429, 500, 502, 503]);

// The caller may not list all namespaces, which says nothing of lists by namespace.
function measureFailed(what: string, status: number): MeshError {
  return status === 403 ? new MeshError("LIST_FAILED", what) : listFailed(what, status);
}

function listFailed(what: string, status = 200): MeshError {
  if (PASSING.has(status)) return new MeshError("LIST_FAILED", what);
  return new MeshError("LIST_BY_NAMESPACE_REFUSED", `listing by namespace: ${what}`);
}

/** True if the next attempt would fail too, so that the one list serves better for a while. */
function isLasting(error: unknown): boolean {
  return isMeshError(error, "LIST_BY_NAMESPACE_REFUSED") || isCodecError(error);
}

/** How long the size of a list is remembered. */
const SIZE_MS = 10 * 60_000;
/** Clients choose selectors freely. */
const MAX_SIZES = 1_000;

/** The last sizes of lists over all namespaces, so that small lists need not be measured. */
function createListSizes(clock: Pick<Clock, "monotonicMs">) {
  const sizes = new BoundedMap<string, { readonly size: ListSize; readonly atMs: number }>(MAX_SIZES);
  return {
    of(key: string): ListSize | undefined {
      const entry = sizes.get(key);
      return entry === undefined || clock.monotonicMs() - entry.atMs > SIZE_MS ? undefined : entry.size;
    },
    note(key: string, size: ListSize): void {
      sizes.set(key, { size, atMs: clock.monotonicMs() });
    },
  };
}

/** Its signal ends the proxy's own requests, and not the client's call. */
type AskingCall = ResourceCall & { readonly signal: CallAbort };

interface JoinRequest extends Pick<NamespacesAnswer, "version" | "encoding"> {
  readonly namespaces: readonly string[];
  readonly next: Handler;
}

/** False for plans by which the API server reads few objects of others: the one list is cheaper then. */
function isReplaceable({ scope, namespacePlan, labelSelector }: QueryPlan): boolean {
  return scope === "namespaced" && labelSelector === undefined && (namespacePlan === "none" || namespacePlan === "shards");
}

// As the API server orders objects: by key, where a slash follows the namespace.
function byKey(a: string, b: string): number {
  return `${a}/` < `${b}/` ? -1 : 1;
}
