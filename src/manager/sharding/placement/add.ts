// What the placement controller watches: the roots, the metadata of StatefulSets, whose generation grows with
// each change of their size, and the readiness of the roots' pods. Namespaces do not queue a root: as long as
// the same shards are active, no namespace moves.
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import { PLACEMENT } from "../../../api/sharding-keys.ts";
import { metadataOnly } from "../../../kube/client/resource.ts";
import { NAMESPACES, type Pod, STATEFUL_SETS } from "../../../kube/client/resources.ts";
import { anyOf, type Controller, changed, controllerOf, generationChanged } from "../../../runtime/controller.ts";
import type { Request } from "../../../runtime/reconciler.ts";
import type { ControllerBase, ManagerContext } from "../../context/manager-context.ts";
import { isReadyToStay } from "../../facts/app-pods.ts";
import { ordinalOf } from "../family-pods.ts";
import { createPlacementReconciler } from "./reconciler.ts";

/** Makes a burst of ready pods one placement. */
const DEBOUNCE_MS = 20;

export type PlacementControllerOptions = ControllerBase & Pick<ManagerContext, "pods" | "clock">;

export function addPlacementController(options: PlacementControllerOptions): Controller {
  const { informers, pods } = options;
  const configs = informers.store(SHARDING_CONFIGS);
  const rootsIn = (namespace: string, isTarget: (statefulSet: string) => boolean): Request[] =>
    configs.list(namespace).flatMap(({ metadata, spec }) => {
      const target = spec?.root?.targetStatefulSet;
      return target !== undefined && isTarget(target) ? [{ namespace, name: metadata.name ?? "" }] : [];
    });
  const rootsOf = ({ metadata }: Pod) =>
    rootsIn(metadata.namespace ?? "", (target) => ordinalOf(target, metadata.name ?? "") !== undefined);
  return controllerOf({ name: "placement", debounceMs: DEBOUNCE_MS, ...options })
    .for(SHARDING_CONFIGS, {
      predicates: [
        anyOf(
          generationChanged,
          changed(({ metadata }) => metadata.annotations?.[PLACEMENT]),
        ),
      ],
    })
    .watches(
      metadataOnly(STATEFUL_SETS),
      ({ metadata }) => rootsIn(metadata.namespace ?? "", (target) => target === metadata.name),
      { predicates: [generationChanged] },
    )
    .watches(metadataOnly(NAMESPACES), () => [])
    .on(pods.onListed, (namespace) => rootsIn(namespace, () => true))
    .on(pods.onChange, (change) => {
      const isUnchanged = change.type === "updated" && isReadyToStay(change.previous) === isReadyToStay(change.object);
      return isUnchanged ? [] : rootsOf(change.object);
    })
    .withReconciler(createPlacementReconciler({ ...options, configs, namespaces: informers.store(metadataOnly(NAMESPACES)) }));
}
