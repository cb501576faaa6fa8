// Protobuf watch events: a 4-byte big-endian length, then metav1.WatchEvent {1: type, 2: RawExtension {1: raw}} without an
// envelope of its own; raw is an enveloped object. Read in k8s.io/apimachinery's framer and streaming serializer and
// client-go's watch decoder. Used through watch-frames.ts.
import { ByteWindow } from "./byte-window.ts";
import { readEnvelope, readObjectMeta } from "./protobuf-object.ts";
import { BYTES, encodeBytes, encodeString, FieldCursor } from "./protobuf-wire.ts";
import { asBuffer, codecError, type ReadOptions } from "./types.ts";
import { isWatchEventType, type WatchEventType, type WatchFrame } from "./watch-event.ts";
import type { FrameSplitter } from "./watch-frames.ts";

/** Bytes of the length before each message. */
export const FRAME_PREFIX_BYTES = 4;

export class ProtobufFrameSplitter implements FrameSplitter {
  readonly #maxFrameBytes: number;
  readonly #window = new ByteWindow();
  #start = 0;

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  get atBoundary(): boolean {
    return this.#start === this.#window.end;
  }

  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void {
    this.#window.append(chunk);
    for (;;) {
      const shift = this.#window.extend(this.#start);
      if (shift === undefined) break;
      this.#start -= shift;
      this.#takeFrames(onFrame);
    }
    if (!this.atBoundary) return;
    // An idle watch may last for hours: it should not keep its last chunk.
    this.#window.clear();
    this.#start = 0;
  }

  #takeFrames(onFrame: (frame: Uint8Array) => void): void {
    for (;;) {
      const size = this.#frameSize();
      if (size === undefined || this.#window.end - this.#start < size) return;
      const frame = this.#window.bytes.subarray(this.#start, this.#start + size);
      this.#start += size;
      onFrame(frame);
    }
  }

  #frameSize(): number | undefined {
    const { bytes, end } = this.#window;
    if (end - this.#start < FRAME_PREFIX_BYTES) return undefined;
    const size = FRAME_PREFIX_BYTES + bytes.readUInt32BE(this.#start);
    if (size <= this.#maxFrameBytes) return size;
    throw codecError("CODEC_TOO_LARGE", `splitting a protobuf watch: an event over ${this.#maxFrameBytes} bytes`);
  }
}

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
  const meta = envelope.type.kind === "Table" ? undefined : readObjectMeta(envelope.raw, options);
  return { type, objects: meta === undefined ? [] : [meta], unreadable: meta === undefined ? 1 : 0, isTable: false };
}

/** A whole frame with an enveloped object. */
export function encodeProtobufFrame(type: WatchEventType, object: Uint8Array): Uint8Array {
  const event = Buffer.concat([encodeString(1, type), encodeBytes(2, encodeBytes(1, object))]);
  const length = Buffer.alloc(FRAME_PREFIX_BYTES);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
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
