// Picks a few small parts out of a JSON document while it arrives, and skips the rest. Invariants: for a
// valid document the parts are those that JSON.parse would give; a part that two readers may read differently
// is an error, and so is a name that comes twice. No byte is looked at twice.
import { MeshError } from "../../../base/errors.ts";
import { isCodecError } from "../base/types.ts";
import { OPEN_BRACE, QUOTE } from "./scan.ts";
import { textOf } from "./string.ts";
import { JsonWalker } from "./walker.ts";

/**
 * - `text` a string
 * - `flag` true or false
 * - `texts` those members of an object that are strings
 * - a Shape: the members of an object that the Shape names
 * A value of another kind is left out.
 */
export type Part = "text" | "flag" | "texts" | Shape;

export interface Shape {
  readonly [name: string]: Part;
}

/** The picked parts by name. It has no prototype, so that `__proto__` is only a name. */
export interface Picked {
  [name: string]: string | boolean | Picked;
}

/** Longer than any name or label that Kubernetes accepts; only RBAC has names without a limit. */
const MAX_TEXT_CHARS = 1_024;
/** All picked texts and names of labels together: two objects with hundreds of labels. */
export const MAX_PICKED_CHARS = 64 * 1024;
/** The memory of a character, at most. */
const CHAR_BYTES = 2;
/** An escaped character: \\u0061. */
const ESCAPE_BYTES = 6;
const MAX_TEXT_BYTES = MAX_TEXT_CHARS * ESCAPE_BYTES;
/** The members of all entered objects together. Each label takes memory and a microsecond. */
const MAX_MEMBERS = 2_000;

interface Frame {
  /** The parts to pick; undefined if all members are texts. */
  readonly parts: ReadonlyMap<string, Part> | undefined;
  /** A name with more bytes is none of the parts, however it is escaped. */
  readonly maxNameBytes: number;
  readonly picked: Picked;
  readonly seen: Set<string>;
}

interface Leaf {
  readonly name: string;
  readonly part: "text" | "flag";
  readonly picked: Picked;
}

const LETTER_T = 0x74;
const LETTER_F = 0x66;

export class JsonPicker {
  readonly #shape: Shape;
  readonly #walker = new JsonWalker();
  readonly #frames: Frame[] = [];
  #picked: Picked | undefined;
  #leaf: Leaf | undefined;
  members = 0;
  #chars = 0;
  #isMalformed = false;

  constructor(shape: Shape) {
    this.#shape = shape;
  }

  /** Upper bound of the memory of the picked texts. */
  get textBytes(): number {
    return this.#chars * CHAR_BYTES;
  }

  /** The parts of the document, once it has ended; undefined if it is not a JSON object. */
  get picked(): Picked | undefined {
    return this.#walker.isDone && !this.#isMalformed ? this.#picked : undefined;
  }

  /** `bytes` begins with all bytes that were there before. Throws MeshError `BAD_REQUEST`. */
  scan(bytes: Buffer): void {
    if (this.#isMalformed) return;
    try {
      this.#walker.moveTo(bytes, bytes.length, 0);
      this.#walk();
    } catch (error) {
      if (!isCodecError(error)) throw error;
      this.#isMalformed = true;
    }
  }

  #walk(): void {
    const walker = this.#walker;
    for (;;) {
      if (this.#leaf !== undefined) {
        if (!walker.skip()) return;
        this.#take(this.#leaf);
        this.#leaf = undefined;
      }
      const token = walker.next();
      if (token === "more") return;
      if (token === "closed") this.#frames.pop();
      else this.#visit();
    }
  }

  #visit(): void {
    const frame = this.#frames.at(-1);
    if (frame === undefined) {
      this.#picked = this.#enter(this.#shape);
      return;
    }
    if (++this.members > MAX_MEMBERS) throw refused(`there are more than ${MAX_MEMBERS} fields and labels`);
    const name = this.#nameIn(frame);
    const part = frame.parts === undefined ? "text" : frame.parts.get(name);
    if (part === undefined) return;
    const { picked, seen } = frame;
    if (seen.has(name)) throw refused(frame.parts === undefined ? "a label comes twice" : `the field ${name} comes twice`);
    seen.add(name);
    if (part === "text" || part === "flag") {
      this.#leaf = { name, part, picked };
      return;
    }
    const inner = this.#enter(part);
    if (inner !== undefined) picked[name] = inner;
  }

  /** The name of the member; "" if it is none of the parts. */
  #nameIn({ parts, maxNameBytes }: Frame): string {
    const { keyStart, keyEnd } = this.#walker;
    const isTooLong = keyEnd - keyStart > maxNameBytes;
    if (parts !== undefined) return isTooLong ? "" : (this.#walker.keyText() ?? "");
    if (isTooLong) throw tooLong();
    return this.#certain(this.#walker.keyText());
  }

  #enter(part: "texts" | Shape): Picked | undefined {
    if (!this.#walker.enter(OPEN_BRACE)) return undefined;
    const picked: Picked = Object.create(null);
    const parts = part === "texts" ? undefined : new Map(Object.entries(part));
    const maxNameBytes =
      part === "texts" ? MAX_TEXT_BYTES : Math.max(...Object.keys(part).map(({ length }) => length)) * ESCAPE_BYTES;
    this.#frames.push({ parts, maxNameBytes, picked, seen: new Set() });
    return picked;
  }

  #take({ name, part, picked }: Leaf): void {
    const { bytes, valueByte, valueStart, valueEnd } = this.#walker;
    if (part === "flag" && (valueByte === LETTER_T || valueByte === LETTER_F)) picked[name] = valueByte === LETTER_T;
    if (part === "flag" || valueByte !== QUOTE) return;
    if (valueEnd - valueStart - 2 > MAX_TEXT_BYTES) throw tooLong();
    picked[name] = this.#certain(textOf(bytes, valueStart + 1, valueEnd - 1));
  }

  /** Throws if two readers may read the text differently, or if it or all texts together are too long. */
  #certain(text: string | undefined): string {
    if (text === undefined) throw refused("a name or label is no valid text");
    if (text.length > MAX_TEXT_CHARS) throw tooLong();
    this.#chars += text.length;
    if (this.#chars > MAX_PICKED_CHARS) throw refused(`all names and labels have more than ${MAX_PICKED_CHARS} characters`);
    return text;
  }
}

function refused(why: string): MeshError {
  return new MeshError("BAD_REQUEST", `reading a review: ${why}`);
}

function tooLong(): MeshError {
  return refused(`a name or label has more than ${MAX_TEXT_CHARS} characters`);
}
