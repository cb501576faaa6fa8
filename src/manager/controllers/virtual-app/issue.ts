// Which version of its rules each subset is handed. Pure but for reading the registry's facts. Invariant: a version is given
// only when a proxy has to be sent something new, so a manager that restarts, or a pod that joins, changes no version; and
// versions never go back, whatever a proxy has heard from an earlier manager.
import type { ProxyRegistry } from "../../snapshot-server/proxy-registry.ts";
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
    const known = registry.facts(podKey(pod));
    return known === undefined ? [] : [{ ...known, subset: pod.subset }];
  });
  let version = Math.max(before?.version ?? 0, statusVersion, ...facts.map((row) => row.version));
  const subsets = new Map<string, { version: number; digest: string }>();
  for (const [subset, { digest }] of plan.rules) {
    const last = before?.subsets.get(subset);
    const own = facts.filter((row) => row.connected && row.subset === subset);
    const same = own.find((row) => row.enforced?.digest === digest);
    if (last?.digest === digest) subsets.set(subset, last);
    else if (same?.enforced !== undefined) subsets.set(subset, { version: same.enforced.version, digest });
    else if (own.length > 0) subsets.set(subset, { version: ++version, digest });
    else if (last !== undefined) subsets.set(subset, last);
  }
  return { version, subsets };
}
