// What the shards controller watches: all ShardingConfigs, with their status, since the status of a family
// contains that of its shards. A request names a family.
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import type { ControllerBase, ManagerContext } from "../../context/manager-context.ts";
import { familyNameOf } from "../family.ts";
import { createShardsReconciler } from "./reconciler.ts";

/** Gathers the changes of a family's status. */
const DEBOUNCE_MS = 100;

export type ShardsControllerOptions = ControllerBase & Pick<ManagerContext, "apps">;

export function addShardsController(options: ShardsControllerOptions): Controller {
  const configs = options.informers.store(SHARDING_CONFIGS);
  return controllerOf({ name: "shards", debounceMs: DEBOUNCE_MS, ...options })
    .watches(SHARDING_CONFIGS, (config) => [{ namespace: config.metadata.namespace ?? "", name: familyNameOf(config) }])
    .withReconciler(createShardsReconciler({ ...options, configs }));
}
