// What a plan is computed from: the spec of the app, its pods, and what their proxies have reported.
import type { ClusterRoute } from "../ownership/clusters.ts";
import type { FrozenNamespace } from "../ownership/frozen-places.ts";
import type { AppRef, CallerPolicy, ClusterTables, Guard } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import type { SourceWords } from "../ownership/words.ts";
import type { AppPod } from "./app-pod.ts";
import type { GoneAppPod } from "./claims.ts";
import type { TableByNames } from "./plan-cluster-tables.ts";
import type { FactsOf } from "./proxy-facts.ts";

/** What the plan follows in the spec of an app. */
export interface PlannedSpec {
  /** The default subset first, then the others in the order of the spec. */
  readonly subsets: readonly string[];
  /** Name of the operator's lock; "" if it has none. */
  readonly lockName: string;
  readonly callers: CallerPolicy;
  readonly guard?: Guard | undefined;
  readonly frozen?: readonly FrozenNamespace[] | undefined;
  /** Every namespace stays with its present owner. */
  readonly isPaused: boolean;
  /** If more of the namespaces would move, in percent, they stay until it is confirmed; absent: no limit. */
  readonly maxMovingPercent?: number | undefined;
  /** The subsets with which that limit keeps namespaces; absent: all. */
  readonly keptSubsets?: readonly string[] | undefined;
  /** Pods retain lost namespaces read-only until they are restarted. */
  readonly retainsLosses: boolean;
}

export interface AppFacts extends PlannedSpec {
  readonly app: AppRef;
  readonly words: SourceWords | undefined;
  readonly bySpec: RouteTable;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  /** From the status (paused.ts); absent if it has none yet. */
  readonly ownersHashes?: readonly string[] | undefined;
  /** Removed pods that may still write; default none. */
  readonly gone?: readonly GoneAppPod[];
  /** The owners of other clusters by the spec, without fences. Absent: the app divides none. */
  readonly clusters?: readonly ClusterRoute[] | undefined;
  /** The owners inside the clusters with an upstream whose namespaces are known. Default: none. */
  readonly clusterTables?: ClusterTables | undefined;
  /** The owners inside the others, if they follow from the names that pods have. Default: they stay. */
  readonly tableByNames?: TableByNames | undefined;
  /** Pods that have ended or were removed, and whose last requests may still run in other clusters; default none. */
  readonly goneAbroad?: readonly GoneAppPod[];
  /** True for a namespace that was just created, which pods do not retain; default none. */
  readonly isYoung?: (namespace: string) => boolean;
}
