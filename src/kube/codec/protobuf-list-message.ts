// The fields of a protobuf list message, {1: ListMeta, 2: items}. Only whole fields 1 and 2 pass. Used by protobuf-list-filter.ts
// only.
import type { ElementFilter, ListFilterOptions } from "./element-filter.ts";
import type { ProtobufListOutput } from "./protobuf-list-output.ts";
import { ProtobufObjectReader } from "./protobuf-object.ts";
import { BYTES, FieldCursor, fieldsOf } from "./protobuf-wire.ts";
import { codecError, DEFAULT_MAX_BYTES, type Emit } from "./types.ts";

const LIST_META = 1;
const ITEMS = 2;
const REMAINING_ITEM_COUNT = 4;

export class ProtobufListMessage {
  readonly #maxItemBytes: number;
  readonly #elements: ElementFilter;
  readonly #output: ProtobufListOutput;
  readonly #reader: ProtobufObjectReader;
  readonly #field = new FieldCursor();

  constructor(elements: ElementFilter, output: ProtobufListOutput, options: ListFilterOptions) {
    this.#maxItemBytes = options.maxItemBytes ?? DEFAULT_MAX_BYTES;
    this.#elements = elements;
    this.#output = output;
    this.#reader = new ProtobufObjectReader(options);
  }

  /** Processes one field. False if it needs more bytes. */
  readField(emit: Emit): boolean {
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
    else this.#readListMeta(field, size, emit);
    return true;
  }

  #readItem({ bytes, valueStart, valueEnd }: FieldCursor, size: number, emit: Emit): void {
    this.#reader.read(bytes, valueStart, valueEnd);
    const { meta } = this.#reader;
    if (!this.#elements.passes(meta)) {
      this.#output.leaveOut(size, emit);
      return;
    }
    const written = this.#elements.rewritten(bytes, valueStart, valueEnd, meta, "item");
    if (written === undefined) this.#output.keep(size);
    else this.#output.replace(ITEMS, size, written, emit);
  }

  // The list may still lose items, so the count is always left out.
  #readListMeta(field: FieldCursor, size: number, emit: Emit): void {
    const rest = this.#elements.keepsAll ? undefined : withoutRemainingItemCount(field.value());
    if (rest === undefined) this.#output.keep(size);
    else this.#output.replace(LIST_META, size, rest, emit);
  }
}

// The ListMeta without the count; undefined if it has no count.
function withoutRemainingItemCount(meta: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (const field of fieldsOf(meta)) {
    if (field.number !== REMAINING_ITEM_COUNT) parts.push(meta.subarray(field.fieldStart, field.valueEnd));
  }
  const rest = Buffer.concat(parts);
  return rest.length === meta.length ? undefined : rest;
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `filtering a protobuf list: ${what}`);
}
