// The words of the restart in order, as they stand in `status.restart`.
import type { RestartStatus } from "../../api/app-status.ts";

export type RestartRecord = RestartStatus;

/** Why a pod is not restarted yet, or what its restart waits for. */
export type RestartReason =
  /** The need is young: a namespace that moves to and fro restarts no pod. */
  | "Settling"
  /** The eviction is asked for, or accepted and the pod not gone. */
  | "Evicting"
  | "PodDisruptionBudget"
  /** A pod of the app is not ready, the new one or another. */
  | "NotReady"
  /** A proxy of the subset is not connected: its pod may lead. */
  | "NotReported"
  | "LeaderUnknown"
  | "Paused"
  /** The manager may not evict pods. */
  | "EvictionForbidden"
  | "EvictionFailed";

/** The API server's no to an eviction, or none of its answers. */
export interface Refusal {
  readonly reason: "PodDisruptionBudget" | "EvictionForbidden" | "EvictionFailed";
  /** A sentence for people. */
  readonly message: string;
  /** When to ask again, wall time in milliseconds. */
  readonly retryAtMs: number;
}
