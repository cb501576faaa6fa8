// Asks the pure core about a request and turns the answer into one that needs no more waiting: an unknown namespace is
// waited for, bounded, unless the API server says that it does not exist. Invariant: a write that is let through is counted in
// the same tick in which it was decided, so no snapshot can come in between. Called by the isolate layer.
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { isListOrWatch } from "../../../kube/request-kind.ts";
import { StatusError } from "../../../kube/status.ts";
import { type Decision, decide, isAct, reachOf } from "../../../route/decide.ts";
import type { Planner, QueryPlan, Scope } from "../../../route/plan-query.ts";
import { planNothing } from "../../../route/plan-query.ts";
import { governingNamespace, governingResource, type ResourceView } from "../../../route/snapshot.ts";
import type { Call } from "../../call/call.ts";
import type { ResourceCall } from "../../call/resource-call.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Reply } from "../../http/handler.ts";
import type { Enforced, Session } from "../../session/session.ts";
import { continuesFromList } from "./collection.ts";
import { beginHold, type Hold, type HoldDeps } from "./hold.ts";

export type Admission =
  /** Pass as it is. `done` must be called once a write has been answered or has failed. */
  | { readonly kind: "allow"; readonly done: (() => void) | undefined }
  /** Its namespace allows it; the labels of the object have to be looked at. `done` as above. */
  | { readonly kind: "judge"; readonly view: ResourceView; readonly done: (() => void) | undefined }
  | { readonly kind: "narrow"; readonly queryPlan: QueryPlan; readonly unknown: string | undefined }
  /** A watch that would go on from an old list while its namespace moves: it must list again. */
  | { readonly kind: "expired" }
  /** What it is about does not exist; the API server has said so. */
  | { readonly kind: "missing"; readonly reply: Reply };

const EXPIRED: Admission = { kind: "expired" };

/** A handover takes less than a second, unless a pod that has to let go is waited for. */
const RETRY_SECONDS = 1;
const AGAIN = `try again in ${RETRY_SECONDS} s`;

/**
 * Admits a call or throws. `proceed` is called in the very tick of the decision.
 * @throws StatusError Forbidden, or ServiceUnavailable where a retry may help
 */
export async function admit<T>(
  call: ResourceCall,
  scope: Scope,
  deps: HoldDeps & { readonly planner: Planner },
  proceed: (admission: Admission) => Promise<T>,
): Promise<T> {
  const { info } = call;
  const { session, clock } = deps;
  const { group, resource } = governingResource(info);
  let hold: Hold | undefined;
  try {
    for (;;) {
      const enforced = enforcedNow(session);
      const view = enforced.view(group, resource);
      const decision = decide(view, info, scope, deps.planner);
      if (decision.kind === "allow") return proceed({ kind: "allow", done: countWrite(session, info, scope) });
      if (decision.kind === "judge") return proceed({ kind: "judge", view, done: countWrite(session, info, scope) });
      if (decision.kind === "narrow") return proceed({ kind: "narrow", queryPlan: decision.plan, unknown: undefined });
      if (decision.kind === "refuse") {
        const error = refusal(decision, enforced, call);
        if (decision.why === "moving" && continuesFromList(call)) return proceed(EXPIRED);
        throw error;
      }
      hold ??= beginHold(call, decision.namespace, deps);
      if (hold === undefined) return proceed(notKnown(decision.namespace, info, call));
      const missing = hold.takeMissing();
      if (missing !== undefined) return proceed(isMissing(decision.namespace, info, missing));
      if (clock.monotonicMs() >= hold.deadlineMs) return proceed(notKnown(decision.namespace, info, call));
      await hold.next();
    }
  } finally {
    hold?.end();
  }
}

/** The snapshot in force. Throws ServiceUnavailable if there is none. */
export function enforcedNow(session: Session): Enforced {
  if (session.current === undefined) {
    throw new StatusError("ServiceUnavailable", "ctrlmesh: this proxy has no routes yet", { retryAfterSeconds: RETRY_SECONDS });
  }
  return session.current;
}

function countWrite(session: Session, info: ResourceInfo, scope: Scope): (() => void) | undefined {
  if (!isAct(info)) return undefined;
  const namespace = governingNamespace(info.group, info.resource, info);
  return session.beginWrite(namespace, governingResource(info), reachOf(info, scope));
}

/** What is said of all that a handover turns back for now. */
export function handoverRunning(message: string): StatusError {
  const causes = [{ reason: "HandoverRunning", message }];
  return new StatusError("ServiceUnavailable", `${message}; ${AGAIN}`, { causes, retryAfterSeconds: RETRY_SECONDS });
}

function refusal(decision: Extract<Decision, { kind: "refuse" }>, { snapshot }: Enforced, call: Call): StatusError {
  const { why, message } = decision;
  call.record.reason = why;
  call.record.decision = why === "moving" ? "fenced" : "refused";
  if (why === "moving") return handoverRunning(message);
  if (why === "not-narrowable") return new StatusError("Forbidden", message);
  const app = `${snapshot.app.namespace}/${snapshot.app.name}`;
  return new StatusError("Forbidden", `${message}; to change that, edit the route of the VirtualApp ${app}`);
}

// Nobody has said in time.
function notKnown(namespace: string, info: ResourceInfo, call: Call): Admission {
  if (isListOrWatch(info)) return nothingOf(namespace);
  call.record.decision = "fenced";
  call.record.reason = "unknown";
  const message = `ctrlmesh: ${info.verb} in namespace "${namespace}": the manager has not said yet which subset owns it; ${AGAIN}`;
  throw new StatusError("ServiceUnavailable", message, { retryAfterSeconds: RETRY_SECONDS });
}

function isMissing(namespace: string, info: ResourceInfo, reply: Reply): Admission {
  if (!isListOrWatch(info)) return { kind: "missing", reply };
  discardBody(reply.body);
  return nothingOf(namespace);
}

// A read of the collection is answered with nothing; it lists again once the namespace is granted.
function nothingOf(namespace: string): Admission {
  return { kind: "narrow", queryPlan: planNothing(namespace), unknown: namespace };
}
