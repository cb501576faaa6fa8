// The record of a restart in `status.restart`, and the state of the eviction that it describes. Pure.
//
//   none => asked      when the pod's record is written, with the number of ready pods of its subset: the eviction follows
//   asked => leaving   when the eviction is accepted, or its result is not known (believed for a while), or the pod is terminating
//   asked => none      when the pod no longer needs a restart: the edit was undone
//   leaving => asked   when the pod stays alive: its eviction is requested again, and no other eviction
//   leaving => short   when the pod with that uid is gone
//   short => done      when the subset has as many ready pods as before, or its workloads want fewer
import type { RestartStatus } from "../../api/app-status.ts";
import { needsRestart, type RestartPod } from "./restart-pods.ts";

export type RestartRecord = RestartStatus;

export type RestartReason =
  /** The need is too recent: a namespace that moves back and forth must restart no pod. */
  | "Settling"
  /** The eviction is requested, or it is accepted and the pod is not gone yet. */
  | "Evicting"
  | "PodDisruptionBudget"
  /** A pod of the app is not ready: the new pod or another one. */
  | "NotReady"
  /** A proxy of the subset is not connected, so its pod may lead. */
  | "NotReported"
  | "LeaderUnknown"
  | "Paused"
  | "EvictionForbidden"
  | "EvictionFailed";

export type RollState =
  | { readonly kind: "none" }
  | { readonly kind: "asked"; readonly record: RestartRecord; readonly pod: RestartPod }
  | { readonly kind: "leaving" | "short" | "done"; readonly record: RestartRecord };

export interface RollStateFacts {
  readonly pods: readonly RestartPod[];
  /** In the order of the spec. */
  readonly subsets: readonly string[];
  /** The last written `status.restart`. */
  readonly previous: RestartRecord | undefined;
  /** The workloads of the subset have all pods that they ask for. Set only after an `isShort` step. */
  readonly hasAllWanted?: boolean;
}

export function rollStateOf({ pods, subsets, previous: record, hasAllWanted = false }: RollStateFacts): RollState {
  if (record?.expected === undefined) return { kind: "none" };
  const pod = pods.find(({ uid, ended }) => uid === record.uid && !ended);
  if (pod?.terminating) return { kind: "leaving", record };
  if (pod !== undefined) return needsRestart(pod) ? { kind: "asked", record, pod } : { kind: "none" };
  if (hasAllWanted) return { kind: "done", record };
  // New pods of a subset that left the spec belong to another subset, so they cannot be counted here.
  const isBack = subsets.includes(record.subset) && countReady(pods, record.subset) >= record.expected;
  return { kind: isBack ? "done" : "short", record };
}

export function countReady(pods: readonly RestartPod[], subset: string): number {
  return pods.filter((pod) => pod.subset === subset && pod.ready && !pod.terminating).length;
}

// A user who moves namespaces waits this long once. A label that a controller adds arrives sooner.
export const SETTLE_MS = 20_000;
// Less than STALLED_AFTER_MS, the time after which a wait sets Ready to False.
const MAX_SETTLE_MS = 240_000;

interface Roll {
  readonly previous: RestartRecord | undefined;
  /** The restart in the record has ended before this step. */
  readonly isFinished: boolean;
  readonly subset: string;
  readonly size: number;
  readonly recent: number;
}

/** How long the need must last, in milliseconds; 0 during a roll. */
export function settleMs(baseMs: number, { previous, isFinished, subset, size, recent }: Roll): number {
  const rolls = Math.floor(recent / Math.max(1, size));
  const isOver = recent > 0 && recent % Math.max(1, size) === 0;
  const begins = isFinished ? isOver : previous === undefined || !isGoingOn(previous, subset);
  return begins ? Math.min(baseMs * 2 ** Math.min(rolls, 30), Math.max(baseMs, MAX_SETTLE_MS)) : 0;
}

// A record with `expected` whose pod needs no restart any more was undone, so the present need is a new one.
// After a pause the need must last again, because an undo may arrive later, through another watch.
function isGoingOn({ subset: before, reason, expected }: RestartRecord, subset: string): boolean {
  return expected === undefined && reason !== "Settling" && reason !== "Paused" && before === subset;
}
