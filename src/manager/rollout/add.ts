// Watches what the rollout controller needs: the roots, their StatefulSets, pods and proxies.
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { ROLL_EXPECTED, ROLLING } from "../../api/sharding-keys.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { STATEFUL_SETS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { anyOf, type Controller, changed, controllerOf, generationChanged } from "../../runtime/controller.ts";
import { parseRequest, type Request } from "../../runtime/reconciler.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import type { Evictor } from "../restart/evictor.ts";
import { ordinalOf } from "../sharding/family-pods.ts";
import { createRolloutReconciler } from "./reconciler.ts";

const DEBOUNCE_MS = 50;

type RolloutControllerOptions = ControllerBase &
  Pick<ManagerContext, "apps" | "pods" | "registry" | "events" | "clock"> & { readonly evictor: Evictor };

const inputsOf = ({ metadata, status }: ShardingConfig) => [
  metadata.annotations?.[ROLL_EXPECTED],
  status?.rollout === undefined,
  status?.restart?.reason,
];

export function addRolloutController(options: RolloutControllerOptions): Controller {
  const { informers, pods, registry } = options;
  const configs = informers.store(SHARDING_CONFIGS);
  const statefulSets = informers.store(metadataOnly(STATEFUL_SETS));
  // If a StatefulSet has lost the label, the record and the status of its root have to be removed.
  const rootsOf = ({ metadata: { namespace = "", name, labels } }: KubeObject): Request[] =>
    configs
      .list(namespace)
      .filter(({ spec }) => spec?.root?.targetStatefulSet === name)
      .filter(({ metadata }) => labels?.[ROLLING] !== undefined || metadata.annotations?.[ROLL_EXPECTED] !== undefined)
      .map(({ metadata }) => ({ namespace, name: metadata.name ?? "" }));
  const rootsOfPod = (namespace: string, pod: string) =>
    statefulSets
      .list(namespace)
      .filter(({ metadata }) => ordinalOf(metadata.name ?? "", pod) !== undefined)
      .flatMap(rootsOf);
  return controllerOf({ name: "rollout", debounceMs: DEBOUNCE_MS, ...options })
    .for(SHARDING_CONFIGS, {
      predicates: [anyOf<ShardingConfig>(generationChanged, changed(inputsOf))],
    })
    .watches(metadataOnly(STATEFUL_SETS), rootsOf)
    .on(pods.onListed, (namespace) => statefulSets.list(namespace).flatMap(rootsOf))
    .on(pods.onChange, ({ object: { metadata } }) => rootsOfPod(metadata.namespace ?? "", metadata.name ?? ""))
    .on(registry.onChange, (key) => {
      const { namespace, name } = parseRequest(key);
      return rootsOfPod(namespace, name);
    })
    .withReconciler(createRolloutReconciler({ ...options, configs, statefulSets }));
}
