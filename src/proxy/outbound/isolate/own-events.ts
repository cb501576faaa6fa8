// Lets the operator's Events about its lock and its own pod pass in the pods' namespace, whichever subset owns
// that (src/mesh/ownership/own-events.ts). A patch does not name the subject, and few operators have the right to read
// Events. So the names of the Events that have passed are remembered, and only those may be patched.
import { BoundedMap } from "../../../base/bounded-map.ts";
import { tryParseJson } from "../../../base/json.ts";
import { requestEncodingOf } from "../../../kube/codec/content-negotiation.ts";
import { readEvent } from "../../../kube/codec/event-reader.ts";
import { MERGE_PATCH_TYPE, mediaTypeOf, STRATEGIC_MERGE_PATCH_TYPE } from "../../../kube/media-types.ts";
import { StatusError } from "../../../kube/status.ts";
import { isFrozen } from "../../../mesh/ownership/decide.ts";
import { type EventWrite, eventWriteOf, isOwnSubject, leavesSubject } from "../../../mesh/ownership/own-events.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { type Handler, noteDecision, type ResourceCall } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import type { CallWithBytes } from "./object-labels.ts";

/** A recorder patches the Events of its last minutes. */
const MAX_NAMES = 256;

export function createOwnEvents(session: Pick<Session, "current">, podName: string) {
  const passed = new BoundedMap<string, true>(MAX_NAMES);
  const sendCreate = async (call: CallWithBytes, write: EventWrite, snapshot: Snapshot, next: Handler) => {
    const event = eventIn(call, write);
    if (event === undefined || !isOwnSubject(snapshot, podName, event.subject)) return undefined;
    const reply = await next(call);
    // A dry run leaves the name to others.
    if (reply.status === 201 && event.name !== "" && !call.info.query.has("dryRun")) passed.set(event.name, true);
    return reply;
  };
  return {
    /**
     * A create of an Event in the pods' namespace, also one that passes anyway: a freeze may come before its patch. Or a patch of one,
     * unless this subset owns all Events there and may write them. Else undefined.
     */
    writeOf({ info }: ResourceCall): EventWrite | undefined {
      if (info.resource !== "events") return undefined;
      const { snapshot, view } = enforcedNow(session);
      const write = eventWriteOf(snapshot, info);
      if (write === undefined || write.verb === "create") return write;
      const ofEvents = view(info.group, info.resource);
      const ownsAllEvents = ofEvents.ownershipOf(info.namespace) === "own" && ofEvents.labelFilter === undefined;
      return ownsAllEvents && !isFrozen(ofEvents, info.namespace) ? undefined : write;
    },
    /**
     * Sends the write if its Event is about the operator itself. Else returns undefined: the owner of the namespace decides.
     * @throws StatusError NotFound for the patch of an Event that is not remembered
     */
    async send(call: CallWithBytes, write: EventWrite, next: Handler): Promise<Reply | undefined> {
      const { snapshot, view } = enforcedNow(session);
      if (write.verb === "create") return sendCreate(call, write, snapshot, next);
      if (!patchLeavesSubject(call)) return undefined;
      if (passed.has(call.info.name)) return next(call);
      const { group, resource, namespace, name } = call.info;
      if (snapshot.guard === "Warn" || view(group, resource).ownershipOf(namespace) !== "other-subset") return undefined;
      noteDecision(call.record, "refused", "other-subset");
      // A recorder answers a 404 with a create, whose subject decides. After a 403 it would drop the Event.
      const message = `ctrlmesh: Event "${name}" is in another subset's namespace, and this proxy has let no create of it pass`;
      throw new StatusError("NotFound", message, { kind: "events", name });
    },
  };
}

function eventIn({ headers, body }: CallWithBytes, { field }: EventWrite) {
  const encoding = requestEncodingOf(headers["content-type"]);
  return encoding === "json" || encoding === "protobuf" ? readEvent(encoding, field, body) : undefined;
}

function patchLeavesSubject({ headers, body }: CallWithBytes): boolean {
  const type = mediaTypeOf(headers["content-type"]);
  if (type !== MERGE_PATCH_TYPE && type !== STRATEGIC_MERGE_PATCH_TYPE) return false;
  return leavesSubject(tryParseJson(body));
}
