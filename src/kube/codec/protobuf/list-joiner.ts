// Joins protobuf lists. The length of the list comes first, so all items are held until the last list ends.
import type { Version } from "../../resource-version.ts";
import { codecError, type Emit, type Keep, type ListFilter, type ListJoiner } from "../base/types.ts";
import { createListFilter } from "./list-filter.ts";
import { BYTES, ENVELOPE_PREFIX, encodeHeader, fieldsOf } from "./wire.ts";

const RAW = 2; // of runtime.Unknown
const LIST_META = 1;

/** One list: what comes before its message, its ListMeta, its items, and what comes after it. */
interface Parts {
  readonly head: Buffer;
  readonly meta: Buffer;
  readonly items: Buffer;
  readonly tail: Buffer;
}

export function createListJoiner(version: Version, maxHeldBytes: number): ListJoiner {
  let first: Parts | undefined;
  const heldItems: Buffer[] = [];
  let heldBytes = 0;

  function next(keep: Keep): ListFilter {
    const slices: Uint8Array[] = [];
    let sliceBytes = 0;
    const hold = (slice: Uint8Array) => {
      slices.push(slice);
      sliceBytes += slice.length;
    };
    const filter = createListFilter(keep, {
      maxHeldBytes,
      onVersion(own) {
        if (own !== version) throw differs("version");
      },
    });
    return {
      counts: filter.counts,
      get heldBytes() {
        return filter.heldBytes + sliceBytes + heldBytes;
      },
      push: (chunk) => filter.push(chunk, hold),
      end() {
        filter.end(hold);
        add(partsOf(Buffer.concat(slices)));
      },
    };
  }

  function add(parts: Parts): void {
    first ??= parts;
    for (const part of ["head", "meta", "tail"] as const) if (!first[part].equals(parts[part])) throw differs(part);
    heldItems.push(parts.items);
    heldBytes += parts.items.length;
    if (heldBytes > maxHeldBytes)
      throw codecError("CODEC_TOO_LARGE", `joining protobuf lists: they have over ${maxHeldBytes} bytes`);
  }

  function end(emit: Emit): void {
    if (first === undefined) throw codecError("CODEC_TRUNCATED", "joining protobuf lists: no list is complete");
    const { head, meta, tail } = first;
    emit(Buffer.concat([head, encodeHeader(RAW, meta.length + heldBytes), meta]));
    for (const items of heldItems) if (items.length > 0) emit(items);
    if (tail.length > 0) emit(tail);
  }

  return { next, end };
}

function partsOf(list: Buffer): Parts {
  for (const field of fieldsOf(list.subarray(ENVELOPE_PREFIX.length))) {
    if (field.number !== RAW || field.wireType !== BYTES) continue;
    const { fieldStart, valueEnd } = field;
    const head = list.subarray(0, ENVELOPE_PREFIX.length + fieldStart);
    const tail = list.subarray(ENVELOPE_PREFIX.length + valueEnd);
    return { head, tail, ...splitMessage(field.value()) };
  }
  throw codecError("CODEC_NOT_A_LIST", "joining protobuf lists: an envelope is empty");
}

// The ListMeta comes first, and once.
function splitMessage(message: Buffer): Pick<Parts, "meta" | "items"> {
  let end = 0;
  for (const { number, fieldStart, valueEnd } of fieldsOf(message)) {
    if ((number === LIST_META) !== (fieldStart === 0)) throw differs("order of fields");
    if (number === LIST_META) end = valueEnd;
  }
  return { meta: message.subarray(0, end), items: message.subarray(end) };
}

function differs(what: string): Error {
  return codecError("CODEC_MALFORMED", `joining protobuf lists: a list has another ${what}`);
}
