// The plan that the proxies of each app were last sent, for whoever shows it. Invariant: it is set after it was
// published, so nobody shows an owner of which the proxies do not know.
import { isDeepStrictEqual } from "node:util";
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";

export type PublishedPlan = Pick<AppPlan, "desired" | "subsets" | "rules" | "digest" | "waits">;

export type PublishedPlans = ReturnType<typeof createPublishedPlans>;

export function createPublishedPlans() {
  const plans = new Map<string, PublishedPlan>();
  const listeners = new Set<(app: Request) => void>();
  return {
    /** Undefined if this manager has published nothing for the app yet. */
    get: (app: Request): PublishedPlan | undefined => plans.get(formatRequest(app)),
    set(app: Request, plan: PublishedPlan): void {
      const before = plans.get(formatRequest(app));
      plans.set(formatRequest(app), plan);
      if (before === undefined || !isSame(before, plan)) for (const listener of listeners) listener(app);
    },
    forget: (app: Request) => void plans.delete(formatRequest(app)),
    /** Calls the listener with each app whose owners or waits have changed. */
    onChange(listener: (app: Request) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

// The digest covers the tables with their fences. Who is waited for is not in them.
function isSame(a: PublishedPlan, b: PublishedPlan): boolean {
  return a.digest === b.digest && isDeepStrictEqual(waitsOf(a), waitsOf(b));
}

function waitsOf({ waits }: PublishedPlan): unknown {
  return waits.map(({ subset, cause, to, namespaces }) => [subset, cause, to, namespaces.length]);
}
