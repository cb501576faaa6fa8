// Reads the PlacementDecisions that the rules of the apps of one namespace name, and says which are missing.
import { DECISION_KEY_LABEL } from "../../api/placement-decision.ts";
import { formatRequest, type Reconciler } from "../../runtime/reconciler.ts";
import { AGAIN_MS } from "../../runtime/served-version.ts";
import { type App, isLive } from "../apps/app.ts";
import { type ChosenClusters, chosenClusters } from "../apps/chosen-clusters.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import type { DecisionWatch } from "./decision-watch.ts";
import type { KnownDecisions } from "./known-decisions.ts";
import { type SettledDecisions, settleDecisions } from "./settle-decisions.ts";

interface DecisionsReconcilerOptions extends Pick<ManagerContext, "apps" | "events" | "clock"> {
  readonly watch: DecisionWatch;
  readonly decisions: Pick<KnownDecisions, "set" | "forget">;
}

export function createDecisionsReconciler({ apps, events, clock, watch, decisions }: DecisionsReconcilerOptions): Reconciler {
  const settled = new Map<string, SettledDecisions>();
  /** By namespace: the app and key of each missing decision that an Event has named. */
  const told = new Map<string, ReadonlySet<string>>();

  function tell(namespace: string, dividing: readonly App[], chosen: ChosenClusters): void {
    const before = told.get(namespace);
    const missing = dividing.flatMap((app) =>
      keysOf(app).flatMap((key) => (chosen.has(key) ? [] : [{ app, key, id: `${formatRequest(app.ref)} ${key}` }])),
    );
    told.set(namespace, new Set(missing.map(({ id }) => id)));
    for (const { app, key, id } of missing) {
      if (before?.has(id)) continue;
      const message = `clustersFrom: the namespace has no PlacementDecision with the label ${DECISION_KEY_LABEL}=${key}, so clusters keep their owners`;
      events.event(app.object, "Warning", "PlacementDecisionMissing", message);
    }
  }

  return {
    async reconcile({ name: namespace }, signal) {
      const dividing = apps.list(namespace).filter((app) => isLive(app) && keysOf(app).length > 0);
      if (dividing.length === 0) {
        watch.forget(namespace);
        decisions.forget(namespace);
        settled.delete(namespace);
        told.delete(namespace);
        return {};
      }
      const objects = await watch.list(namespace, signal);
      if (objects === undefined) return { requeueAfterMs: AGAIN_MS };
      const now = settleDecisions(settled.get(namespace), chosenClusters(objects), clock.monotonicMs());
      settled.set(namespace, now);
      decisions.set(namespace, now.chosen);
      tell(namespace, dividing, now.chosen);
      return { requeueAfterMs: Math.min(now.againMs ?? AGAIN_MS, AGAIN_MS) };
    },
  };
}

function keysOf({ spec }: App): readonly string[] {
  return spec?.decisionKeys ?? [];
}
