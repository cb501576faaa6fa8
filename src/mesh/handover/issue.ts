// The versions of the rules that proxies get. Pure. Invariants: versions never decrease, and no proxy gets other rules with a version that
// it knows.
import type { Snapshot } from "../ownership/snapshot.ts";
import type { AppPod } from "./app-pod.ts";
import type { AppPlan } from "./plan-app.ts";
import { type FactsOf, type ProxyFacts, podKey, snapshotsIn } from "./proxy-facts.ts";

export interface Issue {
  /** The highest version of all snapshots; the app's `status.routeVersion`. */
  readonly version: number;
  /** By digest; only those that a proxy needs. */
  readonly snapshots: ReadonlyMap<string, Snapshot>;
}

/**
 * Gives each set of rules its version. A new version exists only if a proxy must be sent something new.
 * Versions never decrease, and exceed every version that a proxy got from an earlier manager.
 * @param statusVersion the version in the app's status, for a new leader
 */
export function nextIssue(
  before: Issue | undefined,
  statusVersion: number,
  plan: AppPlan,
  pods: readonly AppPod[],
  factsOf: FactsOf,
): Issue {
  const takers = pods.flatMap((pod) => {
    const facts = pod.proxy === "own" ? factsOf(podKey(pod)) : undefined;
    return facts === undefined ? [] : [{ facts, rules: plan.rulesFor(pod) }];
  });
  const given = Math.max(before?.version ?? 0, statusVersion);
  const limit = Math.max(ALWAYS_POSSIBLE, given + MAX_LOST);
  let version = given;
  for (const { facts } of takers) {
    const named = [facts.version, ...snapshotsIn(facts).map((row) => row.version)];
    version = Math.max(version, ...named.filter((each) => each <= limit));
  }

  const snapshots = new Map<string, Snapshot>();
  for (const [digest, group] of Map.groupBy(takers, ({ rules }) => rules.digest)) {
    const connected = group.flatMap(({ facts }) => (facts.connected ? [facts] : []));
    const last = before?.snapshots.get(digest);
    const isKnown = (snapshot: Snapshot | undefined) => snapshot?.digest === digest && snapshot.version <= limit;
    const known = last ?? connected.map(({ acknowledged }) => acknowledged).find((acknowledged) => isKnown(acknowledged));
    // A proxy refuses a version lower than the highest it knows, so a version is reused only above that.
    const floor = connected.reduce((highest, facts) => Math.max(highest, highestOther(facts, digest, limit)), 0);
    const [first] = group;
    if (first === undefined) continue;
    if (known !== undefined && known.version > floor) snapshots.set(digest, last ?? { ...first.rules, version: known.version });
    else if (connected.length > 0) snapshots.set(digest, { ...first.rules, version: ++version });
  }
  return { version, snapshots };
}

/**
 * Bounds of the versions that a manager can have given: one change a second for a century, and the number of
 * versions that no status shows. A higher version comes from an attacker or a damaged file, and could exhaust
 * the integers.
 */
const ALWAYS_POSSIBLE = 2 ** 32;
const MAX_LOST = 2 ** 20;

// The highest version up to `limit` with other rules that the proxy knows.
function highestOther(facts: ProxyFacts, digest: string, limit: number): number {
  const known = snapshotsIn(facts);
  const newest = known.find((snapshot) => snapshot.version === facts.version);
  const spoken = newest?.digest === digest ? 0 : facts.version;
  const others = [spoken, ...known.map((snapshot) => (snapshot.digest === digest ? 0 : snapshot.version))];
  return Math.max(0, ...others.filter((version) => version <= limit));
}
