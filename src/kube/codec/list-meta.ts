// Reads the metadata of a whole list. Pure; called by the proxy to learn the version and the size of a
// collection from a list of one object.
import { parseResourceVersion, type Version } from "../resource-version.ts";
import { asBuffer, type Encoding } from "./base/types.ts";
import { keyName } from "./json/string.ts";
import { goToMember, readText, skipOver, walkerAt } from "./json/text.ts";
import { readEnvelope } from "./protobuf/envelope.ts";
import { BYTES, type FieldCursor, fieldsOf } from "./protobuf/wire.ts";

const METADATA = keyName("metadata");
const RESOURCE_VERSION = keyName("resourceVersion");
const CONTINUE = keyName("continue");
const REMAINING_ITEM_COUNT = keyName("remainingItemCount");
const LIST_META = 1;
// Of ListMeta.
const FIELDS = { resourceVersion: 2, continue: 3, remainingItemCount: 4 } as const;

export interface ListMeta {
  /** Undefined if it cannot be compared. */
  readonly version: Version | undefined;
  /** The list is a page, and others follow. */
  readonly continues: boolean;
  /** Objects on the pages that follow; undefined if the API server does not say so. */
  readonly remaining: number | undefined;
}

/** @throws MeshError `CODEC_*` */
export function readListMeta(encoding: Encoding, body: Uint8Array): ListMeta {
  const { version, token, remaining } = encoding === "json" ? ofJson(asBuffer(body)) : ofProtobuf(body);
  return {
    version: parseResourceVersion(version),
    continues: (token ?? "") !== "",
    remaining: Number.isSafeInteger(remaining) ? remaining : undefined,
  };
}

interface Texts {
  readonly version: string | undefined;
  readonly token: string | undefined;
  readonly remaining: number | undefined;
}

function ofJson(bytes: Buffer): Texts {
  const meta = walkerAt(bytes);
  if (!goToMember(meta, METADATA)) return { version: undefined, token: undefined, remaining: undefined };
  const at = (name: typeof CONTINUE) => {
    const walker = walkerAt(bytes, meta.valueStart);
    return goToMember(walker, name) ? walker : undefined;
  };
  const textAt = (name: typeof CONTINUE) => {
    const walker = at(name);
    return walker && readText(walker);
  };
  const count = at(REMAINING_ITEM_COUNT);
  const remaining = count && Number(bytes.toString("latin1", count.valueStart, skipOver(count)));
  return { version: textAt(RESOURCE_VERSION), token: textAt(CONTINUE), remaining };
}

function ofProtobuf(body: Uint8Array): Texts {
  let [version, token, remaining]: [string | undefined, string | undefined, number | undefined] = [
    undefined,
    undefined,
    undefined,
  ];
  for (const field of fieldsOf(readEnvelope(body).raw)) {
    if (field.number !== LIST_META || field.wireType !== BYTES) continue;
    for (const inner of fieldsOf(field.value())) {
      if (inner.number === FIELDS.resourceVersion) version = inner.value().toString("latin1");
      if (inner.number === FIELDS.continue) token = inner.value().toString("latin1");
      if (inner.number === FIELDS.remainingItemCount) remaining = varintOf(inner);
    }
  }
  return { version, token, remaining };
}

function varintOf(field: FieldCursor): number {
  return field.value().reduce((sum, byte, index) => sum + (byte & 0x7f) * 128 ** index, 0);
}
