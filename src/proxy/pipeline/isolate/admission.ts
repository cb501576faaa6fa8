// Asks the pure core about a request and turns the answer into one that needs no more waiting: an unknown namespace is
// waited for, bounded, unless the API server says that it does not exist. Invariant: a write that is let through is counted in
// the same tick in which it was decided, so no snapshot can come in between. Called by the isolate layer.
import type { ResourceInfo, ResourceVerb } from "../../../kube/request-info.ts";
import { StatusError } from "../../../kube/status.ts";
import { type Decision, decide } from "../../../route/decide.ts";
import type { Planner, QueryPlan, Scope } from "../../../route/plan-query.ts";
import { planNothing } from "../../../route/plan-query.ts";
import { governingNamespace, governingResource, type ResourceView } from "../../../route/snapshot.ts";
import type { Enforced, Session } from "../../session/session.ts";
import { discardBody } from "../discard-body.ts";
import type { Call, Reply } from "../handler.ts";
import type { ResourceCall } from "../resource-call.ts";
import { beginHold, type Hold, type HoldDeps } from "./hold.ts";

export type Admission =
  /** Pass as it is. `done` must be called once a write has been answered or has failed. */
  | { readonly kind: "allow"; readonly done: (() => void) | undefined }
  /** Its namespace allows it; the labels of the object have to be looked at. `done` as above. */
  | { readonly kind: "judge"; readonly view: ResourceView; readonly done: (() => void) | undefined }
  | { readonly kind: "narrow"; readonly plan: QueryPlan; readonly unknown: string | undefined }
  /** What it is about does not exist; the API server has said so. */
  | { readonly kind: "missing"; readonly reply: Reply };

const WRITES: ReadonlySet<ResourceVerb> = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/**
 * Admits a call or throws. `proceed` is called in the very tick of the decision.
 * @throws StatusError Forbidden, or ServiceUnavailable where a retry may help
 */
export async function admit<T>(
  call: ResourceCall,
  scope: Scope,
  deps: HoldDeps & { readonly plan?: Planner },
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
      const decision = decide(view, info, scope, deps.plan);
      if (decision.kind === "allow") return proceed({ kind: "allow", done: countWrite(session, view, info) });
      if (decision.kind === "judge") return proceed({ kind: "judge", view, done: countWrite(session, view, info) });
      if (decision.kind === "narrow") return proceed({ kind: "narrow", plan: decision.plan, unknown: undefined });
      if (decision.kind === "refuse") throw refusal(decision, enforced, call);
      hold ??= beginHold(call, decision.namespace, deps);
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
    throw new StatusError("ServiceUnavailable", "ctrlmesh: this proxy has no routes yet", { retryAfterSeconds: 1 });
  }
  return session.current;
}

// Reviews are let through whoever owns their namespace, and change nothing: only writes in our own are counted.
function countWrite(session: Session, view: ResourceView, info: ResourceInfo): (() => void) | undefined {
  if (!WRITES.has(info.verb)) return undefined;
  const namespace = governingNamespace(info.group, info.resource, info);
  return view.standing(namespace) === "mine" ? session.beginWrite(namespace, governingResource(info)) : undefined;
}

function refusal(decision: Extract<Decision, { kind: "refuse" }>, { snapshot }: Enforced, call: Call): StatusError {
  const { why, message } = decision;
  call.record.reason = why;
  if (why === "moving") {
    call.record.decision = "fenced";
    return new StatusError("ServiceUnavailable", `${message}; try again`, { retryAfterSeconds: 1 });
  }
  call.record.decision = "refused";
  if (why === "not-narrowable") return new StatusError("Forbidden", message);
  const app = `${snapshot.app.namespace}/${snapshot.app.name}`;
  return new StatusError("Forbidden", `${message}; to change that, edit the route of the VirtualApp ${app}`);
}

// Nobody has said in time.
function notKnown(namespace: string, info: ResourceInfo, call: Call): Admission {
  if (isRead(info)) return nothingOf(namespace);
  call.record.decision = "fenced";
  call.record.reason = "unknown";
  const message = `ctrlmesh: ${info.verb} in namespace "${namespace}": the manager has not said yet which subset owns it; try again`;
  throw new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}

function isMissing(namespace: string, info: ResourceInfo, reply: Reply): Admission {
  if (!isRead(info)) return { kind: "missing", reply };
  discardBody(reply.body);
  return nothingOf(namespace);
}

// A read of the collection is answered with nothing; it lists again once the namespace is granted.
function nothingOf(namespace: string): Admission {
  return { kind: "narrow", plan: planNothing(namespace), unknown: namespace };
}

function isRead({ verb }: ResourceInfo): boolean {
  return verb === "list" || verb === "watch";
}
