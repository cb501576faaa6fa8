// Asks the API server, as the caller, for what a watch needs after namespaces have moved: the objects of each
// at one version, and the watch from that version on. Invariant: the answers hold exactly what a list of the
// caller would show at that version; any other answer is an error.
import type { Clock } from "../../../base/clock.ts";
import type { Encoding, ItemMeta } from "../../../kube/codec/codec.ts";
import { bookmarkFrame, type ListEvent, listEvents } from "../../../kube/codec/list-events.ts";
import { isBucket } from "../../../kube/place.ts";
import { NEVER, type Version } from "../../../kube/resource-version.ts";
import type { Collection, Due } from "../../../mesh/moves/known.ts";
import type { MoveLog } from "../../../mesh/moves/move-log.ts";
import { MAX_MOVED } from "../../../mesh/moves/moves-between.ts";
import { hidingCluster } from "../../../mesh/ownership/hidden-objects.ts";
import { excludedNamespaces, isHiddenBy, mayHideUnknown, type QueryPlan } from "../../../mesh/ownership/plan-query.ts";
import { governingPlace, isOwned, type ResourceView, readViewOf } from "../../../mesh/ownership/snapshot.ts";
import { createRecord, type Handler, type ResourceCall, withQuery } from "../../call/call.ts";
import { notRenewed, renewalFailed } from "../../filter/renewal.ts";
import type { Renew } from "../../filter/renewing-watch.ts";
import type { CollectionRequest } from "../../filter/sent-request.ts";
import { readBody } from "../../http/byte-stream.ts";
import { type CallSignal, unlessAborted } from "../../http/call-signal.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import { takesBookmarks } from "../lists/collection-request.ts";
import { checkedList, learnVersion, listAt } from "../lists/proxy-list.ts";
import type { Sent } from "../lists/server-side-filter.ts";

export interface CatchUpDeps {
  readonly session: Session;
  readonly moves: MoveLog;
  readonly clock: Clock;
  readonly list: Handler;
  /** The plan by the routes in force; undefined if the watch can be neither narrowed nor sent as it is. */
  readonly planNow: (call: ResourceCall) => QueryPlan | undefined;
  /** Sends the watch with the plan's server-side filter. */
  readonly send: (call: ResourceCall, request: CollectionRequest, plan: QueryPlan) => Promise<Sent>;
  readonly turns: ReturnType<typeof createTurns>;
}

/** Bound of all lists for one watch together. The client itself lists more, in pages. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;
const LISTS_AT_A_TIME = 4;

/** The returned function rejects with a MeshError or a StatusError if the client has to list. */
export function createCatchUp(asked: ResourceCall, collection: Collection, deps: CatchUpDeps): Renew {
  const { session, moves, clock, turns } = deps;
  const startedMs = clock.monotonicMs();
  return (known, signal, rank = 0) =>
    turns.run(signal, rank, async () => {
      // A record of its own: the request of the caller's record was answered long ago.
      const call = { ...asked, signal, record: createRecord(asked.info, asked.record, "narrowed") };
      const { version } = known;
      const log = moves.of(collection);
      await learnVersion(call, log, deps.list);
      const told = log.position;
      const plan = deps.planNow(call);
      if (plan === undefined) throw notRenewed("the routes changed: the request needs another plan");
      // The lists come first: a namespace that is born meanwhile is hidden by a watch with this plan.
      if (mayHideUnknown(plan)) log.hideUnknown();
      const due = log.since(collection, known);
      const names = namesToTell(due, plan);
      // This watch delivers the last events of departed namespaces. The next one may hide them.
      const isOwed = due.kind === "moved" && due.departed.some((name) => !names.includes(name));
      const departed = isOwed ? (known.departed ?? known) : { version: NEVER, told };
      const view = readViewOf(enforcedNow(session).view(collection.group, collection.resource));
      if (asked.record.tellsListsApart && names.some((name) => view.ownershipOf(name) === "own"))
        throw notRenewed("its client has to list new objects");
      const { events, bookmark, encoding } = await listMoved(names, version, call, view, deps);
      const watch = watchFrom(version, call, clock.monotonicMs() - startedMs);
      const { reply, sent } = await deps.send(watch, { collection, version }, plan);
      const source = checkedList(reply, renewalFailed, encoding).body;
      return { names, events, bookmark, source, request: { ...sent, told, departed }, reply };
    });
}

interface MovedObjects {
  /** The objects of the moved namespaces, in the order of their versions. */
  readonly events: readonly ListEvent[];
  readonly bookmark: Uint8Array | undefined;
  /** The encoding of the lists; undefined if there was none. */
  readonly encoding: Encoding | undefined;
}

/** Lists the namespaces at the version: their objects are ADDED if the view owns them, otherwise DELETED. */
async function listMoved(
  names: readonly string[],
  version: Version,
  call: ResourceCall,
  view: ResourceView,
  { list }: CatchUpDeps,
): Promise<MovedObjects> {
  const { group, resource } = view;
  const isGained = (name: string) => view.ownershipOf(name) === "own";
  const events: ListEvent[] = [];
  let bookmark: Uint8Array | undefined;
  let room = MAX_LISTED_BYTES;
  let encoding: Encoding | undefined;
  const listPlaces = async (places: readonly [string, ...string[]]) => {
    const reply = checkedList(await listAt(version, places[0], call, list), renewalFailed, encoding);
    encoding = reply.encoding;
    const body = await readBody(reply.body, Math.max(0, room));
    room -= body.length;
    if (room < 0) throw notRenewed("the moved objects exceed 4 MiB");
    for (const type of ["ADDED", "DELETED"] as const) {
      const moved = places.filter((place) => isGained(place) === (type === "ADDED"));
      if (moved.length === 0) continue;
      const isIn = (meta: ItemMeta) => moved.includes(governingPlace(group, resource, meta));
      // Of a hidden object the client was never told: after a change of what is hidden, it has to list.
      const isTold = (meta: ItemMeta) =>
        type === "ADDED" ? isOwned(view, meta) : hidingCluster(view.hidden, meta) === undefined;
      const keep = (meta: ItemMeta) => isIn(meta) && isTold(meta);
      const found = listEvents(encoding, type, body, version, keep);
      events.push(...found.events);
      if (takesBookmarks(call)) bookmark = bookmarkFrame(encoding, found.type, version);
    }
  };
  // All buckets are in one list.
  const [bucket, ...buckets] = names.filter(isBucket);
  const lists = names.flatMap((name) => (isBucket(name) ? [] : [[name] as const]));
  if (bucket !== undefined) await listPlaces([bucket, ...buckets]);
  for (let at = 0; at < lists.length; at += LISTS_AT_A_TIME)
    await Promise.all(lists.slice(at, at + LISTS_AT_A_TIME).map(listPlaces));
  // In this order a client that remembers the last version remembers the highest.
  events.sort((a, b) => (a.version < b.version ? -1 : 1));
  return { events, bookmark, encoding };
}

// The last events of a departed namespace come with the watch, unless the query leaves them out.
function namesToTell(due: Due, plan: QueryPlan): readonly string[] {
  if (due.kind === "nothing") return [];
  if (due.kind === "expired") throw notRenewed("too much has moved");
  const hidden = due.departed.filter((name) => isHiddenBy({ ...plan, excluded: excludedNamespaces(plan) }, name));
  if (due.moved.length + hidden.length > MAX_MOVED) throw notRenewed("too much has moved");
  return [...due.moved, ...hidden];
}

export function watchFrom(version: Version, call: ResourceCall, passedMs: number): ResourceCall {
  const query = new URLSearchParams(call.info.query);
  query.set("resourceVersion", String(version));
  query.delete("sendInitialEvents");
  query.delete("resourceVersionMatch");
  const timeout = Number(query.get("timeoutSeconds") ?? 0);
  if (timeout > 0) query.set("timeoutSeconds", String(Math.max(1, Math.floor(timeout - passedMs / 1000))));
  return withQuery(call, query);
}

/** Limits how many tasks run at a time. Of the tasks that wait, the one with the lowest rank runs first. */
export function createTurns(atATime: number) {
  const waiting = new Map<() => void, number>();
  let running = 0;
  const next = () => {
    const [first] = [...waiting].sort(([, a], [, b]) => a - b);
    if (running < atATime) first?.[0]();
  };
  return {
    /** @throws MeshError `ABORTED` if the signal fires before the task's turn, or what the task throws */
    async run<T>(signal: CallSignal, rank: number, task: () => Promise<T>): Promise<T> {
      await unlessAborted(signal, "waiting for a turn", (done) => {
        const start = () => {
          running++;
          done();
        };
        waiting.set(start, rank);
        queueMicrotask(next); // later, when all watches that show the same move wait
        return () => waiting.delete(start);
      });
      try {
        return await task();
      } finally {
        running--;
        next();
      }
    },
  };
}
