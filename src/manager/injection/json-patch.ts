// The JSON Patch (RFC 6902) between two pods: one operation for each changed field of metadata and spec. Such
// a patch needs no comparison of lists, and is short enough for the audit log. Called by inject-pod.ts.
import { isDeepEqual } from "../../runtime/deep-equal.ts";
import type { PodManifest } from "./pod-manifest.ts";

/** An operation. "add" replaces an existing value, as the RFC says for members of an object. */
export type PatchOperation =
  | { readonly op: "add"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

/** The operations that turn `before` into `after`; none if they are equal. */
export function patchBetween(before: PodManifest, after: PodManifest): PatchOperation[] {
  return [...between("/metadata", before.metadata, after.metadata), ...between("/spec", before.spec, after.spec)];
}

type Fields = Readonly<Record<string, unknown>>;

function between(path: string, before: Fields, after: Fields): PatchOperation[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].sort().flatMap((key): PatchOperation[] => {
    const [was, is] = [before[key], after[key]];
    if (isDeepEqual(was, is)) return [];
    const at = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    return [is === undefined ? { op: "remove", path: at } : { op: "add", path: at, value: is }];
  });
}
