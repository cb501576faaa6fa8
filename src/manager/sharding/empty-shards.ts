// How many shards own nothing with the placement Legacy, whatever namespaces there are. Pure.
import { autoOf, type ShardingRoot } from "../../api/sharding-config.ts";
import { NAME_HASHES } from "../../kube/place.ts";

/** Legacy divides the hashes in batches of one size, so the last shards may get none. */
export function emptyLegacyShards(shards: number): number {
  return shards - batchesFor(shards);
}

/** The number of shards that get a batch. */
function batchesFor(shards: number): number {
  return Math.min(shards, Math.ceil(NAME_HASHES / Math.ceil(NAME_HASHES / shards)));
}

export function emptyShardsText(shards: number): string {
  const empty = emptyLegacyShards(shards);
  const nothing = empty === 1 ? "1 of them owns nothing" : `${empty} of them own nothing`;
  return `${shards} normal shards divide ${NAME_HASHES} hashes with placement Legacy, so ${nothing}: use ${batchesFor(shards)} shards, or spec.root.placement Balanced`;
}

/**
 * The warning of admission about shards that own nothing. Undefined if there are none, or if the edit does not
 * change how many there are. @param before undefined at creation
 */
export function emptyShardsWarning(root: ShardingRoot, before: ShardingRoot | undefined): string | undefined {
  if (root.placement === "Balanced" || isSameDivision(root, before)) return undefined;
  const { shardingSize } = autoOf(root);
  if (shardingSize === undefined) {
    return `spec.root.placement is Legacy, the default: with 9, 10, 12 to 15, 17 to 31, or more than 32 normal shards some own nothing; consider Balanced`;
  }
  return emptyLegacyShards(shardingSize) === 0 ? undefined : emptyShardsText(shardingSize);
}

function isSameDivision(a: ShardingRoot, b: ShardingRoot | undefined): boolean {
  return b !== undefined && a.placement === b.placement && autoOf(a).shardingSize === autoOf(b).shardingSize;
}
