// The fields of a protobuf list message, {1: ListMeta, 2: items}. Only whole fields 1 and 2 pass the filter.
import type { ElementFilter, ListFilterOptions } from "../base/element-filter.ts";
import { codecError, DEFAULT_MAX_BYTES, type Emit, type ListMetaFields } from "../base/types.ts";
import { readEnvelope } from "./envelope.ts";
import type { ProtobufListOutput } from "./list-output.ts";
import { ProtobufObjectReader } from "./object.ts";
import { BYTES, FieldCursor, fieldsOf } from "./wire.ts";

const LIST_META = 1;
const ITEMS = 2;
// Of ListMeta.
const RESOURCE_VERSION = 2;
const CONTINUE = 3;
const REMAINING_ITEM_COUNT = 4;
const SHARD_INFO = 5;

export class ProtobufListMessage {
  readonly #options: ListFilterOptions;
  readonly #maxItemBytes: number;
  readonly #elements: ElementFilter;
  readonly #output: ProtobufListOutput;
  readonly #reader: ProtobufObjectReader;
  readonly #field = new FieldCursor();
  #hasVersion = false;

  constructor(elements: ElementFilter, output: ProtobufListOutput, options: ListFilterOptions) {
    this.#options = options;
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
    const meta = field.value();
    const leftOut = new Set<number>();
    if (!this.#elements.keepsAll) leftOut.add(REMAINING_ITEM_COUNT);
    if (this.#options.cutShardInfo) leftOut.add(SHARD_INFO);
    const rest = leftOut.size === 0 ? undefined : withoutFields(meta, leftOut);
    if (rest === undefined) this.#output.keep(size);
    else this.#output.replace(LIST_META, size, rest, emit);
    if (this.#options.onVersion !== undefined) this.#reportVersion(fieldsIn(meta).resourceVersion);
  }

  /** The list is complete. */
  end(): void {
    this.#reportVersion(undefined);
  }

  #reportVersion(version: string | undefined): void {
    if (this.#hasVersion) return;
    this.#hasVersion = true;
    this.#options.onVersion?.(version);
  }
}

// The ListMeta without the fields; undefined if it has none of them.
function withoutFields(meta: Buffer, leftOut: ReadonlySet<number>): Buffer | undefined {
  const parts: Buffer[] = [];
  for (const field of fieldsOf(meta)) {
    if (!leftOut.has(field.number)) parts.push(meta.subarray(field.fieldStart, field.valueEnd));
  }
  const rest = Buffer.concat(parts);
  return rest.length === meta.length ? undefined : rest;
}

/** Reads the metadata of a whole list. */
export function readListMeta(body: Uint8Array): ListMetaFields {
  let meta: ListMetaFields = {};
  for (const field of fieldsOf(readEnvelope(body).raw)) {
    if (field.number !== LIST_META || field.wireType !== BYTES) continue;
    meta = { ...meta, ...fieldsIn(field.value()) };
  }
  return meta;
}

/** The fields of a ListMeta message that are there. */
function fieldsIn(meta: Buffer): ListMetaFields {
  let fields: ListMetaFields = {};
  for (const field of fieldsOf(meta)) {
    const { number, wireType } = field;
    if (number === RESOURCE_VERSION && wireType === BYTES)
      fields = { ...fields, resourceVersion: field.value().toString("latin1") };
    if (number === CONTINUE && wireType === BYTES) fields = { ...fields, continueToken: field.value().toString("latin1") };
    if (number === REMAINING_ITEM_COUNT) fields = { ...fields, remainingItemCount: varintOf(field) };
  }
  return fields;
}

function varintOf(field: FieldCursor): number {
  return field.value().reduce((sum, byte, index) => sum + (byte & 0x7f) * 128 ** index, 0);
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `filtering a protobuf list: ${what}`);
}
