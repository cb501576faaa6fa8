// Delays and aborts requests by the rules of FaultInjections, which spare locks unless a rule names leases.
import { createStatus, reasonOfCode, type StatusReason } from "../../kube/status.ts";
import { type FaultRule, ruleName } from "../../policy/policy.ts";
import { type Call, type Layer, noteDecision } from "../call/call.ts";
import { discardBody } from "../http/byte-stream.ts";
import type { Policies } from "../policies/policies.ts";
import { nameOfRule, PolicyError } from "../policies/policy-refusal.ts";
import type { Session } from "../session/session.ts";
import { policedRequest } from "./policed-request.ts";

export interface FaultDeps {
  readonly session: Pick<Session, "current">;
  readonly policies: Pick<Policies, "hasFaults" | "delay" | "wait" | "abort">;
}

export function fault({ session, policies }: FaultDeps): Layer {
  return (next) => async (call) => {
    if (!policies.hasFaults) return next(call);
    const request = policedRequest(call, session);
    const delay = policies.delay(request);
    if (delay !== undefined) {
      const waited = await policies.wait(delay, call.signal);
      if (waited !== undefined) call.record.delay = waited;
    }
    // Drawn only now: the rule may have gone meanwhile.
    const abort = policies.abort(request);
    if (abort === undefined) return next(call);
    discardBody(call.body);
    throw faultRefusal(call, abort.rule, abort.status);
  };
}

// Not Expired for 410: the client would think that its resourceVersion is too old.
function reasonFor(code: number): StatusReason {
  return code === 410 ? "Gone" : (reasonOfCode(code) ?? "InternalError");
}

export function faultRefusal({ record }: Call, { origin }: FaultRule, code: number): PolicyError {
  noteDecision(record, "refused", "fault");
  record.rule = ruleName(origin);
  const message = `ctrlmesh: fault injected by ${nameOfRule(origin)}`;
  const causes = [{ reason: "FaultInjected", message: origin.rule }];
  return new PolicyError("FAULT_INJECTED", { ...createStatus(reasonFor(code), message, { causes }), code });
}
