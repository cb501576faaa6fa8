// Delays and aborts requests by the rules of FaultInjections. Invariant: a delayed request is decided about after its delay, by the routes that
// are in force then; a client that leaves ends its delay; at most 256 requests are delayed at once. The operator's lock is exempt unless a rule
// names it.
import { type Clock, sleep } from "../../base/clock.ts";
import { createStatus, reasonOfCode, type StatusReason } from "../../kube/status.ts";
import { type FaultRule, ruleName } from "../../policy/policy.ts";
import { policyRequestOf } from "../../policy/policy-request.ts";
import type { Call, Layer } from "../call/call.ts";
import { discardBody } from "../http/byte-stream.ts";
import type { Policies } from "../policies/policies.ts";
import { PolicyError } from "../policies/policy-error.ts";

export interface FaultDeps {
  readonly policies: Pick<Policies, "hasFaults" | "fault" | "metrics">;
  readonly clock: Clock;
}

const MAX_DELAYED = 256;

export function fault({ policies, clock }: FaultDeps): Layer {
  let delayed = 0;
  const delay = async (call: Call, ms: number) => {
    if (delayed >= MAX_DELAYED) return policies.metrics.delaySkipped();
    delayed++;
    try {
      await sleep(clock, ms, call.signal);
      policies.metrics.delayed(ms / 1_000);
    } finally {
      delayed--;
    }
  };
  return (next) => async (call) => {
    if (!policies.hasFaults) return next(call);
    const { delayMs, abort } = policies.fault(policyRequestOf(call.info, call.record.lock));
    if (delayMs > 0) await delay(call, delayMs);
    if (abort === undefined) return next(call);
    discardBody(call.body);
    throw refusal(call, abort.rule, abort.status);
  };
}

/** Not Expired for 410, which the client would take for its resourceVersion. */
function reasonFor(code: number): StatusReason {
  return code === 410 ? "Gone" : (reasonOfCode(code) ?? "InternalError");
}

function refusal({ record }: Call, { origin }: FaultRule, code: number): PolicyError {
  record.decision = "refused";
  record.reason = "fault";
  record.rule = ruleName(origin);
  const message = `ctrlmesh: fault injected by FaultInjection ${origin.namespace}/${origin.name}, rule "${origin.rule}"`;
  const causes = [{ reason: "FaultInjected", message: origin.rule }];
  return new PolicyError("FAULT_INJECTED", { ...createStatus(reasonFor(code), message, { causes }), code });
}
