// Keeps the PlacementDecisions of an app as its plan says. Level-based. Invariant: what is published decides nothing, and no handover
// waits for it.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { PLACEMENT_DECISIONS, type PlacementDecision } from "../../api/placement-decision.ts";
import { isNamespaceEnding, isStatus } from "../../kube/status.ts";
import { ensure } from "../../runtime/ensure.ts";
import { formatRequest, type Reconciler, type Request } from "../../runtime/reconciler.ts";
import { AGAIN_MS } from "../../runtime/served-version.ts";
import type { Store } from "../../runtime/store.ts";
import { type App, dividesClusters, isLive } from "../apps/app.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import { nameOfProfile } from "../profiles/plan-mesh-clusters.ts";
import { appOf, type DecisionStore } from "./decision-store.ts";
import { placementObjects } from "./placement-objects.ts";

interface PlacementsReconcilerOptions extends Pick<ManagerContext, "apps" | "client" | "events" | "sources"> {
  readonly plans: Pick<PublishedPlans, "get">;
  readonly meshClusters: Pick<Store<MeshCluster>, "get">;
  readonly decisions: DecisionStore;
}

export function createPlacementsReconciler(options: PlacementsReconcilerOptions): Reconciler {
  const { apps, client, events, sources, plans, meshClusters, decisions } = options;
  /** By app: the names of its PlacementDecisions that objects of other programs already have. */
  const taken = new Map<string, ReadonlySet<string>>();

  /** Undefined: the app has no plan yet, so what was published stays. */
  function desiredOf(app: App | undefined): PlacementDecision[] | undefined {
    if (app === undefined || !isLive(app) || !dividesClusters(app)) return [];
    const plan = plans.get(app.ref)?.plan;
    const { resource } = sources.find((source) => source.resource.kind === app.ref.kind) ?? {};
    if (plan === undefined || resource === undefined) return undefined;
    return placementObjects(app, resource, plan, (name) => {
      const meshCluster = meshClusters.get(name, app.ref.namespace);
      return meshCluster !== undefined && nameOfProfile(meshCluster) === name;
    });
  }

  async function write(store: Store<PlacementDecision>, desired: readonly PlacementDecision[], signal: AbortSignal) {
    const names = new Set<string>();
    for (const object of desired) {
      const { namespace, name = "" } = object.metadata;
      const stored = store.get(name, namespace);
      const written = await ensure(client, PLACEMENT_DECISIONS, stored, object, { signal });
      if (written !== undefined) store.wrote(written);
      else if (stored === undefined) names.add(name);
    }
    return names;
  }

  async function remove({ metadata }: PlacementDecision, signal: AbortSignal): Promise<void> {
    const { namespace, name = "", uid } = metadata;
    const preconditions = uid === undefined ? {} : { uid };
    await client.delete(PLACEMENT_DECISIONS, { namespace, name }, { signal, preconditions }).catch((error: unknown) => {
      if (!isStatus(error, "NotFound", "Conflict")) throw error; // somebody else was faster
    });
  }

  function tell(request: Request, app: App | undefined, names: ReadonlySet<string>): void {
    const before = taken.get(formatRequest(request));
    if (names.size === 0) taken.delete(formatRequest(request));
    else taken.set(formatRequest(request), names);
    for (const name of names) {
      if (app === undefined || before?.has(name)) continue;
      const message = `PlacementDecision ${name} is not published, since an object of another program has this name`;
      events.event(app.object, "Warning", "PlacementNotPublished", message);
    }
  }

  return {
    async reconcile(request, signal) {
      const app = apps.get(request.name, request.namespace);
      const again = app !== undefined && dividesClusters(app) ? { requeueAfterMs: AGAIN_MS } : {};
      const store = await decisions.read(signal);
      const desired = store && desiredOf(app);
      if (store === undefined || desired === undefined) return again;
      const kept = new Set(desired.map(({ metadata }) => metadata.name));
      const published = store.list(request.namespace).filter((each) => appOf(each).name === request.name);
      try {
        tell(request, app, await write(store, desired, signal));
        for (const object of published.filter(({ metadata }) => !kept.has(metadata.name))) await remove(object, signal);
      } catch (error) {
        if (isNamespaceEnding(error)) return {};
        throw error;
      }
      return again;
    },
  };
}
