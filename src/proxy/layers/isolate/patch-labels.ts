// Whether a patch may change an object's labels, from its text alone. Pure. Invariant: false only if it cannot; what is not
// understood may. So most patches (of spec, status, finalizers) need no trial. Called by object-guard.ts.

import { parseJson } from "../../../base/json.ts";
import { JSON_PATCH_TYPE, MERGE_PATCH_TYPE, STRATEGIC_MERGE_PATCH_TYPE } from "../../../kube/media-types.ts";

/** True unless the patch certainly leaves metadata.labels as they are. */
export function mayChangeLabels(mediaType: string, body: Uint8Array): boolean {
  switch (mediaType) {
    case JSON_PATCH_TYPE: {
      const operations = parse(body);
      return !Array.isArray(operations) || operations.some((operation) => !isElsewhere(operation));
    }
    case MERGE_PATCH_TYPE:
    case STRATEGIC_MERGE_PATCH_TYPE:
      return mergesLabels(parse(body));
    default:
      // An apply also takes away what it does not name, if its manager had set it before.
      return true;
  }
}

// Of equal keys the last one counts, here as in Go.
function parse(body: Uint8Array): unknown {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
}

function mergesLabels(patch: unknown): boolean {
  if (!isObject(patch) || hasDirective(patch)) return true;
  const metadata = patch.metadata;
  if (metadata === undefined) return false;
  return !isObject(metadata) || hasDirective(metadata) || Object.hasOwn(metadata, "labels");
}

// Strategic merge patches have keys such as $patch, which may replace all that is beside them.
function hasDirective(patch: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(patch).some((key) => key.startsWith("$"));
}

// The path of an operation is a JSON pointer; "" is the whole object. What is moved is taken away from where it was.
function isElsewhere(operation: unknown): boolean {
  if (!isObject(operation)) return false;
  const { op, path, from } = operation;
  if (op === "test") return true;
  const isMove = op === "move";
  if (!isMove && op !== "add" && op !== "remove" && op !== "replace" && op !== "copy") return false;
  return isOutside(path) && (!isMove || isOutside(from));
}

function isOutside(pointer: unknown): boolean {
  if (typeof pointer !== "string" || !pointer.startsWith("/") || pointer === "/metadata") return false;
  return pointer !== "/metadata/labels" && !pointer.startsWith("/metadata/labels/");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
