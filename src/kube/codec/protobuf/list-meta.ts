// The ListMeta of a protobuf list.
import { parseResourceVersion } from "../../resource-version.ts";
import type { ListMeta } from "../base/types.ts";
import { readEnvelope } from "./envelope.ts";
import { BYTES, fieldsOf } from "./wire.ts";

export const LIST_META = 1; // of a list
// Of ListMeta.
const RESOURCE_VERSION = 2;
const CONTINUE = 3;
export const REMAINING_ITEM_COUNT = 4;
export const SHARD_INFO = 5;

export function withoutFields(meta: Buffer, leftOut: ReadonlySet<number>): Buffer {
  const parts: Buffer[] = [];
  for (const { number, fieldStart, valueEnd } of fieldsOf(meta)) {
    if (!leftOut.has(number)) parts.push(meta.subarray(fieldStart, valueEnd));
  }
  return Buffer.concat(parts);
}

/** Reads the metadata of a whole list. */
export function readListMeta(body: Uint8Array): ListMeta {
  const parts: Buffer[] = [];
  for (const field of fieldsOf(readEnvelope(body).raw)) {
    if (field.number === LIST_META && field.wireType === BYTES) parts.push(field.value());
  }
  return fieldsOfListMeta(Buffer.concat(parts));
}

export function fieldsOfListMeta(meta: Buffer): ListMeta {
  const texts = new Map<number, string>();
  let remaining: number | undefined;
  for (const field of fieldsOf(meta)) {
    if (field.wireType === BYTES) texts.set(field.number, field.value().toString("latin1"));
    else if (field.number === REMAINING_ITEM_COUNT) remaining = varintIn(field.value());
  }
  return {
    version: parseResourceVersion(texts.get(RESOURCE_VERSION)),
    continues: (texts.get(CONTINUE) ?? "") !== "",
    remaining: Number.isSafeInteger(remaining) ? remaining : undefined,
  };
}

function varintIn(bytes: Buffer): number {
  return bytes.reduce((sum, byte, index) => sum + (byte & 0x7f) * 128 ** index, 0);
}
