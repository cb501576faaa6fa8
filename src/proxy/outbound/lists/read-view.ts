// The view for reads that is in force, and the refusal of lists and watches of a resource that moves as a
// whole: the rest of such a list would come out empty, and clients would believe it.
import { StatusError } from "../../../kube/status.ts";
import type { GroupResource } from "../../../kube/types.ts";
import { RESOURCE_MOVES } from "../../../route/decide.ts";
import { type ResourceView, readViewOf } from "../../../route/snapshot.ts";
import { type Enforced, enforcedNow, type Session } from "../../session/session.ts";

/** Seconds after which a client may try again. A handover takes less, unless the manager waits for a pod. */
export const RETRY_SECONDS = 1;

/** The answer to everything that a handover turns away for now. */
export function handoverRunning(message: string): StatusError {
  const causes = [{ reason: "HandoverRunning", message }];
  const text = `${message}; try again in ${RETRY_SECONDS} s`;
  return new StatusError("ServiceUnavailable", text, { causes, retryAfterSeconds: RETRY_SECONDS });
}

/** The refusal of a list or watch of a resource that moves as a whole. */
export function resourceMoves(): StatusError {
  return handoverRunning(`ctrlmesh: ${RESOURCE_MOVES}`);
}

/**
 * The view for reads that is in force at the time of the call.
 * @throws StatusError while the resource moves
 */
export function readViewNow(session: Session, { group, resource }: GroupResource): () => ResourceView {
  let enforced: Enforced | undefined;
  let view: ResourceView;
  return () => {
    const current = enforcedNow(session);
    if (current !== enforced) {
      enforced = current;
      view = readViewOf(current.view(group, resource));
    }
    if (view.isMoving) throw resourceMoves();
    return view;
  };
}
