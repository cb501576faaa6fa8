// Reads whose object a piece of JSON is: the namespace and name of an item, of a Table row or of a watch event's object.
// Invariant: `readable` is true only if every decoder, also one that ignores case or takes the first of two equal keys,
// reads the same metadata. Used by the list filter, the frame reader and the renamer.
import { JsonCursor, type KeyMatch, type KeyName, keyName } from "./json-cursor.ts";
import { OPEN_BRACE, QUOTE } from "./json-scan.ts";

const METADATA = keyName("metadata");
const NAMESPACE = keyName("namespace");
const NAME = keyName("name");
const OBJECT = keyName("object");

/** Reads one object at a time; the fields are of the last one. Reused, so that an item costs no allocation but its strings. */
export class JsonObjectReader {
  readonly cursor = new JsonCursor();
  readable = false;
  /** A key that is read stands there twice or in another case. */
  ambiguous = false;
  namespace = "";
  name = "";
  /** Where the name's string token stands, quotes included; 0 if there is no name. */
  nameStart = 0;
  nameEnd = 0;
  #metadataSeen = false;
  #lastNamespace = "";

  /** Forgets the last object. */
  begin(): void {
    this.readable = true;
    this.ambiguous = false;
    this.namespace = "";
    this.name = "";
    this.nameStart = 0;
    this.nameEnd = 0;
    this.#metadataSeen = false;
  }

  /** Closes an object: without metadata it is not readable. */
  finish(): void {
    if (!this.#metadataSeen) this.readable = false;
  }

  /** Reads the object at the cursor, which is then behind it. */
  readObject(): void {
    this.begin();
    this.#readMembers();
    this.finish();
  }

  /** Reads a Table row at the cursor: the object is its member `object`. */
  readRow(): void {
    this.begin();
    const { cursor } = this;
    let seen = false;
    if (!cursor.enter(OPEN_BRACE)) cursor.skipValue();
    else {
      for (let first = true; cursor.nextMember(first); first = false) {
        if (this.#takes(OBJECT, seen)) {
          seen = true;
          this.#readMembers();
        } else cursor.skipValue();
      }
    }
    this.finish();
  }

  #readMembers(): void {
    const { cursor } = this;
    if (!cursor.enter(OPEN_BRACE)) this.#skipUnreadable();
    else for (let first = true; cursor.nextMember(first); first = false) this.readMember();
  }

  /** Deals with one member of the object: its key has been read, the cursor stands at its value. */
  readMember(): void {
    if (this.#takes(METADATA, this.#metadataSeen)) {
      this.#metadataSeen = true;
      this.#readMetadata();
    } else this.cursor.skipValue();
  }

  #readMetadata(): void {
    const { cursor } = this;
    if (!cursor.enter(OPEN_BRACE)) {
      this.#skipUnreadable();
      return;
    }
    let namespaceSeen = false;
    let nameSeen = false;
    for (let first = true; cursor.nextMember(first); first = false) {
      if (this.#takes(NAMESPACE, namespaceSeen)) {
        namespaceSeen = true;
        this.namespace = this.#readNamespace();
      } else if (this.#takes(NAME, nameSeen)) {
        nameSeen = true;
        this.nameStart = cursor.position;
        this.name = this.#readText();
        this.nameEnd = cursor.position;
      } else cursor.skipValue();
    }
  }

  // True for the first key of exactly this name. A second one or one in another case makes the object unreadable.
  #takes(name: KeyName, seen: boolean): boolean {
    const match: KeyMatch = this.cursor.matches(name);
    if (match === "no") return false;
    if (match === "exact" && !seen) return true;
    this.readable = false;
    this.ambiguous = true;
    return false;
  }

  #readText(): string {
    const { cursor } = this;
    if (cursor.peek() !== QUOTE) return this.#skipUnreadable();
    cursor.readString();
    const text = cursor.stringText();
    if (text === undefined) this.readable = false;
    return text ?? "";
  }

  // Lists are sorted by namespace, so the last one is most often the next one: comparing is cheaper than making a string.
  #readNamespace(): string {
    const { cursor } = this;
    if (cursor.peek() !== QUOTE) return this.#skipUnreadable();
    cursor.readString();
    const last = this.#lastNamespace;
    if (cursor.stringIsPlain && equalsAscii(cursor.bytes, cursor.stringStart, cursor.stringEnd, last)) return last;
    const text = cursor.stringText();
    if (text === undefined) this.readable = false;
    this.#lastNamespace = text ?? "";
    return this.#lastNamespace;
  }

  #skipUnreadable(): "" {
    this.readable = false;
    this.cursor.skipValue();
    return "";
  }
}

/** True if these bytes are the characters of `text`. */
export function equalsAscii(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let index = 0; index < text.length; index++) {
    if (bytes[start + index] !== text.charCodeAt(index)) return false;
  }
  return true;
}
