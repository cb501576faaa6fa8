// Reads JSON text that is complete, and finds the cuts that remove members or elements and leave it valid.
// All functions throw `CODEC_MALFORMED`, also for text that ends early.
import type { Edit } from "../base/bytes.ts";
import { codecError } from "../base/types.ts";
import { COMMA, isSpace, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./scan.ts";
import { type KeyName, textOf } from "./string.ts";
import { JsonWalker } from "./walker.ts";

export function walkerAt(bytes: Buffer, position = 0): JsonWalker {
  const walker = new JsonWalker().start(bytes, position, bytes.length);
  nextOf(walker);
  return walker;
}

/** Calls back at each member's value, and skips the value unless it is entered. False for no object. */
export function forEachMember(walker: JsonWalker, onMember: () => void): boolean {
  if (!walker.enter(OPEN_BRACE)) return false;
  while (nextOf(walker) === "value") onMember();
  return true;
}

/** Moves to the first member with exactly this name. False if there is none, or no object. */
export function goToMember(walker: JsonWalker, name: KeyName): boolean {
  if (!walker.enter(OPEN_BRACE)) return false;
  while (nextOf(walker) === "value") if (walker.matches(name) === "exact") return true;
  return false;
}

/** Calls back at each element of an array, like `forEachMember`. */
export function forEachElement(walker: JsonWalker, onElement: () => void): boolean {
  if (!walker.enter(OPEN_BRACKET)) return false;
  while (nextOf(walker) === "value") onElement();
  return true;
}

/** The cuts for the members of an object for which `isCut` is true. It is called at each value. */
export function cutMembers(walker: JsonWalker, isCut: () => boolean): Edit[] {
  const sequence = new SequenceCuts(walker.bytes);
  forEachMember(walker, () => {
    const isRemoved = isCut();
    const start = walker.keyStart - 1;
    sequence.add(start, skipOver(walker), isRemoved);
  });
  return sequence.cuts;
}

/** Moves after the current value and returns that position. */
export function skipOver(walker: JsonWalker): number {
  if (!walker.skip()) throw endsEarly();
  return walker.valueEnd;
}

/** The text of the current value; undefined if it is no string, or if two readers may read it differently. */
export function readText(walker: JsonWalker): string | undefined {
  const isText = walker.valueByte === QUOTE;
  const end = skipOver(walker);
  return isText ? textOf(walker.bytes, walker.valueStart + 1, end - 1) : undefined;
}

/** The text of the first member with exactly this name in the object at `start`; undefined for none. */
export function textIn(bytes: Buffer, start: number, name: KeyName): string | undefined {
  const walker = walkerAt(bytes, start);
  return goToMember(walker, name) ? readText(walker) : undefined;
}

function nextOf(walker: JsonWalker): "value" | "closed" {
  const token = walker.next();
  if (token === "more") throw endsEarly();
  return token;
}

export function endsEarly(): Error {
  return codecError("CODEC_MALFORMED", "reading JSON: the text ends inside the document");
}

/** Collects the cuts in one object or array, each with one comma, so that the text stays valid. */
export class SequenceCuts {
  readonly cuts: Edit[] = [];
  readonly #bytes: Uint8Array;
  #previousEnd = 0;
  #anyKept = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  add(start: number, end: number, remove: boolean): void {
    if (!remove) this.#anyKept = true;
    else if (this.#anyKept) this.cuts.push({ start: this.#previousEnd, end });
    else this.cuts.push({ start, end: this.#afterComma(end) });
    this.#previousEnd = end;
  }

  #afterComma(position: number): number {
    let at = position;
    while (isSpace(this.#bytes[at] ?? 0)) at++;
    return this.#bytes[at] === COMMA ? at + 1 : position;
  }
}
