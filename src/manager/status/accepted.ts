// The condition Accepted: whether the spec is good. Pure.
import type { StatusFacts, Verdict } from "./facts.ts";

export function acceptedVerdict({ idle }: Pick<StatusFacts, "idle">): Verdict<"Accepted"> {
  if (idle.length === 0) return { status: "True", reason: "Valid", message: "the spec is valid" };
  return {
    status: "True",
    reason: "ValidInPart",
    message: `the spec is valid; without effect in this version: ${idle.join(", ")}`,
  };
}
