// The pods of a family, and the shard of each. Pure. Invariants: a pod belongs to the first shard that
// selects it; a pod of the family that no shard selects stands by, as the default subset, which owns nothing.
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { POD_NAME } from "../../api/sharding-keys.ts";
import { type Labels, matchesSelector } from "../../kube/label-selector.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import type { PodSelection } from "../apps/app.ts";
import { coveringSelector } from "./covering-selector.ts";
import type { Family } from "./family.ts";
import { ordinalOf } from "./pod-ordinal.ts";
import type { Shard } from "./shards.ts";

/** @param shards none while the shards of a root are not known */
export function familyPods({ name, root, configs }: Family, shards: readonly Shard[]): PodSelection {
  const subsetOf = (labels: Labels) => shards.find(({ pods }) => matchesSelector(pods, labels))?.name ?? DEFAULT_SUBSET;
  if (root !== undefined) return { name, ...podsOfRoot(root), subsetOf };
  const selectors = configs.flatMap(({ spec }) => spec?.selector ?? []);
  return {
    name,
    selector: coveringSelector(selectors) ?? {},
    selects: (labels) => selectors.some((selector) => matchesSelector(selector, labels)),
    subsetOf,
  };
}

/** All pods of the StatefulSet, also those with an ordinal that no shard has yet. */
function podsOfRoot({ spec }: ShardingConfig): Pick<PodSelection, "selector" | "selects"> {
  const { selector, root } = spec ?? {};
  const isOfSet = (pod = "") => ordinalOf(root?.targetStatefulSet ?? "", pod) !== undefined;
  return {
    selector: selector ?? { matchExpressions: [{ key: POD_NAME, operator: "Exists" }] },
    selects: (labels) => isOfSet(labels?.[POD_NAME]) && (selector === undefined || matchesSelector(selector, labels)),
  };
}
