// Decides which shards of a root own which namespaces, and stores that in the status of the root. Invariant:
// the app of the root is compiled from this status alone, so a placement grants nothing before it is stored.
// A new namespace does not queue a root, because it moves no other namespace. A cluster whose namespaces become known does, since the
// numbers of the shards are not judged before.
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import { type ShardingConfig, validateShardingConfig } from "../../../api/sharding-config.ts";
import { metadataOnly } from "../../../kube/client/resource.ts";
import { NAMESPACES, type Pod, STATEFUL_SETS, type StatefulSet } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { anyOf, type Controller, changed, controllerOf, generationChanged } from "../../../runtime/controller.ts";
import { createMergePatch } from "../../../runtime/merge-patch.ts";
import { getIfThere, preconditions } from "../../../runtime/patch-current.ts";
import { formatRequest, type Reconciler, type Request } from "../../../runtime/reconciler.ts";
import type { Store } from "../../../runtime/store.ts";
import type { WatchedClusters } from "../../cluster-namespaces/watched-clusters.ts";
import type { ControllerBase, ManagerContext } from "../../context/manager-context.ts";
import { isReadyToStay } from "../../facts/app-pods.ts";
import type { PodLists } from "../../facts/pod-watch.ts";
import { ordinalOf, readyShards, restartingShards } from "../family-pods.ts";
import { placementOf, type StatefulSetFacts } from "../placement.ts";
import { formatPlacement, storedPlacement } from "../stored-placement.ts";
import { createNamespacesAbroad, type NamespacesAbroadOptions } from "./namespaces-abroad.ts";

/** Makes a burst of ready pods one placement. */
const DEBOUNCE_MS = 20;
/** How often a placement that depends on the names of the namespaces is looked at again. */
const LOOK_MS = 600_000;

type PlacementControllerOptions = ControllerBase &
  Pick<ManagerContext, "pods" | "clock"> &
  NamespacesAbroadOptions & {
    readonly watched: Pick<WatchedClusters, "onState">;
  };

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
          changed((config) => (config as ShardingConfig).status?.placement),
          changed((config) => restartsOf(config as ShardingConfig)),
        ),
      ],
    })
    .watches(
      metadataOnly(STATEFUL_SETS),
      ({ metadata }) => rootsIn(metadata.namespace ?? "", (target) => target === metadata.name),
      { predicates: [generationChanged] },
    )
    .watches(metadataOnly(NAMESPACES), () => [])
    .on(options.watched.onState, ({ namespace }) => rootsIn(namespace, () => true))
    .on(pods.onListed, (namespace) => rootsIn(namespace, () => true))
    .on(pods.onChange, (change) => {
      const isUnchanged = change.type === "updated" && isReadyToStay(change.previous) === isReadyToStay(change.object);
      return isUnchanged ? [] : rootsOf(change.object);
    })
    .withReconciler(
      createPlacementReconciler({
        ...options,
        configs,
        namespaces: informers.store(metadataOnly(NAMESPACES)),
        abroad: createNamespacesAbroad(options),
      }),
    );
}

interface PlacementReconcilerOptions extends Pick<ManagerContext, "clock" | "log"> {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly configs: Pick<Store<ShardingConfig>, "get">;
  readonly namespaces: Pick<Store<KubeObject>, "list">;
  readonly pods: Pick<PodLists, "list">;
  /** What is known of the namespaces of other clusters. */
  readonly abroad: ReturnType<typeof createNamespacesAbroad>;
}

export function createPlacementReconciler(options: PlacementReconcilerOptions): Reconciler {
  const { client, configs, namespaces, pods, abroad, clock, log } = options;
  return {
    async reconcile(request, signal) {
      const config = configs.get(request.name, request.namespace);
      const root = config && rootOf(config);
      const known = pods.list(request.namespace);
      // The list of the pods queues the root again.
      if (config === undefined || root === undefined || known === undefined) return {};
      const target = { namespace: request.namespace, name: root.targetStatefulSet };
      const found = await getIfThere(client, STATEFUL_SETS, target, { signal });
      const statefulSet = found && factsOf(found);
      const previous = storedPlacement(config, (problems) =>
        log.warn({ root: formatRequest(request), problems }, "placement is not readable"),
      );
      const start = statefulSet?.start ?? previous?.start ?? 0;
      const step = placementOf({
        previous,
        root,
        statefulSet,
        nowMs: clock.now(),
        ready: readyShards(root, known, { family: request.name, start, active: previous?.active }),
        restarting: restartingShards(root, { start, replicas: statefulSet?.replicas ?? 0 }, config.status, known),
        namespaces: namespaces.list().map(({ metadata }) => metadata.name ?? ""),
        abroad: abroad(config, request),
      });
      if (step === undefined) return {}; // the StatefulSet queues the root again when it exists
      const changes = createMergePatch(config.status?.placement ?? {}, formatPlacement(step.placement));
      if (changes !== undefined) {
        const body = { metadata: preconditions(config), status: { placement: changes } };
        await client.patch(SHARDING_CONFIGS, request, { type: "merge", body }, { subresource: "status", signal });
        const { shards, active } = step.placement;
        log.info({ root: formatRequest(request), shards, active: active.length }, "namespaces placed");
      }
      const dependsOnNames = root.placement === "Balanced" || root.canary?.percent !== undefined;
      const againMs = dependsOnNames ? Math.min(step.againMs ?? LOOK_MS, LOOK_MS) : step.againMs;
      return againMs === undefined ? {} : { requeueAfterMs: Math.max(1, againMs) };
    },
  };
}

/** What restartingShards reads of the status. */
function restartsOf({ status }: ShardingConfig) {
  return [status?.restart?.uid, status?.rollout?.revision, status?.rollout?.waitingFor];
}

/** The valid root of a live, enabled family; undefined for any other object. */
function rootOf(config: ShardingConfig) {
  const checked = validateShardingConfig(config);
  if (!checked.ok || config.metadata.deletionTimestamp !== undefined) return undefined;
  const { root } = checked.value.spec;
  return root?.disable === true ? undefined : root;
}

function factsOf({ spec }: StatefulSet): StatefulSetFacts {
  return { replicas: spec?.replicas ?? 1, start: spec?.ordinals?.start ?? 0 };
}
