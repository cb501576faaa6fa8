// Asks the API server, as the caller, for what a watch needs to go on although namespaces have moved: what
// each of them held at one version, and the watch from that version on. Invariant: the answers hold exactly
// what a list of the caller would at that version; any other answer is an error. Called by serve-watch.ts for
// a watch that continues, and by filter/renewing-watch.ts for a live one.
import type { Clock } from "../../../base/clock.ts";
import { MeshError } from "../../../base/errors.ts";
import { type Encoding, type ItemMeta, readListMeta } from "../../../kube/codec/codec.ts";
import { bookmarkFrame, type ListEvent, listEvents } from "../../../kube/codec/list-events.ts";
import { isBucket } from "../../../kube/place.ts";
import { isTrue } from "../../../kube/request-info.ts";
import { NEVER, type Version } from "../../../kube/resource-version.ts";
import { decide } from "../../../route/decide.ts";
import {
  excludedNamespaces,
  isHiddenBy,
  mayHideUnknown,
  NO_PLAN,
  type Planner,
  type QueryPlan,
  type ResourceScope,
} from "../../../route/plan-query.ts";
import { governingPlace, isOwned, readViewOf } from "../../../route/snapshot.ts";
import { type Call, createRecord, type Handler, isResourceCall, type ResourceCall, withQuery } from "../../call/call.ts";
import { askReadableCollection, readableEncoding } from "../../call/readable.ts";
import type { Renew } from "../../filter/renewing-watch.ts";
import type { CollectionRequest, SentRequest } from "../../filter/sent-request.ts";
import { asSource, discardBody, readBody } from "../../http/byte-stream.ts";
import type { CallSignal } from "../../http/call-signal.ts";
import type { Reply } from "../../http/handler.ts";
import type { Collection } from "../../moves/collection.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import { MAX_MOVED } from "../../moves/moves-between.ts";
import type { Due, OpenList, ResourceLog } from "../../moves/resource-log.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import { listAt, listOne } from "./list-at.ts";

interface ListDeps {
  readonly moves: MoveLog;
  readonly list: Handler;
}

export interface CatchUpDeps extends ListDeps {
  readonly session: Session;
  readonly planner: Planner;
  readonly clock: Clock;
  /** Sends the watch with the plan's server-side filter. */
  readonly watch: (
    call: Call,
    request: CollectionRequest,
    queryPlan: QueryPlan,
  ) => Promise<{ readonly reply: Reply; readonly sent: SentRequest }>;
  /** Limits how many ask at a time: the lists are in memory until they are sent. */
  readonly turns: Turns;
}

/** The plan of a watch that passes whole: the subset owns all that it can show. */
export const WHOLE: QueryPlan = { ...NO_PLAN };

/** Bound of the lists for one watch together, in bytes. The client itself lists what is larger, in pages. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;

/** For one watch. */
const LISTS_AT_A_TIME = 4;

/**
 * What it returns rejects with a MeshError or a StatusError if the client has to list.
 * @param scope of the resource, as far as it is known
 */
export function createCatchUp(asked: Call, { collection }: CollectionRequest, scope: ResourceScope, deps: CatchUpDeps): Renew {
  const { session, clock, turns } = deps;
  const startedMs = clock.monotonicMs();
  const { group, resource } = collection;
  return (known, signal, rank = 0) =>
    turns.run(signal, rank, async () => {
      // The caller's own record belongs to a request that was answered long ago.
      const call: Call = { ...asked, signal, record: { ...createRecord(asked.info, asked.record), decision: "narrowed" } };
      if (!isResourceCall(call)) throw refused("it is no watch");
      await learnVersion(call, collection, deps);
      const { version } = known;
      const log = deps.moves.of(collection);
      const told = log.position;
      const plan = planNow(call, scope, deps);
      if (plan === undefined) throw refused("it is decided otherwise now");
      // The lists come first: a namespace that is born meanwhile is hidden by a watch with this plan.
      if (mayHideUnknown(plan)) log.hideUnknown();
      const due = log.since(collection, known);
      const names = namesToTell(due, plan);
      // Whose last events come with this watch, they may be hidden from the next one.
      const isOwed = due.kind === "moved" && due.departed.some((name) => !names.includes(name));
      const departed = isOwed ? (known.departed ?? known) : { version: NEVER, told };
      const view = readViewOf(enforcedNow(session).view(group, resource));
      const isGained = (name: string) => view.ownershipOf(name) === "own";
      if (asked.record.tellsListsApart && names.some(isGained)) throw refused("its client has to list new objects");
      const events: ListEvent[] = [];
      let bookmark: Uint8Array | undefined;
      let room = MAX_LISTED_BYTES;
      let encoding: Encoding | undefined;
      const tell = async (places: readonly [string, ...string[]]) => {
        const reply = checked(await listAt(version, places[0], call, deps.list), encoding);
        encoding = reply.encoding;
        const body = await readBody(reply.body, Math.max(0, room));
        room -= body.length;
        if (room < 0) throw refused("its namespaces hold too much");
        for (const type of ["ADDED", "DELETED"] as const) {
          const told = places.filter((place) => isGained(place) === (type === "ADDED"));
          const isIn = (meta: ItemMeta) => told.includes(governingPlace(group, resource, meta));
          const keep = (meta: ItemMeta) => isIn(meta) && (type === "DELETED" || isOwned(view, meta));
          if (told.length === 0) continue;
          const listed = listEvents(encoding, type, body, version, keep);
          events.push(...listed.events);
          if (takesBookmarks(call)) bookmark = bookmarkFrame(encoding, listed.type, version);
        }
      };
      // All buckets are in one list.
      const [bucket, ...buckets] = names.filter(isBucket);
      const lists = names.flatMap((name) => (isBucket(name) ? [] : [[name] as const]));
      if (bucket !== undefined) await tell([bucket, ...buckets]);
      for (let at = 0; at < lists.length; at += LISTS_AT_A_TIME)
        await Promise.all(lists.slice(at, at + LISTS_AT_A_TIME).map(tell));
      // A client that remembers the last version remembers the highest.
      events.sort((a, b) => (a.version < b.version ? -1 : 1));
      const passedMs = clock.monotonicMs() - startedMs;
      const { reply, sent } = await deps.watch(watchFrom(version, call, passedMs), { collection, version }, plan);
      const answer = checked(reply, encoding);
      return {
        names,
        events,
        bookmark,
        source: asSource(answer.body),
        request: { ...sent, told, departed },
        reply,
      };
    });
}

export function takesBookmarks({ info }: ResourceCall): boolean {
  return isTrue(info.query.get("allowWatchBookmarks"));
}

// The last events of a departed namespace come with the watch, unless the API server is asked to leave them
// out.
function namesToTell(due: Due, plan: QueryPlan): readonly string[] {
  if (due.kind === "nothing") return [];
  if (due.kind === "expired") throw refused("too much has moved");
  const hidden = due.departed.filter((name) => isHiddenBy({ ...plan, excluded: excludedNamespaces(plan) }, name));
  if (due.moved.length + hidden.length > MAX_MOVED) throw refused("too much has moved");
  return [...due.moved, ...hidden];
}

/**
 * Asks for the API server's version of the resource if the move log needs it.
 * @throws MeshError, StatusError
 */
export async function learnVersion(asked: Call, collection: Collection, { moves, list }: ListDeps): Promise<void> {
  const learn = moves.of(collection).learn;
  if (learn === undefined) return;
  const call = askReadableCollection(asked);
  if (!isResourceCall(call)) return;
  const { body, encoding } = checked(await listOne(call, list));
  const { version } = readListMeta(encoding, await readBody(body, MAX_LISTED_BYTES));
  if (version === undefined) throw refused("the version of its resource cannot be compared");
  learn(version);
}

/** Answers a list, which is under way for the move log until its version is known or its answer is over. */
export async function listed(log: ResourceLog, answer: (list: OpenList) => Promise<Reply>): Promise<Reply> {
  const list = log.beginList();
  try {
    const reply = await answer(list);
    if (reply.status !== 200 || reply.body === null) list.end();
    return reply;
  } catch (error) {
    list.end();
    throw error;
  }
}

/** The watch from the version on, with the rest of its time. */
export function watchFrom(version: Version, call: ResourceCall, passedMs: number): ResourceCall {
  const query = new URLSearchParams(call.info.query);
  query.set("resourceVersion", String(version));
  query.delete("sendInitialEvents");
  query.delete("resourceVersionMatch");
  const timeout = Number(query.get("timeoutSeconds") ?? 0);
  if (timeout > 0) query.set("timeoutSeconds", String(Math.max(1, Math.floor(timeout - passedMs / 1000))));
  const watch = withQuery(call, query);
  if (!isResourceCall(watch)) throw refused("it is no watch");
  return watch;
}

/** Undefined if the list or watch can be neither narrowed nor sent as it is now. */
export function planNow(
  call: ResourceCall,
  scope: ResourceScope,
  { session, planner }: Pick<CatchUpDeps, "session" | "planner">,
): QueryPlan | undefined {
  const { group, resource } = call.info;
  const decision = decide(enforcedNow(session).view(group, resource), call.info, scope, planner);
  if (decision.kind === "allow") return WHOLE;
  return decision.kind === "narrow" ? decision.queryPlan : undefined;
}

function checked(reply: Reply, expected?: Encoding): { readonly body: NonNullable<Reply["body"]>; readonly encoding: Encoding } {
  const encoding = readableEncoding(reply);
  const isExpected = expected === undefined || encoding === expected;
  if (reply.status === 200 && reply.body !== null && encoding !== undefined && isExpected) return { body: reply.body, encoding };
  discardBody(reply.body);
  const what = `status ${reply.status}, content type ${String(reply.headers["content-type"] ?? "none")}`;
  if (reply.status === 200 || reply.status === 410) throw refused(what);
  throw new MeshError("RENEWAL_FAILED", `renewing a watch: ${what}`);
}

function refused(why: string): MeshError {
  return new MeshError("NOT_RENEWED", `renewing a watch: ${why}`);
}

/** Limits how many tasks run at a time, the lowest rank first: each task holds much memory. */
export interface Turns {
  /**
   * Runs the work when it is its turn.
   * @throws MeshError `ABORTED` if the signal fires before that, or what the work throws
   */
  run<T>(signal: CallSignal, rank: number, work: () => Promise<T>): Promise<T>;
}

export function createTurns(atATime: number): Turns {
  const waiting = new Map<() => void, number>();
  let running = 0;
  const turn = (signal: CallSignal, rank: number) =>
    new Promise<void>((resolve, reject) => {
      const gone = () => {
        waiting.delete(go);
        reject(new MeshError("ABORTED", "waiting for a turn: aborted", { cause: signal.reason }));
      };
      const go = () => {
        waiting.delete(go);
        signal.removeEventListener("abort", gone);
        running++;
        resolve();
      };
      if (signal.aborted) return gone();
      signal.addEventListener("abort", gone, { once: true });
      waiting.set(go, rank);
      // Later, when all watches that show the same move wait.
      queueMicrotask(next);
    });
  const next = () => {
    const [first] = [...waiting].sort(([, a], [, b]) => a - b);
    if (running < atATime) first?.[0]();
  };
  return {
    async run(signal, rank, work) {
      await turn(signal, rank);
      try {
        return await work();
      } finally {
        running--;
        next();
      }
    },
  };
}
