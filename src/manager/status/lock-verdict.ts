// The condition LockPermitted: the API server lets the pods of every subset use their lock, and no proxy
// refuses an object that looks like another lock. Pure. A Role with `resourceNames` names only the operator's
// own lock: without this condition, users would notice that only by a canary that never leads.
import { plainTexts } from "../../base/plain-text.ts";
import type { LockAccessMessage } from "../../mesh/contract/messages.ts";
import { lockNameFor } from "../../mesh/ownership/lock.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { type SourceWords, subsetText, unnamedLockText } from "../../mesh/ownership/words.ts";
import { conditionOf, meshedPods, proxyOf, type StatusFacts, type Verdict } from "./facts.ts";

interface LockFacts extends Pick<StatusFacts, "pods" | "factsOf" | "lockName"> {
  readonly words: SourceWords;
  /** The previous verdict for this generation. It stays until proxies register with a new manager. */
  readonly before?: LockVerdict | undefined;
}

export const LOCK_REASONS = [
  "NoLock",
  "LockDenied",
  "LockNotNamed",
  "NotReviewed",
  "NotRenamed",
  "Permitted",
  "NotKnown",
] as const;

type LockVerdict = Verdict<(typeof LOCK_REASONS)[number]>;

/** What is known about one subset whose lock is renamed and that has pods. */
interface SubsetLock {
  readonly subset: string;
  readonly lock: string;
  readonly namespace: string;
  readonly denied: LockAccessMessage | undefined;
  readonly permitted: boolean;
  /** A proxy of the subset has registered. */
  readonly heard: boolean;
}

export function lockPermitted(facts: StatusFacts): LockVerdict {
  const before = conditionOf(facts.previous, "LockPermitted");
  if (before?.observedGeneration !== facts.generation) return lockVerdict(facts);
  const { status, reason, message } = before;
  return lockVerdict({ ...facts, before: { status, reason: reason as LockVerdict["reason"], message } });
}

export function lockVerdict(facts: LockFacts): LockVerdict {
  const { lockName, before } = facts;
  const locks = lockName === "" ? [] : subsetLocks(facts);
  const denied = locks.filter((row) => row.denied !== undefined);
  const [first] = denied;
  if (first?.denied !== undefined) {
    const more = denied.length === 1 ? "" : `; ${denied.length - 1} more subsets are denied theirs`;
    return { status: "False", reason: "LockDenied", message: deniedText(first, first.denied) + more };
  }
  const unnamed = unnamedText(facts, locks);
  if (unnamed !== undefined) return { status: "False", reason: "LockNotNamed", message: unnamed };
  if (before?.reason === "LockNotNamed" && isAnyUnheard(facts)) return before;
  if (lockName === "") return { status: "True", reason: "NoLock", message: "the app names no leader-election lock" };
  const unknown = locks.find(({ permitted }) => !permitted);
  if (unknown !== undefined && !unknown.heard && before !== undefined) return before;
  if (unknown !== undefined) {
    const message = `no pod of subset "${unknown.subset}" has used its lock "${unknown.lock}" yet: check that the operator's lock is really named "${lockName}"`;
    return { status: "Unknown", reason: "NotReviewed", message };
  }
  if (locks.length === 0) {
    return { status: "True", reason: "NotRenamed", message: `no pod uses another lock than "${lockName}"` };
  }
  const names = plainTexts(locks.map(({ lock }) => `"${lock}"`));
  return { status: "True", reason: "Permitted", message: `the operator may use ${names.join(", ")}` };
}

function subsetLocks(facts: LockFacts): SubsetLock[] {
  const { pods, lockName } = facts;
  const bySubset = new Map<string, SubsetLock>();
  for (const pod of pods) {
    const { subset, namespace } = pod;
    if (subset === DEFAULT_SUBSET || pod.proxy !== "own" || pod.ended) continue;
    const lock = lockNameFor(lockName, subset);
    const before = bySubset.get(subset) ?? { subset, lock, namespace, denied: undefined, permitted: false, heard: false };
    const proxy = proxyOf(facts, pod);
    // A report about the lock of the pod's previous subset says nothing about this lock.
    const access = proxy?.lock?.lockName === lock ? proxy.lock : undefined;
    const isDenied = access !== undefined && access.deniedVerbs.length > 0;
    bySubset.set(subset, {
      ...before,
      denied: before.denied ?? (isDenied ? access : undefined),
      permitted: before.permitted || (access !== undefined && !isDenied) || proxy?.leader === true,
      heard: before.heard || proxy !== undefined,
    });
  }
  return [...bySubset.values()];
}

// Ignores a subset that uses the lock that the app names: its leader works.
function unnamedText(facts: LockFacts, locks: readonly SubsetLock[]): string | undefined {
  const { pods, lockName, words } = facts;
  const working = new Set(locks.flatMap(({ subset, permitted }) => (permitted ? [subset] : [])));
  for (const pod of pods) if (proxyOf(facts, pod)?.leader) working.add(pod.subset);
  for (const pod of meshedPods({ pods })) {
    const lock = proxyOf(facts, pod)?.unnamedLock ?? null;
    if (lock === null || lock.lockName === lockName || working.has(pod.subset)) continue;
    const what = `${lock.resource} ${JSON.stringify(lock.lockName)} in namespace "${pod.namespace}"`;
    return `pod ${pod.name} of ${subsetText(pod.subset)} is refused ${what}: ${unnamedLockText(lock.lockName, lockName, words)}`;
  }
  return undefined;
}

function isAnyUnheard(facts: LockFacts): boolean {
  return meshedPods(facts).some((pod) => proxyOf(facts, pod) === undefined);
}

function deniedText({ subset, lock, namespace }: SubsetLock, { resource, deniedVerbs, reason }: LockAccessMessage): string {
  const [name = "", ...group] = resource.split(".");
  const place = { apiGroups: [group.join(".")], resources: [name] };
  const named = deniedVerbs.filter((verb) => verb !== "create");
  const rules = [
    ...(named.length === 0 ? [] : [{ ...place, resourceNames: [lock], verbs: named }]),
    // RBAC does not know the name of a new object, so `resourceNames` never permit a create.
    ...(named.length === deniedVerbs.length ? [] : [{ ...place, verbs: ["create"] }]),
  ].map((rule) => JSON.stringify(rule));
  const why = reason === "" ? "" : ` (${reason})`;
  return (
    `the pods of subset "${subset}" cannot elect a leader: they may not ${deniedVerbs.join(", ")} ${resource} "${lock}" in ` +
    `namespace "${namespace}"${why}; add to their Role there: ${rules.join(" and ")}`
  );
}
