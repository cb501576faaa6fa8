// The record of a restart, as it is in `status.restart`, and the state of the eviction that the record
// describes. Pure. Called by restart-plan.ts.
//
//   none => asked      when the pod's record is written, with the number of ready pods of its subset: the eviction follows
//   asked => leaving   when the eviction is accepted, or its result is not known (believed for a while), or the pod is terminating
//   asked => none      when the pod needs no restart any more: the edit was undone
//   leaving => asked   when the pod stays alive: its eviction is requested again, and no other eviction
//   leaving => short   when the pod with that uid is gone
//   short => done      when the subset has as many ready pods as before, or its workloads want fewer
import type { RestartStatus } from "../../api/app-status.ts";
import { needsRestart, type RestartPod } from "./restart-pods.ts";

export type RestartRecord = RestartStatus;

/** Why a pod is not restarted yet, or what its restart waits for. */
export type RestartReason =
  /**
   * The need for a restart has not lasted long enough yet. So a namespace that moves back and forth restarts
   * no pod.
   */
  | "Settling"
  /** The eviction is requested, or it is accepted and the pod is not gone yet. */
  | "Evicting"
  | "PodDisruptionBudget"
  /** A pod of the app is not ready: the new pod or another one. */
  | "NotReady"
  /** A proxy of the subset is not connected: its pod may lead. */
  | "NotReported"
  | "LeaderUnknown"
  | "Paused"
  /** The manager may not evict pods. */
  | "EvictionForbidden"
  | "EvictionFailed";

/** The API server has refused an eviction, or has not answered. */
export interface Refusal {
  readonly reason: "PodDisruptionBudget" | "EvictionForbidden" | "EvictionFailed";
  /** A sentence for people. */
  readonly message: string;
  /** When to request the eviction again: wall time in milliseconds. */
  readonly retryAtMs: number;
}

/** The state of the eviction. `pod` is the record's pod. */
export type RollState =
  | { readonly kind: "none" }
  | { readonly kind: "asked"; readonly record: RestartRecord; readonly pod: RestartPod }
  | { readonly kind: "leaving" | "short" | "done"; readonly record: RestartRecord };

interface RollStateFacts {
  readonly pods: readonly RestartPod[];
  readonly subsets: readonly string[];
  readonly previous: RestartRecord | undefined;
  readonly hasAllWanted?: boolean;
}

export function rollStateOf({ pods, subsets, previous: record, hasAllWanted = false }: RollStateFacts): RollState {
  if (record?.expected === undefined) return { kind: "none" };
  const pod = pods.find(({ uid, ended }) => uid === record.uid && !ended);
  if (pod?.terminating) return { kind: "leaving", record };
  if (pod !== undefined) return needsRestart(pod) ? { kind: "asked", record, pod } : { kind: "none" };
  if (hasAllWanted) return { kind: "done", record };
  // If the spec no longer contains the subset, its new pods belong to another subset, so they cannot be
  // counted here.
  const isBack = subsets.includes(record.subset) && countReady(pods, record.subset) >= record.expected;
  return { kind: isBack ? "done" : "short", record };
}

export function countReady(pods: readonly RestartPod[], subset: string): number {
  return pods.filter((pod) => pod.subset === subset && pod.ready && !pod.terminating).length;
}
