// How a request for the operator's lock is renamed: in the path, in field selectors. Pure. Invariant: only what names the
// lock changes; a namespace, group or label of the same name stays. Called by the election layer.

import type { Rename } from "../../kube/codec/rename.ts";
import { formatFieldTerm, parseFieldSelector } from "../../kube/field-selector.ts";
import type { ResourceInfo } from "../../kube/request-info.ts";
import { isForeignLock, isLockPlace, isLockResource, lockNameFor } from "../../route/lock.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";

/** What a request has to do with the lock. */
export type LockTouch =
  | { readonly kind: "none" }
  /** Another subset's lock, by name. */
  | { readonly kind: "foreign"; readonly name: string }
  /** The subset's own lock, by its name in the path. */
  | { readonly kind: "own" }
  /** A create, whose name only its body tells. */
  | { readonly kind: "create" }
  /** The subset's own lock, by a field selector. */
  | { readonly kind: "selected" }
  /** A collection that may hold locks. `whole` means over all namespaces. */
  | { readonly kind: "collection"; readonly whole: boolean };

export function touchOf(snapshot: Snapshot, info: ResourceInfo): LockTouch {
  const isCollection = info.verb === "list" || info.verb === "watch" || info.verb === "deletecollection";
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

/** What a name in a request means: the operator knows its lock by its own name only. */
export function touchByName(snapshot: Snapshot, name: string, own: "own" | "selected"): LockTouch | undefined {
  if (name === snapshot.lockName) return { kind: own };
  return isForeignLock(snapshot, name) ? { kind: "foreign", name } : undefined;
}

function selectedNames({ query }: ResourceInfo): string[] {
  try {
    const terms = parseFieldSelector(query.get("fieldSelector") ?? "");
    return terms.flatMap(({ field, operator, value }) => (field === "metadata.name" && operator === "=" ? [value] : []));
  } catch {
    return []; // the API server refuses it
  }
}

/** The path with another object name. Only the segment that is the name changes, not a namespace of the same text. */
export function renamePath(info: ResourceInfo, to: string): string {
  const behind = info.subresource === "" ? 0 : info.subresource.split("/").length;
  const parts = info.path.split("/");
  // segments has neither the empty part before the first slash nor the one behind a trailing slash
  parts[info.segments.length - behind] = encodeURIComponent(to);
  return parts.join("/");
}

/** The field selector written anew, with the lock's name replaced in every term on metadata.name. */
export function renameSelector(selector: string, rename: Rename | undefined): string {
  return parseFieldSelector(selector)
    .map((term) =>
      formatFieldTerm(term.field === "metadata.name" && term.value === rename?.from ? { ...term, value: rename.to } : term),
    )
    .join(",");
}

/** Field selector terms that leave out the locks of all other subsets that the routes name. */
export function withoutForeignLocks({ lockName, subset, table }: Snapshot): string {
  const subsets = new Set([DEFAULT_SUBSET, ...table.rules.flatMap((rule) => (rule.kind === "subset" ? [rule.subset] : []))]);
  subsets.delete(subset);
  const names = [...subsets].map((other) => lockNameFor(lockName, other));
  return names.map((value) => formatFieldTerm({ field: "metadata.name", operator: "!=", value })).join(",");
}
