// The filter for protobuf lists: `k8s\0`, then runtime.Unknown, whose field 2 is the list message {1: ListMeta, 2: items}.
// Invariants: a message that does not say it is a list is refused before a byte is emitted; only whole fields 1 and 2 of the
// list pass; what is held is bounded by one item and by the writer's bound, whatever the size of the list.
import { ByteWindow } from "./byte-window.ts";
import { type EnvelopeType, isStatusType, ProtobufObjectReader, readEnvelopeType } from "./protobuf-object.ts";
import { ProtobufRawWriter } from "./protobuf-raw-writer.ts";
import { BYTES, ENVELOPE_PREFIX, encodeBytes, FieldCursor, fieldsOf } from "./protobuf-wire.ts";
import { type ByteFilter, codecError, DEFAULT_MAX_BYTES, type Emit, type Keep, type Rewrite } from "./types.ts";

const LIST_META = 1;
const ITEMS = 2;
const REMAINING_ITEM_COUNT = 4;
const MAX_HELD_BYTES = 4 * 1024 * 1024;
const MAX_ENVELOPE_FIELD_BYTES = 4 * 1024;

// prefix => envelope    behind k8s\0
// envelope => list      at field 2 of an envelope whose kind is a list
// envelope => opaque    at field 2 of a Status, which passes as it is
// list => skip => list  over a field that does not pass and need not be held
// list, opaque => tail  at the end of field 2; then only small fields may follow
type State = "prefix" | "envelope" | "list" | "skip" | "opaque" | "tail";

export interface ProtobufListFilterOptions {
  readonly maxItemBytes?: number | undefined;
  readonly maxHeldBytes?: number | undefined;
  readonly rewrite?: Rewrite | undefined;
}

export class ProtobufListFilter implements ByteFilter {
  dropped = 0;
  kept = 0;
  readonly #keep: Keep;
  readonly #maxItemBytes: number;
  readonly #rewrite: Rewrite | undefined;
  readonly #window = new ByteWindow();
  readonly #field = new FieldCursor();
  readonly #reader = new ProtobufObjectReader();
  readonly #writer: ProtobufRawWriter;
  #state: State = "prefix";
  #type: EnvelopeType | undefined;
  /** [mark, position) is kept and not yet written. */
  #mark = 0;
  #position = 0;
  /** Bytes of field 2 of the envelope behind `position`. */
  #rawLeft = 0;
  #skipLeft = 0;

  constructor(keep: Keep, options: ProtobufListFilterOptions = {}) {
    this.#keep = keep;
    this.#maxItemBytes = options.maxItemBytes ?? DEFAULT_MAX_BYTES;
    this.#rewrite = options.rewrite;
    this.#writer = new ProtobufRawWriter(options.maxHeldBytes ?? MAX_HELD_BYTES);
  }

  push(chunk: Uint8Array, emit: Emit): void {
    if (chunk.length === 0) return;
    const shift = this.#window.append(chunk, this.#position);
    this.#position -= shift;
    this.#mark = this.#position;
    while (this.#step(emit)) {}
    this.#writeKept(this.#position, emit);
  }

  end(_emit: Emit): void {
    if (this.#state !== "tail" || this.#position !== this.#window.end)
      throw codecError("CODEC_TRUNCATED", "filtering a protobuf list: the body ends inside the message");
  }

  // One transition. False if it needs more bytes.
  #step(emit: Emit): boolean {
    switch (this.#state) {
      case "prefix":
        return this.#readPrefix();
      case "envelope":
        return this.#readEnvelopeField();
      case "list":
        return this.#rawLeft === 0 ? this.#closeRaw(emit) : this.#readListField(emit);
      case "skip":
        return this.#skipOn();
      case "opaque":
        return this.#rawLeft === 0 ? this.#closeRaw(emit) : this.#passOn();
      case "tail":
        return this.#readTailField(emit);
      default:
        return this.#state satisfies never;
    }
  }

  #readPrefix(): boolean {
    if (this.#window.end - this.#position < ENVELOPE_PREFIX.length) return false;
    const prefix = this.#window.bytes.subarray(this.#position, this.#position + ENVELOPE_PREFIX.length);
    if (!prefix.equals(ENVELOPE_PREFIX)) throw malformed("no k8s prefix");
    this.#writer.header(prefix);
    this.#advance(prefix.length);
    this.#state = "envelope";
    return true;
  }

  #readEnvelopeField(): boolean {
    const field = this.#field.reset(this.#window.bytes, this.#position, this.#window.end);
    const whole = field.next();
    if (!whole && field.valueEnd === 0) return false;
    if (field.number === 2 && field.wireType === BYTES) return this.#openRaw(field);
    if (!this.#isWholeText(field, whole)) return false;
    if (field.number === 1) {
      if (this.#type !== undefined) throw malformed("two types in one envelope");
      this.#type = readEnvelopeType(field.value());
    }
    this.#writer.header(this.#window.bytes.subarray(field.fieldStart, field.valueEnd));
    this.#advance(field.valueEnd - field.fieldStart);
    return true;
  }

  #openRaw(field: FieldCursor): true {
    if (this.#type === undefined) throw malformed("an envelope without a type");
    const { kind } = this.#type;
    const status = isStatusType(this.#type);
    // The generic List of RawExtensions is no list of objects that could be told apart here.
    if (!status && (!kind.endsWith("List") || kind === "List")) {
      throw codecError("CODEC_NOT_A_LIST", `filtering a protobuf list: the kind is ${JSON.stringify(kind)}`);
    }
    this.#rawLeft = field.valueEnd - field.valueStart;
    this.#advance(field.valueStart - field.fieldStart);
    this.#state = status ? "opaque" : "list";
    return true;
  }

  #readListField(emit: Emit): boolean {
    const rawEnd = this.#position + this.#rawLeft;
    const field = this.#field.reset(this.#window.bytes, this.#position, Math.min(this.#window.end, rawEnd));
    const whole = field.next();
    if (field.valueEnd > rawEnd || (!whole && field.end === rawEnd)) throw malformed("a field leaves its message");
    if (!whole && field.valueEnd === 0) return false;
    const size = field.valueEnd - field.fieldStart;
    if (field.number !== LIST_META && field.number !== ITEMS) return this.#dropField(size, emit);
    if (size > this.#maxItemBytes)
      throw codecError("CODEC_TOO_LARGE", `filtering a protobuf list: a field over ${this.#maxItemBytes} bytes`);
    if (!whole) return false;
    if (field.wireType !== BYTES) throw malformed(`field ${field.number} of a list has wire type ${field.wireType}`);
    if (field.number === LIST_META) this.#readListMeta(field, size, emit);
    else this.#readItem(field, size, emit);
    return true;
  }

  #readItem(field: FieldCursor, size: number, emit: Emit): void {
    const reader = this.#reader;
    reader.read(field.bytes, field.valueStart, field.valueEnd);
    const meta = { namespace: reader.namespace, name: reader.name };
    if (reader.readable && this.#keep(meta)) {
      this.kept++;
      const item = field.value();
      this.#write(ITEMS, size, this.#rewrite?.(item, meta, "item") ?? item, item, emit);
    } else {
      this.dropped++;
      this.#dropField(size, emit);
      this.#takeSkipped(size);
    }
  }

  // Whether something will be dropped is not known yet, so the count always goes.
  #readListMeta(field: FieldCursor, size: number, emit: Emit): void {
    const meta = field.value();
    this.#write(LIST_META, size, withoutRemainingItemCount(meta), meta, emit);
  }

  // Passes the field of this size with another value; the same value passes with its own bytes.
  #write(number: number, size: number, value: Uint8Array, before: Uint8Array, emit: Emit): void {
    if (value === before) {
      this.#position += size;
      this.#rawLeft -= size;
      return;
    }
    this.#writeKept(this.#position, emit);
    const written = encodeBytes(number, value);
    const saved = size - written.length;
    // The length of the whole may have been promised, and no filler has one byte.
    if (saved < 0 || saved === 1)
      throw codecError("CODEC_TOO_LARGE", "filtering a protobuf list: a rewritten field does not fit");
    this.#writer.keep(written, this.#rawLeft - written.length, emit);
    if (saved > 0) this.#writer.drop(saved, emit);
    this.#takeSkipped(size);
  }

  // Leaves out a field whose bytes may not all be there yet.
  #dropField(size: number, emit: Emit): true {
    this.#writeKept(this.#position, emit);
    this.#writer.drop(size, emit);
    this.#skipLeft = size;
    this.#state = "skip";
    return true;
  }

  #takeSkipped(size: number): void {
    this.#advance(size);
    this.#rawLeft -= size;
    this.#skipLeft = 0;
    this.#state = "list";
  }

  #skipOn(): boolean {
    const part = Math.min(this.#skipLeft, this.#window.end - this.#position);
    this.#advance(part);
    this.#rawLeft -= part;
    this.#skipLeft -= part;
    if (this.#skipLeft > 0) return false;
    this.#state = "list";
    return true;
  }

  #passOn(): boolean {
    const part = Math.min(this.#rawLeft, this.#window.end - this.#position);
    this.#position += part;
    this.#rawLeft -= part;
    return this.#rawLeft === 0;
  }

  #closeRaw(emit: Emit): true {
    this.#writeKept(this.#position, emit);
    this.#writer.close(emit);
    this.#state = "tail";
    return true;
  }

  #readTailField(emit: Emit): boolean {
    const field = this.#field.reset(this.#window.bytes, this.#position, this.#window.end);
    const whole = field.next();
    if (!whole && field.valueEnd === 0) return false;
    if (field.number <= 2) throw malformed("two objects in one envelope");
    if (!this.#isWholeText(field, whole)) return false;
    emit(this.#window.bytes.subarray(field.fieldStart, field.valueEnd));
    this.#advance(field.valueEnd - field.fieldStart);
    return true;
  }

  // Fields 1, 3 and 4 of the envelope are short texts. Anything else there could be an object in another place.
  #isWholeText(field: FieldCursor, whole: boolean): boolean {
    if (field.wireType !== BYTES || field.number > 4) throw malformed("an unknown field in the envelope");
    if (field.valueEnd - field.fieldStart > MAX_ENVELOPE_FIELD_BYTES) {
      throw codecError("CODEC_TOO_LARGE", `filtering a protobuf list: an envelope field over ${MAX_ENVELOPE_FIELD_BYTES} bytes`);
    }
    // contentEncoding: the list would have to be unpacked first.
    if (field.number === 3 && field.valueEnd !== field.valueStart) throw malformed("an encoded object in the envelope");
    return whole;
  }

  // Goes on without writing what was passed.
  #advance(size: number): void {
    this.#position += size;
    this.#mark = this.#position;
  }

  #writeKept(upTo: number, emit: Emit): void {
    if (upTo > this.#mark) this.#writer.keep(this.#window.bytes.subarray(this.#mark, upTo), this.#rawLeft, emit);
    this.#mark = upTo;
  }
}

// The ListMeta without the count; the same if it has none.
function withoutRemainingItemCount(meta: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (const field of fieldsOf(meta)) {
    if (field.number !== REMAINING_ITEM_COUNT) parts.push(meta.subarray(field.fieldStart, field.valueEnd));
  }
  const rest = Buffer.concat(parts);
  return rest.length === meta.length ? meta : rest;
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `filtering a protobuf list: ${what}`);
}
