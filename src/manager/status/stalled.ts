// What Ready says of a wait that has lasted so long that a person has to help: the pod, the reason, and the remedy. Pure. Called by ready.ts.
import { ageMs, STALLED_AFTER_MS } from "./ages.ts";
import { conditionOf, type StatusFacts, type Verdict } from "./facts.ts";
import type { Handover } from "./handover.ts";
import type { WaitReason } from "./reasons.ts";
import { remedyText, waitText } from "./wait-text.ts";

/** Undefined if nothing has waited for so long. */
export function stalledVerdict(
  facts: StatusFacts,
  { handover }: Handover,
  converged: Verdict<"Converged">,
): Verdict<"Ready"> | undefined {
  const [row] = handover?.waitingOn ?? [];
  if (row !== undefined && isOld(facts, row.since)) {
    const subject = row.namespace ?? (handover?.phase === "Restarting" ? "the restart" : undefined);
    const message = `${waitText(facts, row, subject)}; to do: ${remedyText(facts, row)}`;
    return { status: "False", reason: row.reason as WaitReason, message };
  }
  return converged.reason === "Rebuilding" ? silentVerdict(facts) : undefined;
}

/** Pods that have not said what they hold for so long that they will not do so by themselves. */
function silentVerdict(facts: StatusFacts): Verdict<"Ready"> | undefined {
  const before = conditionOf(facts.previous, "Converged");
  const wait = facts.plan.waits.find(({ cause }) => cause === "unreported");
  if (wait === undefined || before?.reason !== "Rebuilding" || !isOld(facts, before.lastTransitionTime)) return undefined;
  const pod = facts.pods.find(({ name }) => name === wait.podName);
  const reason = pod?.proxy === "other-app" ? "ForeignProxy" : "NotReported";
  const row = { pod: wait.podName, reason, since: before.lastTransitionTime };
  return { status: "False", reason, message: `${waitText(facts, row, "the mesh")}; to do: ${remedyText(facts, row)}` };
}

function isOld({ now }: StatusFacts, since: string): boolean {
  return ageMs(since, now) >= STALLED_AFTER_MS;
}
