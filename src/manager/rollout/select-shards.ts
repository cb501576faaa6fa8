// The shards that the label `rolling` of a StatefulSet selects. Pure. Invariant: a part of the value that
// selects nothing selects nothing else either, so a misspelled name never rolls out other shards.

type Selection =
  | { readonly shards: readonly string[]; readonly unknown?: undefined }
  /** The first part of the value that selects no shard. */
  | { readonly unknown: string };

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
    if (names.length === 0) return { unknown: part };
    for (const name of names) selected.add(name);
  }
  return { shards: shards.filter((shard) => selected.has(shard)) };
}

function shardsNamed(part: string, shards: readonly string[]): readonly string[] {
  if (part === "") return [];
  return shards.includes(part) ? [part] : shards.filter((shard) => shard.includes(part));
}

const MAX_LISTED = 5;

export function unknownText(part: string, shards: readonly string[]): string {
  const names = shards.filter((shard) => shard !== "");
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : "";
  const listed = `${names.slice(0, MAX_LISTED).join(", ")}${more}`;
  return `the label rolling of the StatefulSet selects no shard by ${JSON.stringify(part)}: set it to all, or to names of shards or parts of names, such as canary or normal, with "${SEPARATOR}" between them; the shards are ${listed}`;
}
