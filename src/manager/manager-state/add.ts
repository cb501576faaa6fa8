// What the manager-state controller watches: the ManagerState objects.
import type { ManagerStateStatus } from "../../api/manager-state.ts";
import { MANAGER_STATES } from "../../api/resources.ts";
import type { Logger } from "../../base/log.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import type { Informers } from "../../runtime/informers.ts";
import { createManagerStateReconciler } from "./reconciler.ts";

export interface ManagerStateOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly log: Logger;
  /** The status as this leader sees it. */
  readonly status: () => ManagerStateStatus;
}

export function addManagerStateController(options: ManagerStateOptions): Controller {
  return controllerOf({ name: "manager-state", ...options })
    .for(MANAGER_STATES)
    .withReconciler(createManagerStateReconciler({ ...options, states: options.informers.store(MANAGER_STATES) }));
}
