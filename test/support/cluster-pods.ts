// The pods of an app that get routes about other clusters, in any order of edits, updates, answers, births, ends and failovers.
import fc from "fast-check";
import type { Claim } from "../../src/mesh/handover/claims.ts";
import { DEFAULT_SUBSET } from "../../src/mesh/ownership/table.ts";

export const CLUSTER_SUBSETS = [DEFAULT_SUBSET, "blue", "green"];

export interface ClusterPod<R> {
  readonly name: string;
  readonly subset: string;
  enforced: R | undefined;
  outstanding: R | undefined;
  /** The leader knows what the pod enforces. */
  isKnown: boolean;
}

type PodEvent<E> =
  | { readonly kind: "edit"; readonly edit: E }
  | { readonly kind: "settle" }
  | { readonly kind: "failover" }
  | { readonly kind: "send" | "acknowledge" | "register" | "end"; readonly pod: number }
  | { readonly kind: "start"; readonly subset: string };

/** Updates and answers are the most frequent events, so that most runs get somewhere. */
export function podEvents<E>(edits: fc.Arbitrary<E>): fc.Arbitrary<PodEvent<E>> {
  const updates = ["send", "acknowledge"] as const;
  return fc.oneof(
    fc.record({ kind: fc.constant("edit" as const), edit: edits }),
    fc.record({ kind: fc.constant("settle" as const) }),
    fc.record({ kind: fc.constantFrom(...updates, ...updates, "register" as const, "end" as const), pod: fc.nat(MAX_PODS - 1) }),
    fc.record({ kind: fc.constantFrom(...updates), pod: fc.nat(MAX_PODS - 1) }),
    fc.record({ kind: fc.constant("start" as const), subset: fc.constantFrom(...CLUSTER_SUBSETS) }),
    fc.record({ kind: fc.constant("failover" as const) }),
  );
}

const MAX_PODS = 4;

interface ClusterPodsOptions<R, E> {
  readonly edit: (edit: E) => void;
  readonly claim: (podName: string, subset: string, routes: R, enforced: boolean) => Claim;
  /** @param known the routes that the pods have, as far as the leader knows */
  readonly plan: (subset: string, claims: readonly Claim[], known: readonly R[]) => R;
}

export function createClusterPods<R, E>({ edit, claim, plan }: ClusterPodsOptions<R, E>) {
  let pods: ClusterPod<R>[] = [];
  let count = 0;
  const claimsOf = (pod: ClusterPod<R>): Claim[] => {
    const { name, subset, enforced, outstanding, isKnown } = pod;
    if (!isKnown) return [{ kind: "everything", podName: name, subset: undefined }];
    const sent = outstanding === undefined ? [] : [claim(name, subset, outstanding, false)];
    return enforced === undefined ? sent : [claim(name, subset, enforced, true), ...sent];
  };
  const send = (pod: ClusterPod<R>) => {
    // At most one update is outstanding.
    if (!pod.isKnown || pod.outstanding !== undefined) return;
    const known = pods.filter(({ isKnown }) => isKnown).flatMap(routesOf);
    pod.outstanding = plan(pod.subset, pods.flatMap(claimsOf), known);
  };
  const acknowledge = (pod: ClusterPod<R>) => {
    if (!pod.isKnown || pod.outstanding === undefined) return;
    pod.enforced = pod.outstanding;
    pod.outstanding = undefined;
  };
  /** Every pod reports, and gets and answers all updates. */
  const settle = () => {
    for (const pod of pods) pod.isKnown = true;
    for (let round = 0; round < 5; round++) {
      for (const pod of pods) acknowledge(pod);
      for (const pod of pods) send(pod);
    }
    for (const pod of pods) acknowledge(pod);
  };
  const start = (subset: string) => {
    if (pods.length === MAX_PODS) return;
    pods.push({ name: `pod-${count++}`, subset, enforced: undefined, outstanding: undefined, isKnown: true });
  };
  return {
    get pods(): readonly ClusterPod<R>[] {
      return pods;
    },
    settle,
    start,
    step(event: PodEvent<E>): void {
      if (event.kind === "edit") edit(event.edit);
      else if (event.kind === "settle") settle();
      else if (event.kind === "failover") for (const pod of pods) pod.isKnown = false;
      else if (event.kind === "start") start(event.subset);
      else {
        const pod = pods[event.pod];
        if (pod === undefined) return;
        if (event.kind === "send") send(pod);
        else if (event.kind === "acknowledge") acknowledge(pod);
        else if (event.kind === "register") pod.isKnown = true;
        else pods = pods.filter((each) => each !== pod);
      }
    },
  };
}

/** The routes that a pod may enforce now: the sent ones may have come into force. */
export function routesOf<R>({ enforced, outstanding }: ClusterPod<R>): R[] {
  return [enforced, outstanding].filter((routes) => routes !== undefined);
}
