// Which version of its rules each subset is handed. Pure but for reading the registry's facts. Invariant: a version is given
// only when a proxy has to be sent something new, so a manager that restarts, or a pod that joins, changes no version; and
// versions never go back, whatever a proxy has heard from an earlier manager.
import type { Snapshot } from "../../../route/snapshot.ts";
import type { ProxyFacts, ProxyRegistry } from "../../snapshot-server/proxy-registry.ts";
import { type AppPod, podKey } from "../../translate/app-pods.ts";
import type { AppPlan } from "../../translate/plan-app.ts";

/** What was last handed out for an app. */
export interface Issue {
  /** The highest version of all. */
  readonly version: number;
  readonly subsets: ReadonlyMap<string, { readonly version: number; readonly digest: string }>;
}

/** @param statusVersion the version in the app's status, for a manager that has just begun to lead */
export function nextIssue(
  before: Issue | undefined,
  statusVersion: number,
  plan: AppPlan,
  pods: readonly AppPod[],
  registry: Pick<ProxyRegistry, "facts">,
): Issue {
  const facts = pods.flatMap((pod) => {
    const known = pod.proxy === "own" ? registry.facts(podKey(pod)) : undefined;
    return known === undefined ? [] : [{ ...known, subset: pod.subset }];
  });
  const heardOf = facts.flatMap((row) => [row.version, ...knownSnapshots(row).map((snapshot) => snapshot.version)]);
  let version = Math.max(before?.version ?? 0, statusVersion, ...heardOf);
  const subsets = new Map<string, { version: number; digest: string }>();
  for (const [subset, { digest }] of plan.rules) {
    const last = before?.subsets.get(subset);
    const own = facts.filter((row) => row.connected && row.subset === subset);
    const same = own.map((row) => row.enforced).find((enforced) => enforced?.digest === digest);
    const known = last?.digest === digest ? last : same && { version: same.version, digest };
    // A proxy takes no lower version than it has heard of: a version is used again only if no proxy is above it.
    const floor = Math.max(0, ...own.map((row) => highestOther(row, digest)));
    if (known !== undefined && known.version > floor) subsets.set(subset, known);
    else if (own.length > 0) subsets.set(subset, { version: ++version, digest });
  }
  return { version, subsets };
}

// The highest version with other rules that a proxy enforces, has been sent, or has spoken of.
function highestOther(facts: ProxyFacts, digest: string): number {
  const known = knownSnapshots(facts);
  const newest = known.find((snapshot) => snapshot.version === facts.version);
  const spoken = newest?.digest === digest ? 0 : facts.version;
  return Math.max(spoken, ...known.map((snapshot) => (snapshot.digest === digest ? 0 : snapshot.version)));
}

function knownSnapshots({ enforced, outstanding, inDoubt }: ProxyFacts): Snapshot[] {
  return [enforced, ...inDoubt, outstanding].filter((snapshot) => snapshot !== undefined);
}
