// Creates the filter for a list response, once the content type of the response is known.
import type { ListFilterOptions } from "./base/element-filter.ts";
import type { ByteFilter, Encoding, Keep } from "./base/types.ts";
import { createJsonListFilter } from "./json/list-filter.ts";
import { createProtobufListFilter } from "./protobuf/list-filter.ts";

export type { ListFilterOptions } from "./base/element-filter.ts";

/**
 * A filter for one list response. Kept items pass byte for byte, or rewritten. Items of other subsets and
 * items without readable metadata are left out, and so is `remainingItemCount` when an item may be left out.
 * A Status passes unchanged.
 * @throws MeshError (by push and end) `CODEC_MALFORMED`, `CODEC_TRUNCATED`, `CODEC_TOO_LARGE`,
 * `CODEC_NOT_A_LIST`
 */
export function createListFilter(encoding: Encoding, keep: Keep, options: ListFilterOptions = {}): ByteFilter {
  return encoding === "json" ? createJsonListFilter(keep, options) : createProtobufListFilter(keep, options);
}
