// How far the labelling of one resource is. Pure but for the list of states, which the labels controller
// writes and the app reconciler reads. Invariant: a resource is Complete only if every API server labels its
// new objects, and a list that began later found no object without its labels.
import { plainText } from "../../base/plain-text.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { AppRef } from "../apps/app.ts";
import { type LabelFamilies, mayLabel, whyNotLabelled } from "./label-families.ts";
import type { LabelCounts } from "./right-labels.ts";

export type LabelReason =
  | "Complete"
  /** Not to be labelled: its objects are in no namespace. */
  | "ClusterScoped"
  /** The chart does not name the family. */
  | "NotAllowed"
  | "NotServed"
  | "Forbidden"
  | "Listing"
  | "Failing"
  | "Labelling"
  | "NoPolicy"
  | "OptedOut"
  | "Settling";

export interface LabelState extends LabelCounts {
  readonly reason: LabelReason;
  readonly message: string;
}

export interface LabelFacts extends LabelCounts {
  /** A string: why no policy can label new objects. */
  readonly policy: string | { readonly isInForce: boolean; readonly forMs: number; readonly failure?: string | undefined };
  /** A list of the objects is known. */
  readonly isListed: boolean;
  /** The list began when the policy had been in force for `settleMs`. */
  readonly isChecked: boolean;
  /** A namespace that is opted out. */
  readonly optedOut: string | undefined;
  /** Why an object could not be patched. */
  readonly failure: string | undefined;
  readonly settleMs: number;
}

export function judgeLabels(facts: LabelFacts): LabelState {
  const { total, labelled, policy, settleMs, optedOut } = facts;
  const said = (reason: LabelReason, message: string): LabelState => ({ total, labelled, reason, message });
  if (!facts.isListed) return said("Listing", "the objects are being listed");
  const policyFailure = typeof policy === "string" ? undefined : policy.failure;
  if (policyFailure !== undefined)
    return said("Failing", `${labelled} of ${total} are labelled; the policy is missing: ${plainText(policyFailure)}`);
  if (labelled < total) {
    if (facts.failure !== undefined) return said("Failing", `${labelled} of ${total} are labelled: ${plainText(facts.failure)}`);
    return said("Labelling", `${labelled} of ${total} are labelled`);
  }
  if (typeof policy === "string") {
    const text = `${policy}, so new objects get their labels a moment later, and the proxies do not select by labels`;
    return said("NoPolicy", `all ${total} are labelled; ${text}`);
  }
  if (optedOut !== undefined) {
    return said(
      "OptedOut",
      `all others are labelled, but namespace ${optedOut} is opted out, so the proxies do not select by labels`,
    );
  }
  if (!policy.isInForce || policy.forMs < settleMs || !facts.isChecked) {
    const seconds = Math.round(settleMs / 1000);
    return said(
      "Settling",
      `all ${total} are labelled; they are checked again when the policy has been in force for ${seconds} s`,
    );
  }
  return said("Complete", `all ${total} are labelled`);
}

export interface LabelStates {
  /** Of the resource, for this family. Undefined if nothing is known yet. */
  get(of: GroupResource, family: Pick<AppRef, "namespace" | "name">): LabelState | undefined;
  /** Undefined: the resource is not labelled any more. */
  set(of: GroupResource, state: LabelState | undefined): void;
  onChange(listener: (of: GroupResource) => void): void;
}

export function createLabelStates(families: LabelFamilies): LabelStates {
  const states = new Map<string, LabelState>();
  const listeners: ((of: GroupResource) => void)[] = [];
  return {
    get(of, family) {
      if (mayLabel(families, family, of)) return states.get(resourceName(of));
      return { total: 0, labelled: 0, reason: "NotAllowed", message: whyNotLabelled(family, of) };
    },
    set(of, state) {
      const before = states.get(resourceName(of));
      if (state === undefined) states.delete(resourceName(of));
      else states.set(resourceName(of), state);
      const isSame = before?.reason === state?.reason && before?.message === state?.message;
      if (!isSame) for (const listener of listeners) listener(of);
    },
    onChange: (listener) => void listeners.push(listener),
  };
}
