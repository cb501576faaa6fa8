// A paused app: the desired table in which namespaces stay with their present owners, whom the table in force
// gives. Pure. Invariants: moves that have begun are in the table in force, so they are completed; applied to
// its own result, `pauseAt` changes nothing.
//
// Any proxy can register a table that no manager has made. So only a table is in force whose hash is in the
// status, and a hash gets there only from a plan that did not lose the table in force.
//
// Resources that move as a whole keep the rules in force. The spec's rules apply to namespaces that the table
// in force does not have, and to those of a subset that the spec no longer has, since it has no pods.

import { remember } from "../../base/remember.ts";
import { isInClusterScope } from "../../kube/place.ts";
import { tableHash } from "../contract/table-json.ts";
import { createClasses } from "../ownership/classes.ts";
import type { AppRef, Snapshot } from "../ownership/snapshot.ts";
import { classIn, limitsOf, namespacesOf, type RouteRule, type RouteTable } from "../ownership/table.ts";
import type { AppPod } from "./app-pod.ts";
import { isOfApp, isOver, snapshotsOf } from "./claims.ts";
import { contentOf, createSignatures } from "./class-facts.ts";
import { type FactsOf, type ProxyFacts, podKey } from "./proxy-facts.ts";
import { hasNothingYet } from "./resource-fences.ts";

export interface PausedRoute {
  readonly desired: RouteTable;
  /** The number of namespaces that have another owner than the spec's rules demand. */
  readonly kept: number;
}

/** @param inForce undefined if there is nothing to keep */
export function pauseAt(bySpec: RouteTable, inForce: RouteTable | undefined, subsets: readonly string[]): PausedRoute {
  if (inForce === undefined) return { desired: bySpec, kept: 0 };
  // Fences are about one subset at one moment. They come last, so the other rules keep their indices.
  const rules = inForce.rules.filter(({ kind }) => kind !== "fence");
  const isKept = inForce.classes.map((members) =>
    members.every((at) => {
      const rule = rules[at];
      return rule?.kind !== "subset" || subsets.includes(rule.subset);
    }),
  );
  const keptClass = (namespace: string) => {
    const index = inForce.classOf.get(namespace);
    return index !== undefined && isKept[index] === true ? index : undefined;
  };
  // The cluster scope and its buckets keep their classes, if they have one.
  const namespaces = [...namespacesOf(bySpec), ...[...inForce.classOf.keys()].filter(isInClusterScope)];
  const needsSpec = namespaces.some((namespace) => keptClass(namespace) === undefined);
  const joined = needsSpec ? joinRules(rules, bySpec.rules) : { rules, places: [] };
  const desired: RouteTable = {
    rules: joined.rules,
    ...joinClasses(namespaces, (namespace) => {
      const index = keptClass(namespace);
      if (index !== undefined) return { key: index, members: () => keptMembers(inForce.classes[index] ?? [], rules, joined) };
      const own = classIn(bySpec, namespace) ?? 0;
      return { key: -1 - own, members: () => specMembers(bySpec.classes[own] ?? [], rules, joined) };
    }),
    sharedResources: inForce.sharedResources,
    fenced: new Set(),
  };
  const [now, asked] = [createSignatures(desired), createSignatures(bySpec)];
  return { desired, kept: namespacesOf(bySpec).filter((namespace) => now(namespace) !== asked(namespace)).length };
}

interface JoinedRules {
  readonly rules: readonly RouteRule[];
  /** For each rule of the spec its index in `rules`; undefined for rules on resources, which a pause keeps. */
  readonly places: readonly (number | undefined)[];
}

// Appends the spec's rules on namespaces, unless the rules in force contain them in the same order.
function joinRules(inForce: readonly RouteRule[], spec: readonly RouteRule[]): JoinedRules {
  const isAboutNamespaces = ({ kind }: RouteRule) => kind === "limit" || kind === "subset";
  const texts = inForce.map((rule) => (isAboutNamespaces(rule) ? contentOf(rule) : ""));
  let from = 0;
  const found = spec.map((rule) => {
    if (!isAboutNamespaces(rule)) return undefined;
    const at = texts.indexOf(contentOf(rule), from);
    from = at < 0 ? texts.length : at + 1;
    return at;
  });
  if (!found.includes(-1)) return { rules: inForce, places: found };
  const rules = [...inForce];
  const places = spec.map((rule) => (isAboutNamespaces(rule) ? rules.push(rule) - 1 : undefined));
  return { rules, places };
}

// A namespace under one set of rules counts as inside the limits of the other set, so that they do not
// exclude it.
function keptMembers(members: readonly number[], inForce: readonly RouteRule[], { rules }: JoinedRules): number[] {
  return [...members, ...limitsOf(rules).filter((at) => at >= inForce.length)];
}

function specMembers(members: readonly number[], inForce: readonly RouteRule[], { rules, places }: JoinedRules): number[] {
  const own = members.flatMap((at) => places[at] ?? []);
  const others = limitsOf(rules).filter((at) => at < inForce.length && !places.includes(at));
  return [...own, ...others].sort((a, b) => a - b);
}

function joinClasses(
  namespaces: readonly string[],
  classify: (namespace: string) => { readonly key: number; readonly members: () => readonly number[] },
): Pick<RouteTable, "classes" | "classOf"> {
  const classes = createClasses();
  const indexOfKey = new Map<number, number>();
  const classOf = new Map<string, number>();
  for (const namespace of namespaces) {
    const { key, members } = classify(namespace);
    const index = indexOfKey.get(key) ?? classes.indexOf(members());
    indexOfKey.set(key, index);
    classOf.set(namespace, index);
  }
  return { classes: classes.list, classOf };
}

export interface InForce {
  /** Undefined if there is nothing to keep, or if it is not known yet. */
  readonly table: RouteTable | undefined;
  /** No pod has a table with a hash of the status. Then the status gets no hash of the plan's own table. */
  readonly isLost: boolean;
  /** The hashes of the status that may still be needed, the newest last. */
  readonly hashes: readonly string[];
}

/** @param written the hashes of the status, the newest last; undefined if the app has no status yet */
export function tableInForce(
  app: AppRef,
  pods: readonly AppPod[],
  factsOf: FactsOf,
  written: readonly string[] | undefined,
): InForce {
  const snapshots = pods.flatMap((pod) => snapshotsOf(pod, factsOf(podKey(pod)))).filter((snapshot) => isOfApp(app, snapshot));
  const isComplete = haveAllReported(pods, factsOf);
  const claimed = new Map(snapshots.map(({ table }) => [ownersHash(table), table]));
  const isNeeded = (hash: string) => claimed.has(hash) || hash.startsWith(CLUSTERS_HASH);
  const hashes = isComplete ? (written ?? []).filter(isNeeded) : (written ?? []);
  const last = hashes.findLast((hash) => claimed.has(hash));
  if (last !== undefined) return { table: claimed.get(last), isLost: false, hashes };
  if (written !== undefined && !isComplete) return { table: undefined, isLost: true, hashes };
  return { table: newestOf(snapshots), isLost: written !== undefined, hashes: written ?? [] };
}

/** The prefix of hashes of the owners in other clusters (made-routes.ts). */
export const CLUSTERS_HASH = "clusters-";

/** SHA-256 in hex of the table without fences and retained namespaces, which do not change the owners. */
export const ownersHash = remember((table: RouteTable): string => tableHash(withoutFences(table)).toString("hex"));

// Returns the same object if nothing is left out, since its hash may be remembered.
export function withoutFences(table: RouteTable): RouteTable {
  const { retained, ...rest } = table;
  const rules = table.rules.filter(({ kind }) => kind !== "fence");
  const isPlain = retained === undefined && table.fenced.size === 0 && rules.length === table.rules.length;
  return isPlain ? table : { ...rest, rules, fenced: new Set() };
}

// Skips tables that fence everything: they were made while pods had not reported, and do not show the owners.
function newestOf(snapshots: readonly Snapshot[]): RouteTable | undefined {
  let newest: Snapshot | undefined;
  for (const snapshot of snapshots) {
    if (!hasNothingYet(snapshot.table) && snapshot.version > (newest?.version ?? -1)) newest = snapshot;
  }
  return newest?.table;
}

/** False while a pod may have routes that this manager does not know. */
export function haveAllReported(pods: readonly AppPod[], factsOf: FactsOf): boolean {
  return pods.every((pod) => hasReported(pod, factsOf(podKey(pod))));
}

function hasReported(pod: AppPod, facts: ProxyFacts | undefined): boolean {
  return pod.proxy !== "own" || isOver(pod, facts) || (facts !== undefined && !facts.mayHoldMore);
}
