// FaultInjection as a policy kind: it selects pods by their labels. Invariant: a fault with maxDuration is in
// effect only once its start is stored in the status, so a manager that starts anew does not prolong it.
import { durationMs } from "../../api/duration.ts";
import { FAULT_DISABLED, type FaultInjection, validateFaultInjection } from "../../api/fault-injection.ts";
import { FAULT_INJECTIONS } from "../../api/resources.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { compileFaultInjection, isError, percentOf } from "./compile-fault-injection.ts";
import { createPolicyKind, switchedOff } from "./create-policy-kind.ts";

export const faultInjectionKind = createPolicyKind({
  resource: FAULT_INJECTIONS,
  validate: validateFaultInjection,
  offReason(injection) {
    if (injection.spec.disabled === true) return "spec.disabled is true";
    const off = switchedOff(injection, FAULT_DISABLED);
    if (off !== "") return off;
    return injection.spec.maxDuration === undefined || startMs(injection) !== undefined
      ? ""
      : "waits until the start of spec.maxDuration is stored in the status";
  },
  endsMs: untilMs,
  rulesOf: (injection) => ({ faults: compileFaultInjection(injection, untilMs(injection)) }),
  isFor: ({ spec }, { labels }) => matchesSelector(spec.selector, labels),
  notes,
});

/** A percentage that was forgotten is valid, and means never. */
function* notes({ spec: { httpFault } }: FaultInjection): Iterable<string> {
  for (const [index, { delay, abort }] of httpFault.entries()) {
    const path = `spec.httpFault[${index}]`;
    if (delay !== undefined && percentOf(delay) === 0) yield `${path}.delay never happens: set percent, such as "100"`;
    if (abort === undefined) continue;
    if (percentOf(abort) === 0) yield `${path}.abort never happens: set percent, such as "100"`;
    else if (!isError(abort.httpStatus)) yield `${path}.abort never happens: httpStatus ${abort.httpStatus} means no abort`;
  }
}

function untilMs(injection: FaultInjection): number | undefined {
  const { maxDuration } = injection.spec;
  const start = startMs(injection);
  return maxDuration === undefined || start === undefined ? undefined : start + durationMs(maxDuration);
}

/** When the manager first saw the present spec; undefined unless it is stored. */
function startMs({ metadata, status }: FaultInjection): number | undefined {
  if (status?.specSince === undefined || status.observedGeneration !== metadata.generation) return undefined;
  return Date.parse(status.specSince);
}
