// What the filter reads of a JSON list's own keys: which key is which, whether the document is a Status instead, and where
// `remainingItemCount` stands, which would tell how much was taken out. Used by the JSON list filter only.
import { JsonCursor, type KeyName, keyName } from "./json-cursor.ts";
import { type Edit, SequenceCuts } from "./json-edit.ts";
import { OPEN_BRACE, QUOTE } from "./json-scan.ts";
import { codecError } from "./types.ts";

/** The top-level keys that matter; anything else is `other`. */
export type ListKey = "items" | "rows" | "metadata" | "kind" | "apiVersion" | "other";

const KEYS: readonly (readonly [ListKey, KeyName])[] = (["items", "rows", "metadata", "kind", "apiVersion"] as const).map(
  (key) => [key, keyName(key)],
);
const REMAINING_ITEM_COUNT = keyName("remainingItemCount");

/** The keys of one list, as they come by. */
export class JsonListHead {
  readonly #cursor = new JsonCursor();
  readonly #arrays = new Set<ListKey>();
  readonly #kinds: string[] = [];
  readonly #apiVersions: string[] = [];

  /** Which key the cursor has just read. Throws `CODEC_MALFORMED` for a second array of items, or one under a key in another case. */
  classifyKey(cursor: JsonCursor): ListKey {
    for (const [key, name] of KEYS) {
      const match = cursor.matches(name);
      if (match === "no") continue;
      if (key !== "items" && key !== "rows") return match === "exact" ? key : "other";
      if (match === "variant" || this.#arrays.has(key)) {
        throw codecError("CODEC_MALFORMED", `filtering a JSON list: the key ${key} twice or in another case`);
      }
      this.#arrays.add(key);
      return key;
    }
    return "other";
  }

  /** Remembers the value of `kind` or `apiVersion`. */
  noteType(key: "kind" | "apiVersion", bytes: Buffer, start: number, end: number): void {
    const cursor = this.#cursor.reset(bytes, start, end);
    let text = "";
    if (cursor.peek() === QUOTE) {
      cursor.readString();
      text = cursor.stringText() ?? "";
    }
    (key === "kind" ? this.#kinds : this.#apiVersions).push(text);
  }

  /** True if what has been seen says that the document is a metav1.Status, and nothing else. */
  get isStatus(): boolean {
    const [kind, ...otherKinds] = this.#kinds;
    const [apiVersion, ...otherVersions] = this.#apiVersions;
    return kind === "Status" && apiVersion === "v1" && otherKinds.length + otherVersions.length === 0;
  }
}

/** The parts to leave out of the list's metadata in `bytes` from `start` to `end`, so that the rest is valid JSON. */
export function cutRemainingItemCount(bytes: Buffer, start: number, end: number): readonly Edit[] {
  const cursor = new JsonCursor().reset(bytes, start, end);
  const sequence = new SequenceCuts(bytes);
  if (!cursor.enter(OPEN_BRACE)) return [];
  for (let first = true; cursor.nextMember(first); first = false) {
    const remove = cursor.matches(REMAINING_ITEM_COUNT) !== "no";
    const keyStart = cursor.stringStart - 1;
    cursor.skipValue();
    sequence.add(keyStart, cursor.position, remove);
  }
  return sequence.cuts;
}
