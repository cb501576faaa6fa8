// Encodes Statuses and watch frames in protobuf, with the field numbers of the generated.proto files.
import type { Status, StatusDetails } from "../../status.ts";
import { INITIAL_EVENTS_END, type ObjectType, type WatchEventType } from "../base/types.ts";
import { encodeEnvelope, envelopeAround, readEnvelope } from "./envelope.ts";
import { FRAME_PREFIX_BYTES, framePrefix } from "./frame.ts";
import { BYTES, bytesFieldLength, encodeBytes, encodeNumber, encodeString, encodeVarint, fieldsOf, writeHeader } from "./wire.ts";

const MESSAGE = 3; // of Status
const OBJECT_META = 1;
// Of ObjectMeta.
const RESOURCE_VERSION = 6;
const ANNOTATIONS = 12;

export function encodeStatus(status: Status): Uint8Array {
  return encodeEnvelope(status, encodeMessage(status));
}

export function encodeErrorFrame(status: Status): Uint8Array {
  return encodeFrame("ERROR", encodeStatus(status));
}

export function readStatusMessage(body: Uint8Array): string {
  for (const field of fieldsOf(readEnvelope(body).raw)) {
    if (field.number === MESSAGE && field.wireType === BYTES) return field.value().toString("utf8");
  }
  return "";
}

export function encodeBookmark(type: ObjectType, resourceVersion: string, isInitialEnd: boolean): Uint8Array {
  const annotation = Buffer.concat([encodeString(1, INITIAL_EVENTS_END), encodeString(2, "true")]);
  const annotations = isInitialEnd ? encodeBytes(ANNOTATIONS, annotation) : Buffer.alloc(0);
  const metadata = Buffer.concat([encodeString(RESOURCE_VERSION, resourceVersion), annotations]);
  return encodeFrame("BOOKMARK", encodeEnvelope(type, encodeBytes(OBJECT_META, metadata)));
}

function encodeFrame(type: WatchEventType, object: Uint8Array): Uint8Array {
  const event = Buffer.concat([encodeString(1, type), encodeBytes(2, encodeBytes(1, object))]);
  return Buffer.concat([framePrefix(event.length), event]);
}

/** Encodes a frame around the message of an object; all objects have one type. */
export function createFrameEncoder(eventType: WatchEventType, itemType: () => ObjectType): (raw: Uint8Array) => Uint8Array {
  const start = encodeString(1, eventType);
  const { head, tail } = envelopeAround(itemType());
  return (raw) => {
    const objectLength = head.length + bytesFieldLength(raw.length) + tail.length;
    const extensionLength = bytesFieldLength(objectLength);
    const eventLength = start.length + bytesFieldLength(extensionLength);
    const frame = Buffer.allocUnsafe(FRAME_PREFIX_BYTES + eventLength);
    let at = frame.writeUInt32BE(eventLength);
    at += start.copy(frame, at);
    at = writeHeader(frame, at, 2, extensionLength);
    at = writeHeader(frame, at, 1, objectLength);
    at += head.copy(frame, at);
    at = writeHeader(frame, at, 2, raw.length);
    frame.set(raw, at);
    tail.copy(frame, at + raw.length);
    return frame;
  };
}

function encodeMessage({ status, message, reason, details, code }: Status): Buffer {
  return Buffer.concat([
    Buffer.from([1 * 8 + BYTES, ...encodeVarint(0)]), // metadata, empty
    encodeString(2, status),
    encodeString(MESSAGE, message),
    encodeString(4, reason),
    details === undefined ? Buffer.alloc(0) : encodeBytes(5, encodeDetails(details)),
    encodeNumber(6, code),
  ]);
}

function encodeDetails({ name, group, kind, causes = [], retryAfterSeconds, uid }: StatusDetails): Buffer {
  return Buffer.concat([
    encodeString(1, name),
    encodeString(2, group),
    encodeString(3, kind),
    ...causes.map((cause) =>
      encodeBytes(
        4,
        Buffer.concat([encodeString(1, cause.reason), encodeString(2, cause.message), encodeString(3, cause.field)]),
      ),
    ),
    encodeNumber(5, retryAfterSeconds),
    encodeString(6, uid),
  ]);
}
