// Asks the API server, as the caller, for what a watch needs to go on with other namespaces: what each gained or lost namespace held at one
// version, and the watch from that version on. Invariant: the answers hold exactly what a list of the caller would at that version; any
// other answer is an error. Made by narrow.ts for each watch, called by filter/renewing-watch.ts.
import { MeshError } from "../../../base/errors.ts";
import { listEvents } from "../../../kube/codec/list-events.ts";
import type { Encoding, ItemMeta } from "../../../kube/codec/types.ts";
import { decide } from "../../../route/decide.ts";
import { joinSelectors, type Planner, type QueryPlan } from "../../../route/plan-query.ts";
import { governingNamespace, isNamespaces, isOwned, readViewOf } from "../../../route/snapshot.ts";
import {
  type Call,
  createRecord,
  type Handler,
  inNamespace,
  isResourceCall,
  type ResourceCall,
  withQuery,
} from "../../call/call.ts";
import { readableEncoding } from "../../call/readable.ts";
import type { Renew } from "../../filter/renewing-watch.ts";
import type { CollectionRequest, SentRequest } from "../../filter/sent-request.ts";
import { asSource, discardBody, readBody } from "../../http/byte-stream.ts";
import type { CallSignal } from "../../http/call-signal.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow, type Session } from "../../session/session.ts";

export interface RenewalDeps {
  readonly session: Session;
  readonly planner: Planner;
  readonly monotonicMs: () => number;
  /** Sends the watch with the plan's server-side filter. */
  readonly watch: (
    call: Call,
    request: CollectionRequest,
    queryPlan: QueryPlan,
  ) => Promise<{ readonly reply: Reply; readonly sent: SentRequest }>;
  readonly list: Handler;
  /** Limits how many ask at a time: the lists are in memory until they are sent. */
  readonly turns: Turns;
}

/** Bound of the lists for one watch together, in bytes. The client itself lists what is larger, in pages. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;

/** @param queryPlan by which the watch was begun */
export function createRenewal(
  asked: Call,
  { collection }: CollectionRequest,
  queryPlan: QueryPlan,
  encoding: Encoding,
  deps: RenewalDeps,
): Renew {
  const startedMs = deps.monotonicMs();
  const { group, resource } = collection;
  return (version, { gained, lost }, signal) =>
    deps.turns.run(signal, async () => {
      // The caller's own record belongs to a request that was answered long ago.
      const call: Call = { ...asked, signal, record: { ...createRecord(asked.info), decision: "narrowed" } };
      if (!isResourceCall(call)) throw refused("it is no watch");
      if (asked.record.tellsListsApart && gained.length > 0) throw refused("its client has to list new objects");
      if (queryPlan.scope !== "namespaced" && !isNamespaces(call.info))
        throw refused("its resource is not known to live in namespaces");
      const frames: Uint8Array[] = [];
      let room = MAX_LISTED_BYTES;
      const tell = async (type: "ADDED" | "DELETED", namespace: string) => {
        const body = await readBody(await listAt(version, namespace, call, encoding, deps.list), room);
        room -= body.length;
        const view = readViewOf(enforcedNow(deps.session).view(group, resource));
        const isIn = (meta: ItemMeta) => governingNamespace(group, resource, meta) === namespace;
        const keep = (meta: ItemMeta) => isIn(meta) && (type === "DELETED" || isOwned(view, meta));
        for (const frame of listEvents(encoding, type, body, version, keep)) frames.push(frame);
      };
      // The client knows the lost objects: up to the version they were the subset's.
      for (const namespace of lost) await tell("DELETED", namespace);
      for (const namespace of gained) await tell("ADDED", namespace);
      const passedMs = deps.monotonicMs() - startedMs;
      const request = { collection, continues: false, version };
      const { reply, sent } = await deps.watch(watchFrom(version, call, passedMs), request, planNow(call, deps));
      return { frames, source: asSource(checked(reply, encoding)), request: sent };
    });
}

async function listAt(version: bigint, namespace: string, call: ResourceCall, encoding: Encoding, list: Handler) {
  const query = new URLSearchParams({ resourceVersion: String(version), resourceVersionMatch: "Exact" });
  for (const name of ["labelSelector", "fieldSelector", "shardSelector"]) {
    const own = call.info.query.get(name);
    if (own !== null) query.set(name, own);
  }
  const headers = { ...call.headers, accept: listAccept(call.headers.accept ?? "") };
  if (!isNamespaces(call.info)) return checked(await list({ ...inNamespace(call, namespace, query), headers }), encoding);
  query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), `metadata.name=${namespace}`));
  return checked(await list({ ...withQuery(call, query), headers }), encoding);
}

// A watch of metadata alone is asked for as PartialObjectMetadata, a list as PartialObjectMetadataList.
function listAccept(accept: string): string {
  return accept.replaceAll(/;\s*as=PartialObjectMetadata(?=\s*(?:[;,]|$))/g, ";as=PartialObjectMetadataList");
}

function watchFrom(version: bigint, call: ResourceCall, passedMs: number): Call {
  const query = new URLSearchParams(call.info.query);
  query.set("resourceVersion", String(version));
  query.delete("sendInitialEvents");
  query.delete("resourceVersionMatch");
  const timeout = Number(query.get("timeoutSeconds") ?? 0);
  if (timeout > 0) query.set("timeoutSeconds", String(Math.max(1, Math.floor(timeout - passedMs / 1000))));
  return withQuery(call, query);
}

function planNow(call: ResourceCall, { session, planner }: RenewalDeps): QueryPlan {
  const { group, resource } = call.info;
  const scope = isNamespaces(call.info) ? "unknown" : "namespaced";
  const decision = decide(enforcedNow(session).view(group, resource), call.info, scope, planner);
  if (decision.kind !== "narrow") throw refused(`it is decided otherwise now: ${decision.kind}`);
  return decision.queryPlan;
}

function checked(reply: Reply, encoding: Encoding): NonNullable<Reply["body"]> {
  if (reply.status === 200 && reply.body !== null && readableEncoding(reply) === encoding) return reply.body;
  discardBody(reply.body);
  throw refused(`status ${reply.status}, content type ${String(reply.headers["content-type"] ?? "none")}`);
}

function refused(why: string): MeshError {
  return new MeshError("NOT_RENEWED", `renewing a watch: ${why}`);
}

/** Limits how many tasks run at a time, first come, first served: each task holds much memory. */
export interface Turns {
  /** Runs the work when it is its turn. @throws MeshError `ABORTED` if the signal fires before that, or what the work throws */
  run<T>(signal: CallSignal, work: () => Promise<T>): Promise<T>;
}

export function createTurns(atATime: number): Turns {
  const waiting = new Set<() => void>();
  let running = 0;
  const turn = (signal: CallSignal) =>
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
      if (signal.aborted) gone();
      else if (running < atATime) go();
      else {
        signal.addEventListener("abort", gone, { once: true });
        waiting.add(go);
      }
    });
  return {
    async run(signal, work) {
      await turn(signal);
      try {
        return await work();
      } finally {
        running--;
        const [next] = waiting;
        next?.();
      }
    },
  };
}
