// Lets the operator's Events about its lock and its own pod pass in the pods' namespace, whichever subset owns
// that (src/route/own-events.ts). A patch does not name the subject, and operators may seldom read Events. So
// the names of the Events that have passed are remembered, and only those may be patched.
import { BoundedMap } from "../../../base/bounded-map.ts";
import { tryParseJson } from "../../../base/json.ts";
import { encodingOf } from "../../../kube/codec/content-negotiation.ts";
import { readEvent } from "../../../kube/codec/event-reader.ts";
import { MERGE_PATCH_TYPE, mediaTypeOf, STRATEGIC_MERGE_PATCH_TYPE } from "../../../kube/media-types.ts";
import { type EventWrite, eventWriteOf, isOwnSubject, leavesSubject } from "../../../route/own-events.ts";
import type { Snapshot } from "../../../route/snapshot.ts";
import type { Handler, ResourceCall } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import type { CallWithBytes } from "./object-labels.ts";

/** A recorder patches the Events of its last minutes. */
const MAX_NAMES = 256;

export interface OwnEvents {
  /** The write, if it may be of an own Event in a namespace that the subset does not own. */
  writeOf(call: ResourceCall): EventWrite | undefined;
  /** Sends an own Event. Otherwise returns undefined, and the owner of the namespace decides. */
  send(call: CallWithBytes, write: EventWrite, next: Handler): Promise<Reply | undefined>;
}

export function createOwnEvents(session: Pick<Session, "current">, podName: string): OwnEvents {
  const passed = new BoundedMap<string, true>(MAX_NAMES);
  const sendCreated = async (call: CallWithBytes, write: EventWrite, snapshot: Snapshot, next: Handler) => {
    const event = eventIn(call, write);
    if (event === undefined || !isOwnSubject(snapshot, podName, event.subject)) return undefined;
    const reply = await next(call);
    if (reply.status === 201 && event.name !== "") passed.set(event.name, true);
    return reply;
  };
  return {
    writeOf({ info }) {
      if (info.resource !== "events") return undefined;
      const { snapshot, view } = enforcedNow(session);
      const write = eventWriteOf(snapshot, info);
      if (write === undefined) return undefined;
      const { labelFilter, ownershipOf } = view(info.group, info.resource);
      return ownershipOf(info.namespace) === "own" && labelFilter === undefined ? undefined : write;
    },
    async send(call, write, next) {
      if (write.verb === "create") return sendCreated(call, write, enforcedNow(session).snapshot, next);
      return passed.has(call.info.name) && patchesOnlyRest(call) ? next(call) : undefined;
    },
  };
}

function eventIn({ headers, body }: CallWithBytes, { field }: EventWrite) {
  const type = mediaTypeOf(headers["content-type"]);
  const encoding = type === "" ? "json" : encodingOf(type); // the API server takes a missing type for JSON
  return encoding === "json" || encoding === "protobuf" ? readEvent(encoding, field, body) : undefined;
}

function patchesOnlyRest({ headers, body }: CallWithBytes): boolean {
  const type = mediaTypeOf(headers["content-type"]);
  if (type !== MERGE_PATCH_TYPE && type !== STRATEGIC_MERGE_PATCH_TYPE) return false;
  return leavesSubject(tryParseJson(body));
}
