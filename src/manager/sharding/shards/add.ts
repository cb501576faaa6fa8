// What the shards controller watches: all ShardingConfigs, with their status, since the status of a family
// contains that of its shards. A request names a family.
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import type { Logger } from "../../../base/log.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import type { ControllerMetrics } from "../../../runtime/controller-metrics.ts";
import type { Informers } from "../../../runtime/informers.ts";
import type { Apps } from "../../apps/app.ts";
import { familyNameOf } from "../family.ts";
import { createShardsReconciler } from "./reconciler.ts";

/** Gathers the changes of a family's status. */
const DEBOUNCE_MS = 100;

export interface ShardsControllerOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly apps: Apps;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
}

export function addShardsController(options: ShardsControllerOptions): Controller {
  const configs = options.informers.store(SHARDING_CONFIGS);
  return controllerOf({ name: "shards", debounceMs: DEBOUNCE_MS, ...options })
    .watches(SHARDING_CONFIGS, (config) => [{ namespace: config.metadata.namespace ?? "", name: familyNameOf(config) }])
    .withReconciler(createShardsReconciler({ ...options, configs }));
}
