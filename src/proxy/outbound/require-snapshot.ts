// No traffic before the first snapshot and policies: the proxy does not know what the pod may see and do.
import { StatusError } from "../../kube/status.ts";
import { type Layer, noteDecision } from "../call/call.ts";
import type { Session } from "../session/session.ts";

const MESSAGE =
  "ctrlmesh: this proxy has no routes or no policies from the manager yet, so it serves nothing; " +
  "see /readyz of the sidecar or the manager's log if this lasts longer than a few seconds";

export function requireSnapshot(session: Pick<Session, "current">): Layer {
  return (next) => (call) => {
    if (session.current !== undefined) return next(call);
    noteDecision(call.record, "refused", "no-snapshot");
    throw new StatusError("ServiceUnavailable", MESSAGE, { retryAfterSeconds: 1 });
  };
}
