// Keeps the status of the ManagerState object current, and creates the object if it is missing. The leader
// reconciles when it begins to lead, and when a user deletes or changes the object.
import { KRUISE_GROUP } from "../../api/kind.ts";
import { MANAGER_STATE_NAME, type ManagerState, type ManagerStateStatus } from "../../api/manager-state.ts";
import { MANAGER_STATES } from "../../api/resources.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import { createIfMissing } from "../../runtime/ensure.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { ControllerBase } from "../context/manager-context.ts";

interface ManagerStateOptions extends ControllerBase {
  readonly status: () => ManagerStateStatus;
}

export function addManagerStateController({ status, ...options }: ManagerStateOptions): Controller {
  const { client, informers } = options;
  const states = informers.store(MANAGER_STATES);
  return controllerOf({ name: "manager-state", ...options })
    .for(MANAGER_STATES)
    .withReconciler({
      async reconcile({ name }, signal) {
        if (name !== MANAGER_STATE_NAME) return {};
        const object = states.get(name) ?? (await createIfMissing(client, MANAGER_STATES, MANAGER_STATE, signal));
        // The watch shows an object that another writer has just created, and queues it.
        if (object !== undefined) await writeStatus(client, MANAGER_STATES, object, status(), { signal });
        return {};
      },
    });
}

const MANAGER_STATE: ManagerState = {
  apiVersion: `${KRUISE_GROUP}/v1alpha1`,
  kind: "ManagerState",
  metadata: { name: MANAGER_STATE_NAME },
};
