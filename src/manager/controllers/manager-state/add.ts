// Keeps the ManagerState object true: where the manager's replicas are and which one leads. Written by the leader when it
// begins to lead, and again when somebody deletes or changes it.

import { KRUISE_GROUP } from "../../../api/kind.ts";
import { MANAGER_STATE_NAME, type ManagerState, type ManagerStateStatus } from "../../../api/manager-state.ts";
import { MANAGER_STATES } from "../../../api/resources.ts";
import type { Logger } from "../../../base/log.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { isStatus } from "../../../kube/status.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import type { Informers } from "../../../runtime/informers.ts";
import type { Reconciler } from "../../../runtime/reconciler.ts";
import { writeStatus } from "../../../runtime/status-writer.ts";

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
    .withReconciler(createManagerStateReconciler(options));
}

function createManagerStateReconciler({ client, informers, status }: ManagerStateOptions): Reconciler {
  const states = informers.store(MANAGER_STATES);
  return {
    async reconcile({ name }, signal) {
      if (name !== MANAGER_STATE_NAME) return {};
      const object = states.get(MANAGER_STATE_NAME) ?? (await create(client, signal));
      await writeStatus(client, MANAGER_STATES, object, status(), { signal, fieldManager: "ctrlmesh-manager" });
      return {};
    },
  };
}

async function create(client: KubeClient, signal: AbortSignal): Promise<ManagerState> {
  const object: ManagerState = {
    apiVersion: `${KRUISE_GROUP}/v1alpha1`,
    kind: "ManagerState",
    metadata: { name: MANAGER_STATE_NAME },
  };
  try {
    return await client.create(MANAGER_STATES, object, { signal });
  } catch (error) {
    if (isStatus(error, "AlreadyExists")) return client.get(MANAGER_STATES, { name: MANAGER_STATE_NAME }, { signal });
    throw error;
  }
}
