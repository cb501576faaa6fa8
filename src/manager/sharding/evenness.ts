// Whether shards own about the same number of namespaces. Pure.

/** The largest even ratio of a shard's number of namespaces to the mean, and of the mean to that number. */
const MAX_SKEW = 1.5;
/** A difference of one namespace from an even division still counts as even, whatever the ratio. */
const TOLERANCE = 1;

/** True if a shard owns far more or far fewer namespaces than the mean. @param owned the number of each shard */
export function isUneven(owned: readonly number[]): boolean {
  if (owned.length <= 1) return false;
  const mean = owned.reduce((sum, count) => sum + count, 0) / owned.length;
  const [largest, smallest] = [Math.max(...owned), Math.min(...owned)];
  const isFull = largest > mean * MAX_SKEW && largest > Math.ceil(mean) + TOLERANCE;
  const isEmpty = smallest * MAX_SKEW < mean && smallest < Math.floor(mean) - TOLERANCE;
  return isFull || isEmpty;
}
