// The filter for protobuf lists: `k8s\0`, then runtime.Unknown with the list message {1: ListMeta, 2: items}
// as field 2. Invariants: it emits no byte of a message that is not a list; it holds at most one item and
// maxHeldBytes, however long the list is.
import type { Version } from "../../resource-version.ts";
import { ElementFilter, FailOnceFilter, type ListFilterOptions } from "../base/element-filter.ts";
import {
  type ByteFilter,
  codecError,
  DEFAULT_MAX_BYTES,
  type Emit,
  isListType,
  isStatusType,
  type Keep,
  type ListFilter,
  type ObjectType,
} from "../base/types.ts";
import { readEnvelopeType } from "./envelope.ts";
import { fieldsOfListMeta, LIST_META, REMAINING_ITEM_COUNT, SHARD_INFO, withoutFields } from "./list-meta.ts";
import { ProtobufListOutput } from "./list-output.ts";
import { ProtobufObjectReader } from "./object.ts";
import { BYTES, ENVELOPE_PREFIX, FieldCursor } from "./wire.ts";

const ITEMS = 2;
const DEFAULT_MAX_HELD_BYTES = 4 * 1024 * 1024;
const MAX_ENVELOPE_FIELD_BYTES = 4 * 1024;

// prefix => envelope    after k8s\0
// envelope => list      at field 2 of an envelope with a list kind
// envelope => opaque    at field 2 of a Status, which passes unchanged
// list, opaque => tail  at the end of field 2; only small fields may follow
type State = "prefix" | "envelope" | "list" | "opaque" | "tail";

export function createListFilter(keep: Keep, options: ListFilterOptions): ListFilter {
  const elements = new ElementFilter(keep, options);
  return new FailOnceFilter(elements, new ProtobufListFilter(elements, options));
}

class ProtobufListFilter implements ByteFilter {
  readonly #options: ListFilterOptions;
  readonly #maxItemBytes: number;
  readonly #elements: ElementFilter;
  readonly #output: ProtobufListOutput;
  readonly #reader: ProtobufObjectReader;
  readonly #field = new FieldCursor();
  #state: State = "prefix";
  #type: ObjectType | undefined;
  #hasVersion = false;

  constructor(elements: ElementFilter, options: ListFilterOptions) {
    this.#options = options;
    this.#maxItemBytes = options.maxItemBytes ?? DEFAULT_MAX_BYTES;
    this.#elements = elements;
    this.#output = new ProtobufListOutput(options.maxHeldBytes ?? DEFAULT_MAX_HELD_BYTES);
    this.#reader = new ProtobufObjectReader(options);
  }

  get heldBytes(): number {
    return this.#output.heldBytes;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    this.#output.append(chunk);
    while (this.#output.extend()) {
      while (this.#step(emit)) {}
      this.#output.flush(emit);
    }
  }

  end(): void {
    if (this.#state !== "tail" || this.#output.position !== this.#output.end)
      throw codecError("CODEC_TRUNCATED", "filtering a protobuf list: the body ends inside the message");
  }

  // Makes one transition. False if it needs more bytes.
  #step(emit: Emit): boolean {
    const { position, end, rawLeft } = this.#output;
    if (position > end) return false;
    switch (this.#state) {
      case "prefix":
        return this.#readPrefix();
      case "envelope":
        return this.#readEnvelopeField();
      case "list":
        return rawLeft === 0 ? this.#closeRaw(emit) : this.#readListField(emit);
      case "opaque":
        return rawLeft === 0 ? this.#closeRaw(emit) : this.#passOn();
      case "tail":
        return this.#readTailField(emit);
      default:
        return this.#state satisfies never;
    }
  }

  #readPrefix(): boolean {
    const { bytes, position, end } = this.#output;
    const prefixEnd = position + ENVELOPE_PREFIX.length;
    if (end < prefixEnd) return false;
    if (!bytes.subarray(position, prefixEnd).equals(ENVELOPE_PREFIX)) throw malformed("the k8s prefix is missing");
    this.#output.holdHeader(ENVELOPE_PREFIX.length);
    this.#state = "envelope";
    return true;
  }

  #readEnvelopeField(): boolean {
    const field = this.#nextField();
    if (field === undefined) return false;
    if (field.number === 2 && field.wireType === BYTES) return this.#openRaw(field);
    if (!checkEnvelopeText(field)) return false;
    if (field.number === 1) {
      if (this.#type !== undefined) throw malformed("the envelope has two types");
      this.#type = readEnvelopeType(field.value());
      this.#options.onType?.(this.#type);
    }
    this.#output.holdHeader(field.valueEnd - field.fieldStart);
    return true;
  }

  #openRaw({ fieldStart, valueStart, valueEnd }: FieldCursor): true {
    if (this.#type === undefined) throw malformed("the envelope has no type");
    const status = isStatusType(this.#type);
    if (!status && !isListType(this.#type))
      throw codecError("CODEC_NOT_A_LIST", `filtering a protobuf list: the kind is ${JSON.stringify(this.#type.kind)}`);
    this.#output.rawLeft = valueEnd - valueStart;
    this.#output.advance(valueStart - fieldStart);
    this.#state = status ? "opaque" : "list";
    return true;
  }

  // Only fields 1 and 2 of a list message are kept, when they have arrived as a whole.
  #readListField(emit: Emit): boolean {
    const { bytes, position, end, rawLeft } = this.#output;
    const rawEnd = position + rawLeft;
    const field = this.#field.reset(bytes, position, Math.min(end, rawEnd));
    const whole = field.next();
    if (field.valueEnd > rawEnd || (!whole && field.end === rawEnd)) throw malformed("a field is longer than its message");
    if (!whole && field.valueEnd === 0) return false;
    const size = field.valueEnd - field.fieldStart;
    if (field.number !== LIST_META && field.number !== ITEMS) {
      this.#output.leaveOut(size, emit);
      return true;
    }
    if (size > this.#maxItemBytes)
      throw codecError("CODEC_TOO_LARGE", `filtering a protobuf list: a field is over ${this.#maxItemBytes} bytes`);
    if (!whole) return false;
    if (field.wireType !== BYTES) throw malformed(`field ${field.number} of a list has wire type ${field.wireType}`);
    if (field.number === ITEMS) this.#readItem(field, size, emit);
    else this.#readListMeta(field.value(), size, emit);
    return true;
  }

  #readItem({ bytes, valueStart, valueEnd }: FieldCursor, size: number, emit: Emit): void {
    this.#reader.read(bytes, valueStart, valueEnd);
    const { meta } = this.#reader;
    if (!this.#elements.admit(meta)) {
      this.#output.leaveOut(size, emit);
      return;
    }
    const written = this.#elements.rewritten(bytes, valueStart, valueEnd, meta, "item");
    if (written === undefined) this.#output.keep(size);
    else this.#output.replace(ITEMS, size, written, emit);
  }

  // It is unknown whether items will be dropped, so the count is always left out.
  #readListMeta(meta: Buffer, size: number, emit: Emit): void {
    const leftOut = new Set<number>();
    if (!this.#elements.keepsAll) leftOut.add(REMAINING_ITEM_COUNT);
    if (this.#options.cutShardInfo) leftOut.add(SHARD_INFO);
    const rest = leftOut.size === 0 ? meta : withoutFields(meta, leftOut);
    if (rest.length === meta.length) this.#output.keep(size);
    else this.#output.replace(LIST_META, size, rest, emit);
    if (this.#options.onVersion !== undefined) this.#reportVersion(fieldsOfListMeta(meta).version);
  }

  #reportVersion(version: Version | undefined): void {
    if (this.#hasVersion) return;
    this.#hasVersion = true;
    this.#options.onVersion?.(version);
  }

  #passOn(): boolean {
    const { position, end, rawLeft } = this.#output;
    this.#output.keep(Math.min(rawLeft, end - position));
    return this.#output.rawLeft === 0;
  }

  #closeRaw(emit: Emit): true {
    if (this.#state === "list") this.#reportVersion(undefined);
    this.#output.close(emit);
    this.#state = "tail";
    return true;
  }

  #readTailField(emit: Emit): boolean {
    const field = this.#nextField();
    if (field === undefined) return false;
    if (field.number <= 2) throw malformed("the envelope has two objects");
    if (!checkEnvelopeText(field)) return false;
    emit(field.bytes.subarray(field.fieldStart, field.valueEnd));
    this.#output.advance(field.valueEnd - field.fieldStart);
    return true;
  }

  // The field at the position; undefined until its length is known.
  #nextField(): FieldCursor | undefined {
    const { bytes, position, end } = this.#output;
    const field = this.#field.reset(bytes, position, end);
    return field.next() || field.valueEnd > 0 ? field : undefined;
  }
}

// Checks a field 1, 3 or 4 of the envelope, which are short texts. Any other field could be a second object.
// False if a part of the field has not arrived.
function checkEnvelopeText(field: FieldCursor): boolean {
  if (field.wireType !== BYTES || field.number > 4) throw malformed("the envelope has an unknown field");
  if (field.valueEnd - field.fieldStart > MAX_ENVELOPE_FIELD_BYTES)
    throw codecError("CODEC_TOO_LARGE", `filtering a protobuf list: an envelope field is over ${MAX_ENVELOPE_FIELD_BYTES} bytes`);
  // Field 3 is contentEncoding. The filter cannot read a compressed list.
  if (field.number === 3 && field.valueEnd !== field.valueStart) throw malformed("the object in the envelope is encoded");
  return !field.incomplete;
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `filtering a protobuf list: ${what}`);
}
