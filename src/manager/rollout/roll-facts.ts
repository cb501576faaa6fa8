// What a rollout is planned from, and what its status says. The rollout reconciler gathers the facts;
// plan-rollout.ts and blockers.ts read them.
import type { ShardingStatus } from "../../api/sharding-config.ts";
import type { Refusal } from "../restart/restart-record.ts";
import type { RollRecord } from "./roll-record.ts";

export type RolloutStatus = NonNullable<ShardingStatus["rollout"]>;

/** A pod of the StatefulSet. */
export interface RollPod {
  readonly name: string;
  readonly uid: string;
  /** "" for the pods of no shard. */
  readonly shard: string;
  readonly revision: string | undefined;
  readonly ready: boolean;
  /** Wall time in milliseconds; undefined if it is not ready. */
  readonly readySinceMs: number | undefined;
  readonly terminating: boolean;
  /** The pod carries the proxy of this app. */
  readonly proxy: boolean;
  readonly connected: boolean;
  /** Its proxy enforces the newest snapshot. */
  readonly acknowledged: boolean;
  readonly leader: boolean;
}

export interface RolloutFacts {
  /** The value of the label `rolling`; undefined without it. */
  readonly rolling: string | undefined;
  readonly isOnDelete: boolean;
  /** Undefined until the StatefulSet's controller has seen its newest spec. */
  readonly updateRevision: string | undefined;
  /**
   * The names of the pods that the StatefulSet asks for; undefined if these are more than shards can have.
   */
  readonly wanted: readonly string[] | undefined;
  /** The stored record. */
  readonly record: RollRecord | undefined;
  /** In order; "" for the pods of no shard. */
  readonly shards: readonly string[];
  readonly pods: readonly RollPod[];
  readonly hasLock: boolean;
  readonly isPaused: boolean;
  /** The last written status. */
  readonly previous: RolloutStatus | undefined;
  /** A pod that lost namespaces is being evicted. */
  readonly isRestarting: boolean;
  readonly soakMs: number;
  /** The refusal of the last eviction of the pod with this uid, or a missing answer. */
  readonly refusalOf: (uid: string) => Refusal | undefined;
  readonly nowMs: number;
}
