// What messages, status, metrics and logs call subsets, owners, and the source objects of an app. Pure.
// Invariant: inside the code and on the wire the default subset's name is "" (DEFAULT_SUBSET), and no spec
// may name a subset `default`.
import { CLUSTER_SCOPE, isInClusterScope } from "../../kube/place.ts";
import type { Owner } from "./owners.ts";
import { DEFAULT_SUBSET } from "./table.ts";

export const DEFAULT_DISPLAY_NAME = "default";

/** The subset's name as users see it. */
export function subsetDisplayName(subset: string): string {
  return subset === DEFAULT_SUBSET ? DEFAULT_DISPLAY_NAME : subset;
}

/** The subset that users see under this name. */
export function subsetOfDisplayName(name: string): string {
  return name === DEFAULT_DISPLAY_NAME ? DEFAULT_SUBSET : name;
}

export function subsetText(name: string): string {
  return name === DEFAULT_SUBSET ? "the default subset" : `subset "${name}"`;
}

/** The owner in words, for messages. `namespace` is the place that it owns. */
export function ownerText(owner: Owner, namespace = CLUSTER_SCOPE): string {
  switch (owner.kind) {
    case "subset":
      return subsetText(owner.subset);
    case "everyone":
      return "every subset";
    case "labels":
      return "other subsets, by the objects' labels";
    case "nobody":
      if (!owner.isGap) return `nobody in this app (outside of ${owner.origin})`;
      return `nobody: no shard of this family contains ${isInClusterScope(namespace) ? "them" : `namespace "${namespace}"`}`;
    case "moving":
      return "nobody yet: it is moving between subsets";
    case "unknown":
      return "not known yet";
    default:
      return owner satisfies never;
  }
}

/** The words of one source kind. The route carries them to the proxy. */
export interface SourceWords {
  readonly kind: string;
  /** What to edit to give objects to other subsets, before the app's name: "the route of the VirtualApp". */
  readonly rules: string;
  /** The field that names the operator's lock. */
  readonly lockField: string;
  /** The field that lists user agents for the default subset only; "" if the kind has none. */
  readonly agentsField: string;
}

/** The words for a route of an older manager, which has none. */
const NEUTRAL: SourceWords = {
  kind: "app",
  rules: "the rules of the app",
  lockField: "the field for the lock's name",
  agentsField: "the list of user agents",
};

/** What to do about a lock that the app does not name. `lockName` is the lock that it names; "" for none. */
export function unnamedLockText(found: string, lockName: string, { kind, lockField }: SourceWords = NEUTRAL): string {
  const [quoted, named] = [JSON.stringify(found), lockName === "" ? "none" : JSON.stringify(lockName)];
  const remedy =
    lockName === ""
      ? `set ${lockField} to ${quoted}`
      : `delete the ${kind}, wait until it is deleted, and create it again with ${lockField} ${quoted}`;
  return `${quoted} looks like a leader-election lock, and the ${kind} names ${named}: if it is the operator's lock, ${remedy}`;
}

interface OfApp {
  readonly app: { readonly namespace: string; readonly name: string };
  readonly words?: SourceWords | undefined;
}

/** What to edit to change who owns an object. */
export function editText({ app, words = NEUTRAL }: OfApp): string {
  return `edit ${words.rules} ${app.namespace}/${app.name}`;
}

/** The command that lets the app write in a frozen namespace again. `inside`: of this other cluster. */
export function thawText({ app, inside }: OfApp & { readonly inside?: string | undefined }, namespace: string): string {
  const cluster = inside === undefined ? "" : ` --cluster ${inside}`;
  return `ctrlmesh thaw ${namespace} --app ${app.name} -n ${app.namespace}${cluster}`;
}

/** Why a user agent is not served. `rule` is the entry of the list that matches it. */
export function excludedText(rule: string, { kind, agentsField }: SourceWords = NEUTRAL): string {
  return `this user agent is served in the default subset only; ${agentsField} of the ${kind} has ${JSON.stringify(rule)}`;
}
