// The condition Stalled: something has waited for so long that a person has to help, and this says with what. Pure.
import { ageMs, ageText, STALLED_AFTER_MS } from "./ages.ts";
import { conditionOf, type StatusFacts, type Verdict } from "./facts.ts";
import type { Handover } from "./handover.ts";
import type { WaitReason } from "./reasons.ts";
import { remedyText, waitText } from "./wait-text.ts";

export function stalledVerdict(
  facts: StatusFacts,
  { handover }: Handover,
  converged: Verdict<"Converged">,
  lock: Verdict<"LockPermitted">,
): Verdict<"Stalled"> {
  const [row] = handover?.waitingOn ?? [];
  if (row !== undefined && isOld(facts, row.since)) {
    const subject = row.namespace ?? (handover?.phase === "Restarting" ? "the restart" : undefined);
    return {
      status: "True",
      reason: row.reason as WaitReason,
      message: `${waitText(facts, row, subject)}; to do: ${remedyText(facts, row)}`,
    };
  }
  const locked = conditionOf(facts.previous, "LockPermitted");
  if (lock.status === "False" && locked?.status === "False" && isOld(facts, locked.lastTransitionTime)) {
    return { status: "True", reason: "LockDenied", message: `${ageText(locked.lastTransitionTime, facts.now)}: ${lock.message}` };
  }
  const silent = converged.reason === "Rebuilding" ? silentVerdict(facts) : undefined;
  return silent ?? { status: "False", reason: "Progressing", message: "nothing has waited for longer than 5 min" };
}

/** Pods that have not said what they hold for so long that they will not do so by themselves. */
function silentVerdict(facts: StatusFacts): Verdict<"Stalled"> | undefined {
  const before = conditionOf(facts.previous, "Converged");
  const wait = facts.plan.waits.find(({ cause }) => cause === "unreported");
  if (wait === undefined || before?.reason !== "Rebuilding" || !isOld(facts, before.lastTransitionTime)) return undefined;
  const pod = facts.pods.find(({ name }) => name === wait.pod);
  const reason = pod?.proxy === "other-app" ? "ForeignProxy" : "NotReported";
  const row = { pod: wait.pod, reason, since: before.lastTransitionTime };
  return { status: "True", reason, message: `${waitText(facts, row, "the mesh")}; to do: ${remedyText(facts, row)}` };
}

function isOld({ now }: StatusFacts, since: string): boolean {
  return ageMs(since, now) >= STALLED_AFTER_MS;
}
