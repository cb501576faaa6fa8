// Which subset a pod belongs to. Pure.
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import { type Labels, matchesTerms } from "../../../kube/label-selector.ts";
import { DEFAULT_SUBSET } from "../../../route/table.ts";

/** The first subset in spec order of which the pod has all labels; else the default subset. */
export function subsetOfPod(spec: VirtualAppSpec | undefined, podLabels: Labels): string {
  const subset = spec?.subsets?.find(({ labels }) =>
    matchesTerms(
      Object.entries(labels).map(([key, value]) => ({ key, operator: "in", values: [value] })),
      podLabels,
    ),
  );
  return subset?.name ?? DEFAULT_SUBSET;
}

/** All subsets of an app, the default one first. */
export function subsetsOf(spec: VirtualAppSpec): string[] {
  return [DEFAULT_SUBSET, ...(spec.subsets ?? []).map(({ name }) => name)];
}
