// Protobuf watch events: a 4-byte big-endian length, then metav1.WatchEvent {1: type, 2: RawExtension {1: raw}} without an
// envelope of its own; raw is an enveloped object. Read in k8s.io/apimachinery's framer and streaming serializer and
// client-go's watch decoder. Used through watch-frames.ts.
import { readEnvelope } from "./protobuf-envelope.ts";
import { readProtobufMeta } from "./protobuf-object.ts";
import { BYTES, encodeBytes, encodeString, FieldCursor } from "./protobuf-wire.ts";
import { asBuffer, codecError, type ReadOptions } from "./types.ts";
import { isWatchEventType, type WatchEventType, type WatchFrame } from "./watch-event.ts";

/** Bytes of the length before each message. */
export const FRAME_PREFIX_BYTES = 4;

/** Reads the WatchFrame of a protobuf event. Throws `CODEC_MALFORMED`. */
export function readProtobufFrame(frame: Uint8Array, options: ReadOptions): WatchFrame {
  const event = eventOf(frame);
  const type = onlyField(event, 1)?.toString("latin1");
  if (!isWatchEventType(type)) throw malformed("an unknown event type");
  const extension = onlyField(event, 2);
  const body = extension === undefined ? undefined : onlyField(extension, 1);
  if (body === undefined) throw malformed("no object in the event");
  if (type === "ERROR") return { type, objects: [], unreadable: 0, isTable: false };
  const envelope = readEnvelope(body);
  // A Table has no ObjectMeta; it has no protobuf form either, so one that comes is nothing that can be filtered.
  const meta = envelope.type.kind === "Table" ? undefined : readProtobufMeta(envelope.raw, options);
  return { type, objects: meta === undefined ? [] : [meta], unreadable: meta === undefined ? 1 : 0, isTable: false };
}

/** A whole frame with an enveloped object. */
export function encodeProtobufFrame(type: WatchEventType, object: Uint8Array): Uint8Array {
  const event = Buffer.concat([encodeString(1, type), encodeBytes(2, encodeBytes(1, object))]);
  return Buffer.concat([framePrefix(event.length), event]);
}

/** The prefix of an event with this length. */
export function framePrefix(length: number): Buffer {
  const prefix = Buffer.alloc(FRAME_PREFIX_BYTES);
  prefix.writeUInt32BE(length);
  return prefix;
}

/** The WatchEvent message of a frame. Throws `CODEC_MALFORMED` if the length does not fit. */
export function eventOf(frame: Uint8Array): Buffer {
  const bytes = asBuffer(frame);
  if (bytes.length < FRAME_PREFIX_BYTES || bytes.readUInt32BE(0) !== bytes.length - FRAME_PREFIX_BYTES)
    throw malformed("its length is wrong");
  return bytes.subarray(FRAME_PREFIX_BYTES);
}

function onlyField(message: Buffer, number: number): Buffer | undefined {
  const fields = new FieldCursor().reset(message, 0, message.length);
  let found: Buffer | undefined;
  while (fields.next()) {
    if (fields.number !== number) continue;
    if (fields.wireType !== BYTES || found !== undefined) throw malformed(`field ${number} twice or of another type`);
    found = fields.value();
  }
  if (fields.incomplete) throw malformed("it ends inside a field");
  return found;
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading a protobuf watch event: ${what}`);
}
