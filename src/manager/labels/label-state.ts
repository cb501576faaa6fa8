// How far the labelling of one resource is. Invariant: a resource is Complete only while its policy is in
// force and no object without its labels is known.
import { plainText } from "../../base/plain-text.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { LabelCounts } from "./label-counts.ts";
import { type Family, type LabelFamilies, mayLabel, whyNotLabelled } from "./label-families.ts";

export type LabelReason =
  | "Complete"
  | "ClusterScoped"
  | "NotAllowed"
  | "NotServed"
  | "Forbidden"
  | "Listing"
  | "Failing"
  | "Labelling"
  | "NoPolicy"
  | "OptedOut";

export interface LabelState extends LabelCounts {
  readonly reason: LabelReason;
  readonly message: string;
}

export interface LabelFacts extends LabelCounts {
  /** A string is the reason why no policy can label new objects. */
  readonly policy: string | { readonly isInForce: boolean; readonly failure?: string | undefined };
  readonly isListed: boolean;
  readonly optedOut: string | undefined;
  readonly failure: string | undefined;
}

export function judgeLabels({ total, labelled, policy, isListed, optedOut, failure }: LabelFacts): LabelState {
  const stateOf = (reason: LabelReason, message: string): LabelState => ({ total, labelled, reason, message });
  if (!isListed) return stateOf("Listing", "the objects are being listed");
  const policyFailure = typeof policy === "string" ? undefined : policy.failure;
  if (policyFailure !== undefined)
    return stateOf("Failing", `${labelled} of ${total} are labelled; the policy is missing: ${plainText(policyFailure)}`);
  if (labelled < total) {
    if (failure !== undefined) return stateOf("Failing", `${labelled} of ${total} are labelled: ${plainText(failure)}`);
    return stateOf("Labelling", `${labelled} of ${total} are labelled`);
  }
  if (typeof policy === "string")
    return stateOf("NoPolicy", `all ${total} are labelled; ${policy}, so new objects get their labels a moment later`);
  if (!policy.isInForce) return stateOf("NoPolicy", `all ${total} are labelled; the policy is being written`);
  if (optedOut !== undefined) return stateOf("OptedOut", `all others are labelled, but namespace ${optedOut} is opted out`);
  return stateOf("Complete", `all ${total} are labelled`);
}

export type LabelStates = ReturnType<typeof createLabelStates>;

export function createLabelStates(families: LabelFamilies) {
  const states = new Map<string, LabelState>();
  const listeners: ((of: GroupResource) => void)[] = [];
  return {
    /** Undefined if nothing is known yet. */
    get(of: GroupResource, family: Family): LabelState | undefined {
      if (mayLabel(families, family, of)) return states.get(resourceName(of));
      return { total: 0, labelled: 0, reason: "NotAllowed", message: whyNotLabelled(family, of) };
    },
    /** @param state undefined if the resource is not labelled any more */
    set(of: GroupResource, state: LabelState | undefined): void {
      const before = states.get(resourceName(of));
      if (state === undefined) states.delete(resourceName(of));
      else states.set(resourceName(of), state);
      const isSame = before?.reason === state?.reason && before?.message === state?.message;
      if (!isSame) for (const listener of listeners) listener(of);
    },
    onChange: (listener: (of: GroupResource) => void): void => void listeners.push(listener),
  };
}
