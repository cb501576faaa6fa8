// Protobuf watch events: a 4-byte big-endian length, then metav1.WatchEvent {1: type, 2: RawExtension {1:
// raw}} without an envelope of its own; raw is an enveloped object. Source: k8s.io/apimachinery's framer and
// streaming serializer, and client-go's watch decoder.
import { ByteWindow } from "../base/byte-window.ts";
import { asBuffer } from "../base/bytes.ts";
import { codecError, type FrameSplitter, isWatchEventType, type ReadOptions, type WatchFrame } from "../base/types.ts";
import { readEnvelope } from "./envelope.ts";
import { readProtobufMeta } from "./object.ts";
import { BYTES, FieldCursor } from "./wire.ts";

/** Size of the length before each message, in bytes. */
export const FRAME_PREFIX_BYTES = 4;

export function readFrame(frame: Uint8Array, options: ReadOptions): WatchFrame {
  const event = eventOf(frame);
  const type = onlyField(event, 1)?.toString("latin1");
  if (!isWatchEventType(type)) throw malformed("the event type is unknown");
  const extension = onlyField(event, 2);
  const body = extension === undefined ? undefined : onlyField(extension, 1);
  if (body === undefined) throw malformed("the event has no object");
  if (type === "ERROR") return { type, objects: [], unreadable: 0, isTable: false };
  const envelope = readEnvelope(body);
  // A Table has no ObjectMeta and no protobuf form. If one comes, it cannot be filtered.
  const meta = envelope.type.kind === "Table" ? undefined : readProtobufMeta(envelope.raw, options);
  return { type, objects: meta === undefined ? [] : [meta], unreadable: meta === undefined ? 1 : 0, isTable: false };
}

export function framePrefix(length: number): Buffer {
  const prefix = Buffer.alloc(FRAME_PREFIX_BYTES);
  prefix.writeUInt32BE(length);
  return prefix;
}

/** The WatchEvent message of a frame. Throws `CODEC_MALFORMED` if the length is wrong. */
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
    if (fields.wireType !== BYTES || found !== undefined) throw malformed(`field ${number} occurs twice or has another type`);
    found = fields.value();
  }
  if (fields.incomplete) throw malformed("the event ends inside a field");
  return found;
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading a protobuf watch event: ${what}`);
}

/** Splits a stream by the length before each message. */
export function createFrameSplitter(maxFrameBytes: number): FrameSplitter {
  return new ProtobufFrameSplitter(maxFrameBytes);
}

class ProtobufFrameSplitter implements FrameSplitter {
  readonly #maxFrameBytes: number;
  readonly #window = new ByteWindow();
  #start = 0;

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  get atBoundary(): boolean {
    return this.#start === this.#window.end;
  }

  get heldBytes(): number {
    return this.#window.heldBytes;
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
    // An idle watch may last for hours and should not keep its last chunk.
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
