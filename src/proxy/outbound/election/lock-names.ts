// Finds the lock in a request, and renames it in paths and field selectors. Pure. Invariant: only the lock's
// name changes, never an equal name of a namespace, group or label.
import type { Rename } from "../../../kube/codec/codec.ts";
import { type FieldTerm, formatFieldTerm, parseFieldSelector } from "../../../kube/field-selector.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { isAnyLock, isLockPlace, isLockResource, lockNameFor } from "../../../mesh/ownership/lock.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET } from "../../../mesh/ownership/table.ts";

export type LockTouch =
  | { readonly kind: "none" }
  /** Another subset's lock, by name. */
  | { readonly kind: "other-subset"; readonly name: string }
  /** The subset's own lock, by its name in the path. */
  | { readonly kind: "own" }
  /** A create: its body has the name. */
  | { readonly kind: "create" }
  /** The subset's own lock, by a field selector. */
  | { readonly kind: "selected" }
  /** A collection that may hold locks. `whole` means over all namespaces. */
  | { readonly kind: "collection"; readonly whole: boolean };

export function touchOf(snapshot: Snapshot, info: ResourceInfo): LockTouch {
  const isCollection = info.verb === "list" || info.verb === "watch" || info.verb === "deletecollection";
  // Nothing is hidden from the only subset, and its lock keeps its name. But pods of former subsets may still
  // lead, so their leases are not deleted with all others.
  const isFree = isCollection && isOnlySubset(snapshot) && !(info.verb === "deletecollection" && info.resource === "leases");
  if (isFree && selectedNames(info).length === 0) return { kind: "none" };
  if (!isLockPlace(snapshot, info)) {
    const whole = snapshot.lockName !== "" && info.namespace === "" && isLockResource(info.group, info.resource);
    return whole && isCollection ? { kind: "collection", whole: true } : { kind: "none" };
  }
  if (info.nameInPath) return touchByName(snapshot, info.name, "own") ?? { kind: "none" };
  if (info.verb === "create") return { kind: "create" };
  if (!isCollection) return { kind: "none" };
  for (const name of selectedNames(info)) {
    const touch = touchByName(snapshot, name, "selected");
    if (touch !== undefined) return touch;
  }
  return { kind: "collection", whole: false };
}

/** The operator reaches its lock only by its own name for it. A name upstream counts as another subset's. */
export function touchByName(snapshot: Snapshot, name: string, own: "own" | "selected"): LockTouch | undefined {
  if (name === snapshot.lockName) return { kind: own };
  return isAnyLock(snapshot, name) ? { kind: "other-subset", name } : undefined;
}

/** True if the app has no subsets, so that there are no locks of other subsets. */
export function isOnlySubset({ subset, table }: Snapshot): boolean {
  return subset === DEFAULT_SUBSET && table.rules.every(({ kind }) => kind === "limit" || kind === "object-limit");
}

export function mayShowLocks({ lockName, podNamespace }: Snapshot, { group, resource, namespace }: ResourceInfo): boolean {
  return lockName !== "" && (namespace === "" || namespace === podNamespace) && isLockResource(group, resource);
}

function selectedNames({ query }: ResourceInfo): string[] {
  const terms = termsOf(query.get("fieldSelector") ?? "");
  return terms.flatMap(({ field, operator, value }) => (field === "metadata.name" && operator === "=" ? [value] : []));
}

function termsOf(selector: string): FieldTerm[] {
  try {
    return parseFieldSelector(selector);
  } catch {
    return []; // the API server refuses it
  }
}

/** The path with another object name. An equal name of the namespace stays. */
export function renamePath(info: ResourceInfo, to: string): string {
  const behind = info.subresource === "" ? 0 : info.subresource.split("/").length;
  const parts = info.path.split("/");
  // `segments` has no empty part before the first slash or behind a trailing one.
  parts[info.segments.length - behind] = encodeURIComponent(to);
  return parts.join("/");
}

export function renameSelector(selector: string, rename: Rename | undefined): string {
  return termsOf(selector)
    .map((term) =>
      formatFieldTerm(term.field === "metadata.name" && term.value === rename?.from ? { ...term, value: rename.to } : term),
    )
    .join(",");
}

export interface WholeSelector {
  /** Goes upstream. */
  readonly selector: string;
  /** What the proxy filters, by the name that the operator sees. */
  readonly keep: (shownName: string) => boolean;
}

/**
 * Splits a field selector over all namespaces that names the lock; undefined if it can stay as it is. No
 * selector can say "NAME---SUBSET in the pod's namespace, else NAME". So unless the selector limits the
 * namespace, its terms with that name are not sent.
 */
export function wholeSelector(snapshot: Snapshot, selector: string, rename: Rename): WholeSelector | undefined {
  const { from } = rename;
  const terms = termsOf(selector);
  const names = terms.filter(({ field, value }) => field === "metadata.name" && value === from);
  if (names.length === 0) return undefined;
  const pinned = terms.find(({ field, operator }) => field === "metadata.namespace" && operator === "=");
  if (pinned !== undefined && pinned.value !== snapshot.podNamespace) return undefined;
  if (pinned !== undefined) return { selector: renameSelector(selector, rename), keep: () => true };
  return {
    selector: terms
      .filter((term) => !names.includes(term) || term.operator === "!=")
      .map(formatFieldTerm)
      .join(","),
    keep: (name) => names.every(({ operator }) => (name === from) === (operator === "=")),
  };
}

/** Field selector terms that exclude the locks of all other subsets in the routes. */
export function withoutForeignLocks({ lockName, subset, table }: Snapshot): string {
  const subsets = new Set([
    DEFAULT_SUBSET,
    ...table.rules.flatMap((rule) => (rule.kind === "subset" || rule.kind === "objects" ? [rule.subset] : [])),
  ]);
  subsets.delete(subset);
  const names = [...subsets].map((other) => lockNameFor(lockName, other));
  return names.map((value) => formatFieldTerm({ field: "metadata.name", operator: "!=", value })).join(",");
}
