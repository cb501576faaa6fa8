// Reads the keys and the metadata of a JSON list itself: which array is the items, whether the document is a
// Status, and where `remainingItemCount` is, which would reveal how much was dropped.
import { parseResourceVersion } from "../../resource-version.ts";
import { asBuffer, type Edit } from "../base/bytes.ts";
import { codecError, isStatusType, type ListMeta } from "../base/types.ts";
import { type KeyName, keyName } from "./string.ts";
import { cutMembers, goToMember, skipOver, textIn, walkerAt } from "./text.ts";
import type { JsonWalker } from "./walker.ts";

export type ListKey = "items" | "rows" | "metadata" | "kind" | "apiVersion" | "other";

const KEYS: readonly (readonly [ListKey, KeyName])[] = (["items", "rows", "metadata", "kind", "apiVersion"] as const).map(
  (key) => [key, keyName(key)],
);
const METADATA = keyName("metadata");
const CONTINUE = keyName("continue");
export const REMAINING_ITEM_COUNT = keyName("remainingItemCount");
export const SHARD_INFO = keyName("shardInfo");
export const RESOURCE_VERSION = keyName("resourceVersion");

export class JsonListHead {
  readonly #arrays = new Set<ListKey>();
  readonly #kinds: string[] = [];
  readonly #apiVersions: string[] = [];

  /** Throws `CODEC_MALFORMED` for a second array of items, and for its key in another case. */
  classifyKey(walker: JsonWalker): ListKey {
    for (const [key, name] of KEYS) {
      const match = walker.matches(name);
      if (match === "no") continue;
      if (key !== "items" && key !== "rows") return match === "exact" ? key : "other";
      if (match === "variant" || this.#arrays.has(key)) {
        throw codecError("CODEC_MALFORMED", `filtering a JSON list: the key ${key} occurs twice or in another case`);
      }
      this.#arrays.add(key);
      return key;
    }
    return "other";
  }

  noteType(key: "kind" | "apiVersion", text: string): void {
    (key === "kind" ? this.#kinds : this.#apiVersions).push(text);
  }

  /** True if the keys so far say that the document is a metav1.Status, and nothing else. */
  get isStatus(): boolean {
    const [kind = "", ...otherKinds] = this.#kinds;
    const [apiVersion = "", ...otherVersions] = this.#apiVersions;
    return otherKinds.length + otherVersions.length === 0 && isStatusType({ apiVersion, kind });
  }
}

/** The cuts that remove the fields from the list's metadata, which begins at `start`. */
export function cutListMeta(bytes: Buffer, start: number, leftOut: readonly KeyName[]): readonly Edit[] {
  const walker = walkerAt(bytes, start);
  return cutMembers(walker, () => leftOut.some((name) => walker.matches(name) !== "no"));
}

export function readListMeta(body: Uint8Array): ListMeta {
  const bytes = asBuffer(body);
  const list = walkerAt(bytes);
  if (!goToMember(list, METADATA)) return { version: undefined, continues: false, remaining: undefined };
  const start = list.valueStart;
  const count = walkerAt(bytes, start);
  const hasCount = goToMember(count, REMAINING_ITEM_COUNT);
  const remaining = hasCount ? Number(bytes.toString("latin1", count.valueStart, skipOver(count))) : undefined;
  return {
    version: parseResourceVersion(textIn(bytes, start, RESOURCE_VERSION)),
    continues: (textIn(bytes, start, CONTINUE) ?? "") !== "",
    remaining: Number.isSafeInteger(remaining) ? remaining : undefined,
  };
}
