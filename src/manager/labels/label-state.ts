// How far the labelling of one resource is, and the status field `labels` of an app. Invariant: a resource is
// Complete only while its policy is in force and no object without its labels is known.

import { z } from "zod";
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { tryParseJson } from "../../base/json.ts";
import { plainText } from "../../base/plain-text.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { AppRef } from "../apps/app.ts";
import { isNamespaces, type LabelCounts } from "./right-labels.ts";

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
  /** A string: why no policy can label new objects. */
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

export interface LabelStates {
  /** Undefined if nothing is known yet. */
  get(of: GroupResource, family: Family): LabelState | undefined;
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

export type LabelsStatus = NonNullable<ShardingStatus["labels"]>;

const MAX_COMPLETE = 256;

// The status shows the first of these reasons.
const WORST_FIRST = ["NotAllowed", "Forbidden", "NotServed", "Failing", "Listing", "Labelling", "NoPolicy", "OptedOut"];

/**
 * @param resources the labelled resources of the app
 * @param previous stays until every resource has a state, and while no resources are listed but complete ones
 * and the namespaces: a manager that has just begun to lead knows nothing worse
 */
export function labelsStatus(
  resources: readonly GroupResource[],
  stateOf: (of: GroupResource) => LabelState | undefined,
  previous: LabelsStatus | undefined,
): LabelsStatus | undefined {
  if (resources.length === 0) return undefined;
  const known = resources.map((of) => ({ of, state: stateOf(of) }));
  const sum = (count: (state: LabelState) => number) =>
    known.reduce((total, { state }) => total + (state === undefined ? 0 : count(state)), 0);
  const counts = { total: sum(({ total }) => total), labelled: sum(({ labelled }) => labelled) };
  if (known.some(({ state }) => state === undefined)) {
    return previous ?? { ...counts, complete: [], waitingFor: "Listing", message: "the objects are being listed" };
  }
  const listing = known.filter(({ state }) => state?.reason === "Listing");
  // The namespaces are never among the complete resources.
  const wasComplete = (of: GroupResource) => isNamespaces(of) || previous?.complete?.includes(resourceName(of));
  if (previous !== undefined && listing.length > 0 && listing.every(({ of }) => wasComplete(of))) return previous;
  const complete = known.filter(({ of, state }) => state?.reason === "Complete" && !isNamespaces(of));
  const worst = WORST_FIRST.flatMap((reason) => known.filter(({ state }) => state?.reason === reason));
  const [first] = worst;
  const more = worst.length > 1 ? ` (and ${worst.length - 1} more of ${known.length} resources)` : "";
  return {
    ...counts,
    complete: complete.map(({ of }) => resourceName(of)).slice(0, MAX_COMPLETE),
    ...(first?.state && { waitingFor: first.state.reason, message: `${resourceName(first.of)}: ${first.state.message}${more}` }),
  };
}

/**
 * Which families may use `labelObjects`, by resource: namespace/name, or "*" for every family. Who may write
 * a ShardingConfig in any namespace can set that field, and it labels objects of all namespaces.
 */
export type LabelFamilies = ReadonlyMap<string, readonly string[]>;

export type Family = Pick<AppRef, "namespace" | "name">;

const EVERY = "*";

/** JSON such as {"configmaps":["foo-system/foo-operator"]}; "" for none. */
export const labelFamilies = z.string().transform((text, context): LabelFamilies => {
  const given = text === "" ? {} : tryParseJson(Buffer.from(text));
  const read = z.record(z.string(), z.array(z.string().regex(/^(\*|[a-z0-9.-]+\/[a-z0-9.-]+)$/))).safeParse(given);
  const message = 'is not JSON such as {"configmaps":["foo-system/foo-operator"]}, or {"configmaps":["*"]}';
  if (!read.success) context.addIssue({ code: "custom", message });
  return new Map(Object.entries(read.data ?? {}));
});

/** Namespaces are labelled for every family that may have something labelled. */
export function mayLabel(families: LabelFamilies, { namespace, name }: Family, of: GroupResource): boolean {
  const allowed = isNamespaces(of) ? [...families.values()].flat() : (families.get(resourceName(of)) ?? []);
  return allowed.includes(EVERY) || allowed.includes(`${namespace}/${name}`);
}

export function whyNotLabelled({ namespace, name }: Family, of: GroupResource): string {
  const entry = isNamespaces(of) ? "an entry" : `the entry { group: ${JSON.stringify(of.group)}, resource: ${of.resource} }`;
  return `add ${namespace}/${name} to the families of ${entry} in the chart's value rbac.labelObjects: labels are for the families that it names`;
}
