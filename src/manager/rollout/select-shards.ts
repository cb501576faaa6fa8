// The shards that the label `rolling` of a StatefulSet selects. Pure. Invariant: if one part of the value
// selects no shard, the whole value selects none, so a misspelled name rolls out nothing.
import { nameList } from "../../base/name-list.ts";

type Selection =
  | { readonly shards: readonly string[]; readonly unknownPart?: undefined }
  /** The first part of the value that selects no shard. */
  | { readonly unknownPart: string };

const SEPARATOR = "_"; // no name of a shard contains it
const ALL = ["", "all"];

/**
 * Each part of the value selects the shard with this name. If there is none, it selects all shards whose
 * names contain it, as in KusionStack's mesh: `canary`, `normal`.
 * @param shards in order; "" for the pods of no shard, which only "" and "all" select
 */
export function selectShards(value: string, shards: readonly string[]): Selection {
  if (ALL.includes(value)) return { shards };
  const selected = new Set<string>();
  for (const part of value.split(SEPARATOR)) {
    const names = shardsNamed(part, shards);
    if (names.length === 0) return { unknownPart: part };
    for (const name of names) selected.add(name);
  }
  return { shards: shards.filter((shard) => selected.has(shard)) };
}

function shardsNamed(part: string, shards: readonly string[]): readonly string[] {
  if (part === "") return [];
  return shards.includes(part) ? [part] : shards.filter((shard) => shard.includes(part));
}

const MAX_LISTED = 5;

export function unknownPartText(part: string, shards: readonly string[]): string {
  const names = shards.filter((shard) => shard !== "");
  return `${JSON.stringify(part)} in the label rolling of the StatefulSet selects no shard: set the label to all, or to names of shards or parts of names, such as canary or normal, with "${SEPARATOR}" between them; the shards are ${nameList(names, MAX_LISTED)}`;
}
