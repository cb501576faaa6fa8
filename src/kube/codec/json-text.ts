// Reading JSON text that is there whole: what ends too early is malformed. Used by the readers of frames and bodies.

import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json-scan.ts";
import { type KeyName, textOf } from "./json-string.ts";
import { JsonWalker } from "./json-walker.ts";
import { codecError } from "./types.ts";

/** A walker with the value at `position` in hand. Throws `CODEC_MALFORMED`, as all of these do. */
export function walkerAt(bytes: Buffer, position = 0): JsonWalker {
  const walker = new JsonWalker().start(bytes, position, bytes.length);
  nextOf(walker);
  return walker;
}

/** Calls back with each member's value in hand; what is not entered is skipped. False, and no call, if there is no object. */
export function forEachMember(walker: JsonWalker, onMember: () => void): boolean {
  if (!walker.enter(OPEN_BRACE)) return false;
  while (nextOf(walker) === "value") onMember();
  return true;
}

/** Goes to the first member of this very name. False if there is none, or no object. */
export function goToMember(walker: JsonWalker, name: KeyName): boolean {
  if (!walker.enter(OPEN_BRACE)) return false;
  while (nextOf(walker) === "value") if (walker.matches(name) === "exact") return true;
  return false;
}

/** As `forEachMember`, with each element of an array. */
export function forEachElement(walker: JsonWalker, onElement: () => void): boolean {
  if (!walker.enter(OPEN_BRACKET)) return false;
  while (nextOf(walker) === "value") onElement();
  return true;
}

/** Goes behind the value in hand; the position there. */
export function skipOver(walker: JsonWalker): number {
  if (!walker.skip()) throw endsEarly();
  return walker.valueEnd;
}

/** The text of the value in hand; undefined if it is no string, or one that readers may read differently. */
export function readText(walker: JsonWalker): string | undefined {
  const isText = walker.valueByte === QUOTE;
  const end = skipOver(walker);
  return isText ? textOf(walker.bytes, walker.valueStart + 1, end - 1) : undefined;
}

function nextOf(walker: JsonWalker): "value" | "closed" {
  const token = walker.next();
  if (token === "more") throw endsEarly();
  return token;
}

/** What is thrown for text that breaks off. */
export function endsEarly(): Error {
  return codecError("CODEC_MALFORMED", "reading JSON: the text ends inside the document");
}
