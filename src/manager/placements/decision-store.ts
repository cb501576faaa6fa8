// The PlacementDecisions of the manager on the API server. Invariant: they are watched only while the API server serves the kind.
import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { PLACEMENT_DECISIONS, PLACEMENT_VERSION, type PlacementDecision } from "../../api/placement-decision.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Informer } from "../../runtime/informers.ts";
import type { Request } from "../../runtime/reconciler.ts";
import { createServedVersion } from "../../runtime/served-version.ts";
import type { Store } from "../../runtime/store.ts";
import type { ManagerContext } from "../context/manager-context.ts";

export interface DecisionStoreOptions extends Pick<ManagerContext, "client" | "informers" | "clock" | "log"> {
  readonly onChange: (app: Request) => void;
  readonly onListed: () => void;
}

export type DecisionStore = ReturnType<typeof createDecisionStore>;

export function createDecisionStore({ client, informers, clock, log, onChange, onListed }: DecisionStoreOptions) {
  const { group, resource } = PLACEMENT_DECISIONS;
  const served = createServedVersion({ client, clock, group, resource, versions: [PLACEMENT_VERSION] });
  let informer: Informer<PlacementDecision> | undefined;

  function acquire(): Informer<PlacementDecision> {
    const acquired = informers.acquire(PLACEMENT_DECISIONS, { labelSelector: SLICE_APP_LABEL });
    acquired.store.onChange(({ object }) => {
      if (informer === acquired) onChange(appOf(object));
    });
    void acquired.store.synced.then(onListed);
    return acquired;
  }

  return {
    /** Undefined until the objects are listed, and while the kind is absent. */
    async read(signal: AbortSignal): Promise<Store<PlacementDecision> | undefined> {
      if ((await served.read(signal)) === undefined) {
        informer?.release().catch((error: unknown) => log.error({ err: error }, "a watch could not be ended"));
        informer = undefined;
        return undefined;
      }
      informer ??= acquire();
      return informer.store.hasSynced ? informer.store : undefined;
    },
  };
}

export function appOf({ metadata }: KubeObject): Request {
  return { namespace: metadata.namespace ?? "", name: metadata.labels?.[SLICE_APP_LABEL] ?? "" };
}
