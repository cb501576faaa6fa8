// Decides about a call, after a bounded wait where its namespace is unknown, unless the API server says that
// the namespace does not exist. Invariant: a write counts as in flight from the tick of its decision, so that
// no snapshot comes in between. Called by the isolate layer.
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { isListOrWatch } from "../../../kube/request-kind.ts";
import { StatusError } from "../../../kube/status.ts";
import { type Decision, decide, isAct, isNamedByBody, RESOURCE_MOVES, reachOf, type WriteReach } from "../../../route/decide.ts";
import { type Planner, planNothing, type QueryPlan, type ResourceScope } from "../../../route/plan-query.ts";
import { governingPlace, type ResourceView } from "../../../route/snapshot.ts";
import { editText } from "../../../route/source-words.ts";
import type { Call, ResourceCall } from "../../call/call.ts";
import { discardBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { type Enforced, enforcedNow, type Session } from "../../session/session.ts";
import { continuesFromList } from "./collection.ts";
import { passForeign } from "./foreign-writes.ts";
import { beginHold, type Hold, type HoldDeps } from "./hold.ts";
import { namedByBody } from "./object-labels.ts";
import type { RecentLoss } from "./recent-loss.ts";

export type Admission =
  /** Pass as it is. `done` must be called once a write has been answered or has failed. */
  | { readonly kind: "allow"; readonly done: (() => void) | undefined }
  /** The subset owns the namespace, and the labels of the object decide. `done` as above. */
  | { readonly kind: "check-labels"; readonly view: ResourceView; readonly done: (() => void) | undefined }
  | Narrowed
  /** A watch that would go on from an old list while its namespace moves: it must list again. */
  | { readonly kind: "expired" }
  /** The API server says that the object, or its namespace, does not exist. */
  | { readonly kind: "missing"; readonly reply: Reply };

/** A list or watch of which the client gets a part. */
export interface Narrowed {
  readonly kind: "narrow";
  readonly queryPlan: QueryPlan;
  /** The unknown namespace that is left out. */
  readonly unknown: string | undefined;
}

const EXPIRED: Admission = { kind: "expired" };

/** A handover takes less than a second, unless the manager waits for a pod that has to let go. */
const RETRY_SECONDS = 1;
const AGAIN = `try again in ${RETRY_SECONDS} s`;

/**
 * Admits a call or throws. `admitted` is called in the very tick of the decision, with the call to send: its
 * body may have been read.
 * @throws StatusError Forbidden, or ServiceUnavailable where a retry may help
 */
export async function admit<T>(
  asked: ResourceCall,
  scope: ResourceScope,
  deps: HoldDeps & { readonly planner: Planner; readonly recentLoss: RecentLoss },
  admitted: (admission: Admission, call: ResourceCall) => Promise<T>,
): Promise<T> {
  let call = asked;
  const proceed = (admission: Admission) => admitted(admission, call);
  const { session, clock } = deps;
  let hold: Hold | undefined;
  let hasWaited = false;
  try {
    for (;;) {
      const enforced = enforcedNow(session);
      const { info } = call;
      const view = enforced.view(info.group, info.resource);
      if (call === asked && isNamedByBody(view, info)) {
        call = await namedByBody(call);
        continue;
      }
      const decision = decide(view, info, scope, deps.planner);
      if (decision.kind === "allow") return proceed({ kind: "allow", done: countWrite(session, info, reachOf(info, scope)) });
      if (decision.kind === "warn") {
        passForeign(call, decision.message);
        return proceed({ kind: "allow", done: countWrite(session, info, "foreign") });
      }
      if (decision.kind === "check-labels")
        return proceed({ kind: "check-labels", view, done: countWrite(session, info, reachOf(info, scope)) });
      if (decision.kind === "narrow") return proceed({ kind: "narrow", queryPlan: decision.queryPlan, unknown: undefined });
      if (decision.kind === "refuse") {
        const mayBeLoss = !hasWaited && hold === undefined && isAct(info) && decision.why === "other-subset";
        if (mayBeLoss && (await deps.recentLoss.outlast())) {
          hasWaited = true;
          continue;
        }
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

function countWrite(session: Session, info: ResourceInfo, reach: WriteReach): (() => void) | undefined {
  if (!isAct(info)) return undefined;
  const namespace = governingPlace(info.group, info.resource, info);
  return session.beginWrite(namespace, info, reach);
}

/** The refusal of a list or watch of a resource that moves as a whole. */
export function resourceMoves(): StatusError {
  return handoverRunning(`ctrlmesh: ${RESOURCE_MOVES}`);
}

/** The answer to everything that a handover turns away for now. */
function handoverRunning(message: string): StatusError {
  const causes = [{ reason: "HandoverRunning", message }];
  return new StatusError("ServiceUnavailable", `${message}; ${AGAIN}`, { causes, retryAfterSeconds: RETRY_SECONDS });
}

function refusal(decision: Extract<Decision, { kind: "refuse" }>, { snapshot }: Enforced, call: Call): StatusError {
  const { why, message } = decision;
  call.record.reason = why;
  call.record.decision = why === "moving" ? "fenced" : "refused";
  if (why === "moving") return handoverRunning(message);
  if (why === "not-narrowable") return new StatusError("Forbidden", message);
  return new StatusError("Forbidden", `${message}; to change that, ${editText(snapshot)}`);
}

// The wait for the owner is over.
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

// The client gets an empty collection, and lists again once the namespace is granted.
function nothingOf(namespace: string): Admission {
  return { kind: "narrow", queryPlan: planNothing(namespace), unknown: namespace };
}
