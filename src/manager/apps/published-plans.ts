// The plan that the proxies of each app were last sent, for whoever shows it. Invariant: it is set after it was
// published, so nobody shows an owner of which the proxies do not know.

import { isDeepStrictEqual } from "node:util";
import { createListeners } from "../../base/listeners.ts";
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import type { Wait } from "../../mesh/handover/plan-fences.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";

/** What a plan says about owners. */
export type OwnershipPlan = Pick<
  AppPlan,
  | "desired"
  | "subsets"
  | "rules"
  | "digest"
  | "waits"
  | "clusterWaits"
  | "clusterTroubles"
  | "clusterTables"
  | "clusterTableWaits"
>;

export interface PublishedPlan {
  readonly plan: OwnershipPlan;
  /** Raised when the owners, who is waited for, or which pod cannot reach its cluster, have changed. */
  readonly version: number;
}

export type PublishedPlans = ReturnType<typeof createPublishedPlans>;

export function createPublishedPlans() {
  const plans = new Map<string, PublishedPlan>();
  const changes = createListeners<Request>();
  let version = 0;
  return {
    /** Undefined if this manager has published nothing for the app yet. */
    get: (app: Request): PublishedPlan | undefined => plans.get(formatRequest(app)),
    set(app: Request, plan: OwnershipPlan): void {
      const before = plans.get(formatRequest(app));
      const hasChanged = before === undefined || !isSame(before.plan, plan);
      plans.set(formatRequest(app), { plan, version: hasChanged ? ++version : before.version });
      if (hasChanged) changes.tell(app);
    },
    forget(app: Request): void {
      if (plans.delete(formatRequest(app))) changes.tell(app);
    },
    /** Calls the listener with each app whose owners or waits have changed, or whose plan is gone. */
    onChange: changes.add,
  };
}

// The digest covers the tables with their fences. Who is waited for is not in them.
function isSame(a: OwnershipPlan, b: OwnershipPlan): boolean {
  return a.digest === b.digest && isDeepStrictEqual(waitsOf(a), waitsOf(b));
}

function waitsOf({ waits, clusterWaits = [], clusterTroubles = [], clusterTableWaits }: OwnershipPlan): unknown {
  const abroad = clusterWaits.map(({ podName, cause, clusters }) => [podName, cause, clusters]);
  const home = waits.map(waitOf);
  const inside = [...(clusterTableWaits ?? [])].map(([cluster, each]) => [cluster, each.map(waitOf)]);
  // Not the reasons, whose words may change with each attempt.
  return [home, abroad, inside, clusterTroubles.map(({ podName, cluster }) => [podName, cluster])];
}

function waitOf({ subset, cause, to, namespaces }: Wait): unknown {
  return [subset, cause, to, namespaces.length];
}
