// The plan of one app, computed from facts alone: the desired table, the fences, and the rules of each pod's
// proxy. Pure. For an app that is being deleted see plan-dissolution.ts. Invariant: pods with equal rules
// share one object, and each table is compared once for all pods that enforce it.
import { createHash } from "node:crypto";
import { MAX_OWNERS_HASHES } from "../../api/app-status.ts";
import type { AppRef, Snapshot } from "../../route/snapshot.ts";
import { namespacesOf, type RouteTable } from "../../route/table.ts";
import type { SourceWords } from "../../route/words.ts";
import { type RouteContent, routeDigest } from "../../wire/route-type.ts";
import type { AppSpec } from "../apps/app.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf } from "../facts/proxy-facts.ts";
import { type GoneAppPod, goneClaims, lastSnapshot, podClaims } from "./claims.ts";
import { type InForce, ownersHash, pauseAt, tableInForce } from "./paused.ts";
import { planFences, type Wait, withFences } from "./plan-fences.ts";
import { remember, rememberNames } from "./remember.ts";
import { retainedBetween, type SubsetTable } from "./retained.ts";

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
  /** True for a namespace that was just created; default none. Pods do not retain such a namespace. */
  readonly isYoung?: (namespace: string) => boolean;
}

export interface AppPlan {
  readonly desired: RouteTable;
  readonly subsets: readonly string[];
  /** What the proxies of each subset enforce now, fences included. */
  readonly rules: ReadonlyMap<string, UnversionedSnapshot>;
  /** The rules for one pod's proxy, with what it retains: one object for all pods with equal rules. */
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
  const rules = createRules({
    common: { app, podNamespace: app.namespace, lockName, callers, guard, words },
    subsets,
    tableOf: (subset) => withFences(desired, fences, subset),
    isYoung: facts.isYoung,
  });
  return {
    desired,
    subsets,
    rules: rules.all,
    rulesFor(pod) {
      // A pod without a controller is not replaced: it lists again in place.
      const from = retainsLosses && pod.controlled ? lastSnapshot(app, factsOf(podKey(pod))) : undefined;
      return rules.of(pod.subset, from);
    },
    digest: rules.digest,
    waits: fences.waits,
    kept,
    needsConfirmation: isOver && !isPaused,
    ownersHashes,
    isDissolving: false,
  };
}

/** A snapshot without the version: the version belongs to the app, not to the rules. */
export type UnversionedSnapshot = Omit<Snapshot, "version">;

interface RulesOptions {
  readonly common: Omit<RouteContent, "subset" | "table">;
  readonly subsets: readonly string[];
  /** The table of a subset, with its fences. */
  readonly tableOf: (subset: string) => RouteTable;
  /**
   * True for a namespace that was just created: it is usually lost because it gets a label while it is still
   * empty. If pods retained it, all pods of a subset would be restarted.
   */
  readonly isYoung?: ((namespace: string) => boolean) | undefined;
}

/** The rules of each subset, and of a single pod: those of its subset and what the pod retains read-only. */
export function createRules({ common, subsets, tableOf, isYoung = () => false }: RulesOptions) {
  const withTable = (subset: string, table: RouteTable) => rulesOf({ ...common, subset, table });
  const base = rememberNames((subset: string) => withTable(subset, tableOf(subset)));
  const byDigest = new Map<string, UnversionedSnapshot>();
  const retaining = (from: SubsetTable, subset: string): UnversionedSnapshot => {
    const rules = base(subset);
    const retained = retainedBetween(from, rules).flatMap((each) => {
      const namespaces = new Set([...each.namespaces].filter((name) => !isYoung(name)));
      return namespaces.size === 0 ? [] : [{ ...each, namespaces }];
    });
    if (retained.length === 0) return rules;
    const made = withTable(subset, { ...rules.table, retained });
    const same = byDigest.get(made.digest) ?? made;
    byDigest.set(made.digest, same);
    return same;
  };
  const afterTable = remember((table: RouteTable) =>
    rememberNames((before) => rememberNames((subset) => retaining({ subset: before, table }, subset))),
  );
  const all = new Map(subsets.map((subset) => [subset, base(subset)]));
  const digests = JSON.stringify([...all].map(([subset, { digest }]) => [subset, digest]));
  return {
    all,
    /** @param from the snapshot that the pod enforces now; undefined if the pod retains nothing */
    of: (subset: string, from: Snapshot | undefined) =>
      from === undefined ? base(subset) : afterTable(from.table)(from.subset)(subset),
    digest: createHash("sha256").update(digests).digest("hex").slice(0, 32),
  };
}

/** Equal rules have equal digests, in every replica and after restarts. */
export function rulesOf(content: RouteContent): UnversionedSnapshot {
  return { ...content, digest: routeDigest(content) };
}
