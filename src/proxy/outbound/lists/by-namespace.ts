// Answers a list over all namespaces, or the beginning of a watch, by a list of each own namespace, all at
// one version, joined into one (docs/decisions/0021). Invariants: the answer is what the one list at that
// version shows of the subset's objects; what fails before the first byte leaves the one list to be sent, and
// what fails later breaks the connection.
import { onAbort } from "../../../base/abort.ts";
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import { MeshError } from "../../../base/errors.ts";
import type { Encoding, Keep } from "../../../kube/codec/codec.ts";
import { watchContentType } from "../../../kube/codec/content-negotiation.ts";
import type { Version } from "../../../kube/resource-version.ts";
import { type ListSize, planLists } from "../../../route/plan-lists.ts";
import { ownsUnknown, type QueryPlan } from "../../../route/plan-query.ts";
import { governingPlace, isOwned } from "../../../route/snapshot.ts";
import type { ServerFeatures } from "../../api-server/server-features.ts";
import { addWait, type Call, createRecord, type Handler, isResourceCall, type ResourceCall } from "../../call/call.ts";
import type { SentRequest } from "../../filter/sent-request.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import type { ByteSource } from "../../http/byte-stream.ts";
import { CallAbort } from "../../http/call-signal.ts";
import type { Reply, ReplyHeaders } from "../../http/handler.ts";
import { readAhead } from "../../http/read-ahead.ts";
import type { Collection } from "../../moves/collection.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import type { OpenList } from "../../moves/resource-log.ts";
import type { Session } from "../../session/session.ts";
import { askedList, eventsForm, type ListForm, listForm } from "./asked-list.ts";
import { joinedList } from "./joined-list.ts";
import type { PlanLog } from "./plan-log.ts";
import { checkedList, listAt, measureList } from "./proxy-list.ts";
import { readViewNow } from "./read-view.ts";

export interface ByNamespaceDeps {
  readonly session: Session;
  readonly moves: MoveLog;
  readonly metrics: StreamMetrics;
  readonly features: ServerFeatures;
  readonly plans: PlanLog;
  readonly clock: Clock;
  /** Default `planLists`. */
  readonly planLists?: typeof planLists | undefined;
}

export interface ByNamespace {
  /** The answer; undefined if the one list has to be sent. */
  list(call: Call, collection: Collection, plan: QueryPlan, list: OpenList, next: Handler): Promise<Reply | undefined>;
  /** What a watch begins with; undefined if the one watch has to be sent. */
  initialEvents(
    call: Call,
    collection: Collection,
    plan: QueryPlan,
    list: OpenList,
    next: Handler,
  ): Promise<InitialEvents | undefined>;
  /** A function that takes the size of the one list; undefined if the API server leaves something out. */
  learner(call: Call, sent: SentRequest): ((size: ListSize) => void) | undefined;
}

/** An event for each object at the version, and the bookmark that ends them if the client takes bookmarks. */
export interface InitialEvents extends Pick<Answer, "version" | "encoding" | "body"> {
  /** Of the watch. */
  readonly headers: ReplyHeaders;
}

/** Until so much is there, a failure is repaired by the one list. */
const AHEAD_BYTES = 1024 * 1024;

export function createByNamespace(deps: ByNamespaceDeps): ByNamespace {
  const { session, moves, metrics, features, plans, clock } = deps;
  const choiceOf = deps.planLists ?? planLists;
  const sizes = createListSizes(clock);

  /** The namespaces to ask for; undefined if they are not all that the subset may own. */
  const namespacesNow = (collection: Collection) => {
    const view = readViewNow(session, collection)();
    if (view.ownsAll || view.labelFilter !== undefined || ownsUnknown(view)) return undefined;
    const { own, others } = view.namespaces();
    return { own: [...own].sort(byKey), foreign: others.length };
  };

  /** The namespaces to ask for; undefined if the one list is the better way. */
  const choose = (collection: Collection, size: ListSize, maxAnswerBytes?: number) => {
    const namespaces = namespacesNow(collection);
    if (namespaces === undefined) return undefined;
    const counts = { own: namespaces.own.length, foreign: namespaces.foreign };
    const choice = choiceOf({ namespaces: counts, size, maxAnswerBytes });
    plans.chose(collection, { ...choice, ...size });
    return choice.way === "by-namespace" ? namespaces.own : undefined;
  };

  const ask = async (
    call: AskingCall,
    form: ListForm,
    collection: Collection,
    open: OpenList,
    next: Handler,
  ): Promise<Answer | undefined> => {
    const { asked } = form;
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
    const namespaces = choose(collection, size, form.maxBytesOf(encoding));
    if (namespaces === undefined || measured.version < asked.atLeast) return undefined;
    const version = asked.exact ?? measured.version;
    // Before anything is sent, as for each query that leaves out what is not known yet.
    moves.of(collection).hideUnknown();
    const body = await readAhead(joined(call, collection, { namespaces, version, encoding, form, next }), AHEAD_BYTES);
    readViewNow(session, collection)();
    open.answered(version);
    return { headers, body, version, encoding, namespaces };
  };

  const joined = (
    call: AskingCall,
    collection: Collection,
    { namespaces, version, encoding, form, next }: JoinRequest,
  ): ByteSource => {
    const view = readViewNow(session, collection);
    const served = metrics.servedBy("by-namespace");
    return joinedList({
      namespaces,
      joiner: form.createJoiner(encoding, version),
      ask: async (namespace) => checkedList(await listAt(version, namespace, call, next), listFailed, encoding).body,
      keepOf(namespace): Keep {
        const isIn = (meta: Parameters<Keep>[0]) => governingPlace(collection.group, collection.resource, meta) === namespace;
        return (meta) => isOwned(view(), meta) && isIn(meta);
      },
      onDone({ readBytes, writtenBytes, kept, dropped }, error) {
        if (form.isEvents) metrics.eventsOf(collection).forwarded.value += kept;
        served.read(readBytes);
        served.sent(writtenBytes);
        served.dropped(dropped);
        metrics.filteredBytes.inc(Math.max(0, readBytes - writtenBytes));
        if (error !== undefined && !call.signal.aborted && isLasting(error)) features.lacks(collection, "namespaces", "refused");
        // Requests that still wait for a connection end too.
        if (error !== undefined) call.signal.abort(error);
      },
    });
  };

  const answer = async (
    call: Call,
    formOf: typeof listForm,
    collection: Collection,
    plan: QueryPlan,
    open: OpenList,
    next: Handler,
  ) => {
    const form = isReplaceable(plan) && isResourceCall(call) ? formOf(call) : undefined;
    if (form === undefined || !isResourceCall(call) || features.lackOf(collection, "namespaces") !== undefined) return undefined;
    const startedMs = clock.monotonicMs();
    const asking = new CallAbort();
    onAbort(call.signal, () => asking.abort(call.signal.reason));
    // Their times and notes are not the call's.
    const record = { ...createRecord(call.info, call.record), decision: "narrowed" } as const;
    try {
      const answer = await ask({ ...call, signal: asking, record }, form, collection, open, next);
      if (answer !== undefined) note(call, collection, answer.namespaces.length, plan.namespaces?.foreign ?? 0);
      return answer;
    } catch (error) {
      asking.abort(error);
      if (call.signal.aborted) throw error;
      if (isLasting(error)) features.lacks(collection, "namespaces", "refused");
      plans.chose(collection, { way: "one-list", why: "failed" });
      return undefined;
    } finally {
      addWait(call.record, clock.monotonicMs() - startedMs);
    }
  };

  return {
    async list(call, collection, plan, open, next) {
      const joined = await answer(call, listForm, collection, plan, open, next);
      return joined && { status: 200, headers: joined.headers, body: joined.body };
    },
    async initialEvents(call, collection, plan, open, next) {
      const events = await answer(call, eventsForm, collection, plan, open, next);
      return events && { ...events, headers: { ...events.headers, "content-type": watchContentType(events.encoding) } };
    },
    learner(call, { collection, serverFilter: { only, excluded, shards } }) {
      const asked = isResourceCall(call) ? askedList(call) : undefined;
      // The API server takes no notice of a limit with this version.
      const isWhole = !call.info.query.has("limit") || call.info.query.get("resourceVersion") === "0";
      if (asked === undefined || !isWhole || only !== undefined || excluded.length > 0) return undefined;
      return (size) => {
        if (shards === undefined || features.lackOf(collection, "shards") === "ignored") sizes.note(asked.key, size);
      };
    },
  };

  function note({ record, info }: ResourceCall, { group, resource }: Collection, own: number, foreign: number): void {
    record.asked = true;
    record.plan = "by-namespace";
    metrics.narrowed.inc({ plan: "by-namespace" });
    const charsOf = (name: string) => (info.query.get(name) ?? "").length;
    const selectorChars = { label: charsOf("labelSelector"), field: charsOf("fieldSelector"), shard: 0 };
    const namespaces = { own, foreign };
    plans.record({ group, resource, verb: info.verb, plan: "by-namespace", selectorChars, namespaces, notSent: [], status: 200 });
  }
}

/** Statuses of answers that say nothing about whether the next attempt works. */
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
  return error instanceof MeshError && (error.code === "LIST_BY_NAMESPACE_REFUSED" || error.code.startsWith("CODEC_"));
}

/** How long the size of a list is remembered. */
const SIZE_MS = 10 * 60_000;
/** Clients choose selectors freely. */
const MAX_SIZES = 1_000;

/** How large lists over all namespaces were when they were last seen, so that small lists need no measuring. */
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

interface Answer {
  readonly headers: ReplyHeaders;
  readonly body: ByteSource;
  readonly version: Version;
  readonly encoding: Encoding;
  readonly namespaces: readonly string[];
}

/** Its signal ends what the proxy asks for, and not the client's call. */
type AskingCall = ResourceCall & { readonly signal: CallAbort };

interface JoinRequest {
  readonly namespaces: readonly string[];
  readonly version: Version;
  readonly encoding: Encoding;
  readonly form: ListForm;
  readonly next: Handler;
}

/** The other plans are cheaper, since the API server looks at no or few objects of others. */
function isReplaceable({ scope, namespacePlan, labelSelector }: QueryPlan): boolean {
  return scope === "namespaced" && labelSelector === undefined && (namespacePlan === "none" || namespacePlan === "shards");
}

// As the API server orders objects: by key, where a slash follows the namespace.
function byKey(a: string, b: string): number {
  return `${a}/` < `${b}/` ? -1 : 1;
}
