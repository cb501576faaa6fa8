// Reports the versions of lists to the move log. Invariant: a list is under way for the log from its request
// until its version is known or its answer is over, since what moves meanwhile may be missing in it.
import { type Call, type Handler, isResourceCall } from "../../call/call.ts";
import { askReadableCollection } from "../../call/readable.ts";
import { notRenewed, renewalFailed } from "../../filter/renewal-error.ts";
import type { Reply } from "../../http/handler.ts";
import type { Collection } from "../../moves/collection.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import type { OpenList, ResourceLog } from "../../moves/resource-log.ts";
import { measureList } from "./proxy-list.ts";

export interface LearnDeps {
  readonly moves: MoveLog;
  readonly list: Handler;
}

/**
 * Asks for the API server's version of the resource if the move log needs it.
 * @throws MeshError, StatusError
 */
export async function learnVersion(asked: Call, collection: Collection, { moves, list }: LearnDeps): Promise<void> {
  const learn = moves.of(collection).learn;
  if (learn === undefined) return;
  const call = askReadableCollection(asked);
  if (!isResourceCall(call)) return;
  const { version } = await measureList(call, list, renewalFailed);
  if (version === undefined) throw notRenewed("the version of its resource cannot be compared");
  learn(version);
}

/** Answers a list that is under way for the move log. */
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
