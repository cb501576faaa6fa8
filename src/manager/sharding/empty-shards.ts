// How many shards own nothing with the placement Legacy, whatever namespaces there are. Pure.
import { autoOf, type ShardingRoot } from "../../api/sharding-config.ts";
import { NAME_HASHES } from "../../kube/place.ts";

/** Legacy divides the hashes in batches of one size, so the last shards may get none. */
export function emptyLegacyShards(shards: number): number {
  return shards - sharesOf(shards);
}

function sharesOf(shards: number): number {
  return Math.min(shards, Math.ceil(NAME_HASHES / Math.ceil(NAME_HASHES / shards)));
}

export function emptyShardsText(shards: number): string {
  const empty = emptyLegacyShards(shards);
  const nothing = empty === 1 ? "1 of them owns nothing" : `${empty} of them own nothing`;
  return `${shards} normal shards divide ${NAME_HASHES} hashes with placement Legacy, so ${nothing}: use ${sharesOf(shards)} shards, or spec.root.placement Balanced`;
}

/** The warning of admission about a root whose placement has changed; undefined if all shards own something. */
export function emptyShardsWarning(root: ShardingRoot): string | undefined {
  if (root.placement === "Balanced") return undefined;
  const { shardingSize } = autoOf(root);
  if (shardingSize === undefined) {
    return `spec.root.placement is Legacy, the default: with 9, 10, 12 to 15, or more than 16 normal shards some own nothing; consider Balanced`;
  }
  return emptyLegacyShards(shardingSize) === 0 ? undefined : emptyShardsText(shardingSize);
}

export function isSamePlacement(a: ShardingRoot, b: ShardingRoot | undefined): boolean {
  return b !== undefined && a.placement === b.placement && autoOf(a).shardingSize === autoOf(b).shardingSize;
}
