// Records the states of a root ShardingConfig in order, and computes from them which shard each namespace was
// to have over time. Pure. A state is the canary of the spec and the stored placement, which one object
// carries.
//
// A namespace's shard in one state is computed by the code under test. The check is about the order of the
// states: nobody may write for a shard that no state gave the namespace to in the meantime.
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import { canaryTest } from "../../src/manager/sharding/canary.ts";
import { placer } from "../../src/manager/sharding/placement.ts";
import { storedPlacement } from "../../src/manager/sharding/stored-placement.ts";
import type { OwnerChange } from "./ownership-check.ts";

export interface RootHistory {
  /** Call for each version that a watch delivers, in order. */
  add(root: ShardingConfig): void;
  /** Call for each version that a get returned. Newer versions were stored after the get began. */
  noteRead(root: ShardingConfig, beganMs: number): void;
  /** The shard in the newest state; undefined without a placement. */
  ownerOf(namespace: string): string | undefined;
  ownersOf(namespace: string): readonly OwnerChange[];
}

interface State {
  /** The root was stored at this time at the earliest. */
  readonly sinceMs: number;
  shardOf(namespace: string): string;
}

export function createRootHistory(prefix: string): RootHistory {
  const states: State[] = [];
  const reads: { version: bigint; beganMs: number }[] = [];
  return {
    add(root) {
      const placement = storedPlacement(root);
      if (placement === undefined) return;
      const version = versionOf(root);
      const isCanary = canaryTest(root.spec.root?.canary, placement.canaryNamespace);
      const numberOf = placer(placement);
      states.push({
        sinceMs: reads.findLast((read) => read.version < version)?.beganMs ?? 0,
        shardOf: (namespace) => (isCanary(namespace) ? `${prefix}-0-canary` : `${prefix}-${numberOf(namespace)}-normal`),
      });
    },
    noteRead(root, beganMs) {
      const version = versionOf(root);
      const last = reads.at(-1);
      if (last?.version === version) last.beganMs = beganMs;
      else reads.push({ version, beganMs });
    },
    ownerOf: (namespace) => states.at(-1)?.shardOf(namespace),
    ownersOf(namespace) {
      const changes: OwnerChange[] = [];
      for (const { sinceMs, shardOf } of states) {
        const subset = shardOf(namespace);
        if (changes.at(-1)?.subset !== subset) changes.push({ sinceMs, subset });
      }
      return changes;
    },
  };
}

function versionOf({ metadata }: ShardingConfig): bigint {
  return BigInt(metadata.resourceVersion ?? "0");
}
