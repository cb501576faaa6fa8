// The state of the eviction that the record describes. Pure.
//
//   none => asked      when the record of a pod is written, with the ready pods of its subset: its eviction is requested now
//   asked => leaving   when the eviction is accepted, or its result is not known (believed for a while), or the pod is terminating
//   asked => none      when the pod needs no restart any more: the edit was undone
//   leaving => asked   when the pod stays alive: its eviction is requested again, and that of no other pod
//   leaving => short   when the pod with that uid is gone
//   short => done      when the subset has as many ready pods as before, or its workloads want fewer
import { needsRestart, type RestartPod } from "./restart-pods.ts";
import type { RestartRecord } from "./restart-record.ts";

/** The pod is that of the record. */
export type RollState =
  | { readonly kind: "none" }
  | { readonly kind: "asked"; readonly record: RestartRecord; readonly pod: RestartPod }
  | { readonly kind: "leaving" | "short" | "done"; readonly record: RestartRecord };

export interface RollStateFacts {
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
  // The new pods of a subset that the spec knows no more are in another one, where nothing was counted.
  const isBack = subsets.includes(record.subset) && countReady(pods, record.subset) >= record.expected;
  return { kind: isBack ? "done" : "short", record };
}

export function countReady(pods: readonly RestartPod[], subset: string): number {
  return pods.filter((pod) => pod.subset === subset && pod.ready && !pod.terminating).length;
}
