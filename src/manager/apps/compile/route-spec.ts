// The rules of an app's route, and which of them contain a namespace: what every source kind gives to the
// compilation. Pure.
import type { Labels } from "../../../kube/label-selector.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { ClusterUpstream } from "../../../mesh/ownership/clusters.ts";
import type { ResourceMatch, RouteRule } from "../../../mesh/ownership/table.ts";

/** The facts about a namespace that rules use. */
export interface NamespaceFacts {
  readonly name: string;
  readonly labels: Labels;
}

/** The facts about another cluster that rules use. */
export interface ClusterFacts {
  /** Of its MeshCluster. */
  readonly name: string;
  readonly labels: Labels;
  /** The present owner in each app that divides it. Absent: none. */
  readonly owners?: ReadonlyMap<string, string> | undefined;
  /** A pod of an owner cannot connect to it. Absent is false. */
  readonly isUnreachable?: true | undefined;
  /** Since when all pods of the owners can, in RFC 3339. Absent: not known. */
  readonly reachableSince?: string | undefined;
  /** Its namespaces are divided. Absent: one subset owns the whole cluster. */
  readonly upstream?: ClusterUpstream | undefined;
}

export function namespaceFacts({ metadata: { name = "", labels = {} } }: Pick<KubeObject, "metadata">): NamespaceFacts {
  return { name, labels };
}

/** True if the expression matches somewhere in the name. */
export type Matches = (expression: string, name: string) => boolean;

export interface RouteSpec {
  /** As in RouteTable, without fences. */
  readonly rules: readonly RouteRule[];
  readonly sharedResources: readonly ResourceMatch[];
  /** Places beside the namespaces, with their rules: the cluster scope, and the buckets of a family. */
  readonly places: readonly (readonly [place: string, members: readonly number[]])[];
  /** The regular expressions about which `membersOf` asks. */
  readonly expressions: readonly string[];
  /** Indices into `rules`, ascending. */
  membersOf(namespace: NamespaceFacts, matches: Matches): readonly number[];
}
