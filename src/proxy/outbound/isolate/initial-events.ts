// Begins a watch with what there is, by lists by namespace, and lets it go on as any watch from the version
// of the lists. Invariants: the client is shown what a list at that version shows, and then everything that
// is later; what moves meanwhile is told as to a client that has listed and watches from there. Called by
// narrow.ts.
import type { Clock } from "../../../base/clock.ts";
import type { QueryPlan } from "../../../route/plan-query.ts";
import { createRecord, type Handler, isResourceCall, type ResourceCall } from "../../call/call.ts";
import { askReadableCollection } from "../../call/readable.ts";
import type { CollectionRequest } from "../../filter/sent-request.ts";
import { followedBy } from "../../http/followed-by.ts";
import type { Reply } from "../../http/handler.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import type { ByNamespace } from "./by-namespace.ts";
import { watchFrom } from "./catch-up.ts";
import { checked } from "./measure-list.ts";

export interface InitialEventsDeps {
  readonly byNamespace: ByNamespace;
  readonly moves: MoveLog;
  readonly clock: Clock;
  /** Serves the watch from the version on. */
  readonly goOn: (call: ResourceCall, request: CollectionRequest) => Promise<Reply>;
}

/** The answer to a watch; undefined if the one watch has to be sent. */
export async function beginByNamespace(
  asked: ResourceCall,
  { collection }: CollectionRequest,
  plan: QueryPlan,
  next: Handler,
  { byNamespace, moves, clock, goOn }: InitialEventsDeps,
): Promise<Reply | undefined> {
  const call = askReadableCollection(asked);
  if (!isResourceCall(call)) return undefined;
  const startedMs = clock.monotonicMs();
  const open = moves.of(collection).beginList();
  try {
    const events = await byNamespace.initialEvents(call, collection, plan, open, next);
    if (events === undefined) return undefined;
    const { headers, body, version, encoding } = events;
    const rest = async () => {
      // The record of the call belongs to its answer, which has begun.
      const record = { ...createRecord(call.info, call.record), decision: "narrowed" } as const;
      const watch = watchFrom(version, { ...call, record }, clock.monotonicMs() - startedMs);
      return checked(await goOn(watch, { collection, version }), encoding).body;
    };
    return { status: 200, headers, body: followedBy(body, rest) };
  } finally {
    open.end();
  }
}
