// The plan of one app, computed from facts alone: the desired table, the fences, and the rules of each pod's
// proxy. Pure. The reconciler gathers the facts and carries out the plan. For an app that is being deleted
// see plan-dissolution.ts.
import { MAX_OWNERS_HASHES } from "../../api/app-status.ts";
import type { AppRef } from "../../route/snapshot.ts";
import type { SourceWords } from "../../route/source-words.ts";
import { namespacesOf, type RouteTable } from "../../route/table.ts";
import type { AppSpec } from "../apps/app.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf } from "../facts/proxy-facts.ts";
import { type InForce, ownersHash, pauseAt, tableInForce } from "./paused.ts";
import { planFences, type Wait, withFences } from "./plan-fences.ts";
import { type GoneAppPod, goneClaims, lastSnapshot, podClaims } from "./pod-claims.ts";
import { createPodRules, rulesOf, rulesOfSubsets, type UnversionedSnapshot } from "./pod-rules.ts";

export interface AppFacts
  extends Pick<AppSpec, "subsets" | "lockName" | "callers" | "guard" | "isPaused" | "maxMovingPercent" | "retainsLosses"> {
  readonly app: AppRef;
  readonly words: SourceWords | undefined;
  /** The spec's route for the existing namespaces. */
  readonly bySpec: RouteTable;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  /** Of the status: see paused.ts. Absent if the app has none yet. */
  readonly ownersHashes?: readonly string[] | undefined;
  /** Removed pods that may still write; default none. */
  readonly gone?: readonly GoneAppPod[];
  /** True for a namespace that was just created; default none. A pod does not retain such a namespace. */
  readonly isYoung?: (namespace: string) => boolean;
}

export interface AppPlan {
  readonly desired: RouteTable;
  readonly subsets: readonly string[];
  /** What the proxies of each subset enforce now, fences included. A pod may retain more, see `rulesFor`. */
  readonly rules: ReadonlyMap<string, UnversionedSnapshot>;
  /**
   * The rules for one pod's proxy: one object for all pods with equal rules. Pods that retain something need
   * a restart.
   */
  rulesFor(pod: AppPod): UnversionedSnapshot;
  /** Digest over all subsets' rules. */
  readonly digest: string;
  readonly waits: readonly Wait[];
  /** The number of namespaces that a pause keeps with another owner than the spec demands. */
  readonly kept: number;
  /** The kept namespaces are more than the app allows to move together: somebody has to confirm the moves. */
  readonly needsConfirmation: boolean;
  /** For the status: hashes of the tables whose owners a pause may keep from now on. */
  readonly ownersHashes?: readonly string[];
  /** The app is being deleted: every pod will own everything again, and none needs a restart. */
  readonly isDissolving: boolean;
}

export function planApp(facts: AppFacts): AppPlan {
  const { app, pods, factsOf, gone = [], bySpec, subsets, lockName, callers, guard, isPaused, retainsLosses } = facts;
  const { maxMovingPercent, words } = facts;
  const inForce: InForce =
    isPaused || maxMovingPercent !== undefined
      ? tableInForce(app, pods, factsOf, facts.ownersHashes)
      : { table: undefined, isLost: false, hashes: facts.ownersHashes ?? [] };
  const paused = pauseAt(bySpec, inForce.table, subsets);
  const isOver = maxMovingPercent !== undefined && paused.kept * 100 > maxMovingPercent * namespacesOf(bySpec).length;
  const { desired, kept } = isPaused || isOver ? paused : { desired: bySpec, kept: 0 };
  const added = inForce.isLost ? [] : [ownersHash(desired)];
  const ownersHashes = [...inForce.hashes.filter((hash) => !added.includes(hash)), ...added].slice(-MAX_OWNERS_HASHES);
  const fences = planFences(desired, subsets, [...podClaims(app, pods, factsOf), ...goneClaims(app, gone)]);
  const common = { app, podNamespace: app.namespace, lockName, callers, guard, words };
  const rules = rulesOfSubsets(subsets, (subset) => rulesOf({ ...common, subset, table: withFences(desired, fences, subset) }));
  const ofPods = createPodRules(rules.of, ({ subset }, table) => rulesOf({ ...common, subset, table }), facts.isYoung);
  return {
    desired,
    subsets,
    rules: rules.all,
    rulesFor(pod) {
      // A pod without a controller is not replaced: it lists again in place.
      const from = retainsLosses && pod.controlled ? lastSnapshot(app, factsOf(podKey(pod))) : undefined;
      return ofPods.of(pod.subset, from);
    },
    digest: rules.digest,
    waits: fences.waits,
    kept,
    needsConfirmation: isOver && !isPaused,
    ownersHashes,
    isDissolving: false,
  };
}
