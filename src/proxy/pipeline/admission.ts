// Asks the pure core about a request and turns the answer into one that needs no more waiting: an unknown namespace is
// waited for, bounded. Invariant: a write that is let through is counted in the same tick in which it was decided, so no
// snapshot can come in between. Called by the isolate layer.
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { ResourceInfo, ResourceVerb } from "../../kube/request-info.ts";
import { StatusError } from "../../kube/status.ts";
import { type Decision, decide } from "../../route/decide.ts";
import type { QueryPlan, Scope } from "../../route/plan-query.ts";
import { planNothing } from "../../route/plan-query.ts";
import { governingNamespace, type ResourceView } from "../../route/snapshot.ts";
import type { Enforced, Session } from "../session/session.ts";
import type { Call } from "./handler.ts";

export type Admission =
  /** Pass as it is. `done` must be called once a write has been answered or has failed. */
  | { readonly kind: "allow"; readonly done: (() => void) | undefined }
  | { readonly kind: "narrow"; readonly plan: QueryPlan; readonly unknown: string | undefined };

export interface AdmissionDeps {
  readonly session: Session;
  readonly clock: Clock;
  /** How long a request waits for an unknown namespace's owner. */
  readonly holdMs: number;
}

const WRITES: ReadonlySet<ResourceVerb> = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/**
 * Admits a call or throws. `proceed` is called in the very tick of the decision.
 * @throws StatusError Forbidden, or ServiceUnavailable where a retry may help
 */
export async function admit<T>(
  call: Call & { readonly info: ResourceInfo },
  scope: Scope,
  deps: AdmissionDeps,
  proceed: (admission: Admission) => Promise<T>,
): Promise<T> {
  const { info } = call;
  const { session, clock } = deps;
  const deadlineMs = clock.monotonicMs() + deps.holdMs;
  for (;;) {
    const enforced = enforcedNow(session);
    const view = enforced.view(info.group, info.resource);
    const decision = decide(view, info, scope);
    if (decision.kind === "allow") return proceed({ kind: "allow", done: countWrite(session, view, info) });
    if (decision.kind === "narrow") return proceed({ kind: "narrow", plan: decision.plan, unknown: undefined });
    if (decision.kind === "refuse") throw refusal(decision, enforced, call);
    if (clock.monotonicMs() >= deadlineMs) return proceed(notKnown(decision.namespace, info, call));
    const startedMs = clock.monotonicMs();
    await nextChange(session, clock, deadlineMs - startedMs, call.signal);
    call.record.waitedMs = (call.record.waitedMs ?? 0) + clock.monotonicMs() - startedMs;
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
  return view.standing(namespace) === "mine" ? session.beginWrite(namespace, info) : undefined;
}

function refusal(decision: Extract<Decision, { kind: "refuse" }>, { snapshot }: Enforced, call: Call): StatusError {
  const { why, message } = decision;
  if (why === "moving") {
    call.record.decision = "fenced";
    return new StatusError("ServiceUnavailable", `${message}; try again`, { retryAfterSeconds: 1 });
  }
  call.record.decision = "refused";
  if (why === "not-narrowable") return new StatusError("Forbidden", message);
  const app = `${snapshot.app.namespace}/${snapshot.app.name}`;
  return new StatusError("Forbidden", `${message}; to change that, edit the route of the VirtualApp ${app}`);
}

// Nobody has said in time. A read of the collection is answered with nothing; it lists again once the namespace is granted.
function notKnown(namespace: string, info: ResourceInfo, call: Call): Admission {
  if (info.verb === "list" || info.verb === "watch") return { kind: "narrow", plan: planNothing(namespace), unknown: namespace };
  call.record.decision = "fenced";
  const message = `ctrlmesh: ${info.verb} in namespace "${namespace}": the manager has not said yet which subset owns it; try again`;
  throw new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}

function nextChange(session: Session, clock: Clock, timeoutMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) => {
      unsubscribe();
      timer.cancel();
      signal.removeEventListener("abort", gone);
      settle();
    };
    const gone = () =>
      finish(() => reject(new MeshError("ABORTED", "waiting for a namespace's owner: aborted", { cause: signal.reason })));
    const unsubscribe = session.onChange(() => finish(resolve));
    const timer = clock.after(timeoutMs, () => finish(resolve));
    if (signal.aborted) gone();
    else signal.addEventListener("abort", gone, { once: true });
  });
}
