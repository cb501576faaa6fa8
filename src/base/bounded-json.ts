// Parses JSON from outside within a memory budget: 3 bytes of a body can become 180 in memory. Invariant:
// nothing is made before its size is counted.
import { MeshError } from "./errors.ts";
import { parseJson } from "./json.ts";

/** The memory that may still be taken, in bytes. One budget can serve several bodies. */
export interface MemoryBudget {
  left: number;
}

/**
 * The approximate memory of a value in Node, in bytes. Each byte of the text counts once in addition. An unknown key
 * counts for its time: V8 makes a hidden class for each key that it meets once, and 170,000 of them took a second.
 */
const SIZE = { value: 32, array: 64, object: 128, unknownKey: 1_024 };
/** The deepest body of the contract has ten levels. */
const MAX_DEPTH = 32;
/** What a string in a list takes of a budget, beside its text: also the quotes and the comma. */
export const LISTED_STRING_BYTES = SIZE.value + 3;

/**
 * @param memory what the value takes is subtracted from it, even if the text is refused
 * @param knownKeys those that a body of many objects may have: each other one takes 1 KB. Undefined: all are known
 * @throws MeshError `MESSAGE_INVALID`, also if the budget is not enough
 */
export function parseBounded(text: Uint8Array, memory: MemoryBudget, knownKeys?: ReadonlySet<string>): unknown {
  memory.left -= text.length;
  if (memory.left >= 0) memory.left -= sizeOf(text, knownKeys);
  if (memory.left < 0) throw new MeshError("MESSAGE_INVALID", "it takes too much memory");
  try {
    return parseJson(text);
  } catch (cause) {
    throw new MeshError("MESSAGE_INVALID", "it is no JSON", { cause });
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

// Text that is no JSON is read as the parser reads it up to its first error, where the parser stops.
function sizeOf(text: Uint8Array, knownKeys: ReadonlySet<string> | undefined): number {
  let [size, depth] = [0, 0];
  /** The last string. */
  let [start, end] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    const byte = text[at];
    if (byte === QUOTE) {
      start = at + 1;
      at = endOfString(text, start);
      end = at;
    } else if (byte === COMMA) size += SIZE.value;
    else if (byte === COLON) size += SIZE.value + (isKnown(text, start, end, knownKeys) ? 0 : SIZE.unknownKey);
    else if (byte === ARRAY_END || byte === OBJECT_END) depth--;
    else if (byte === ARRAY || byte === OBJECT) {
      size += byte === ARRAY ? SIZE.array : SIZE.object;
      if (++depth > MAX_DEPTH) throw new MeshError("MESSAGE_INVALID", `it has more than ${MAX_DEPTH} levels`);
    }
  }
  return size;
}

const LONGEST_KEY = 64;

function isKnown(text: Uint8Array, start: number, end: number, keys: ReadonlySet<string> | undefined): boolean {
  if (keys === undefined) return true;
  return (
    end - start <= LONGEST_KEY && keys.has(Buffer.from(text.buffer, text.byteOffset + start, end - start).toString("latin1"))
  );
}

function endOfString(text: Uint8Array, start: number): number {
  let at = start;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}
