// Strategic merge patch for the built-in kinds. Lists with a merge key (merge-keys.ts) merge item by item. Pure.
//
// `$patch: delete | replace`, `$deleteFromPrimitiveList/...`, `$retainKeys` and `$setElementOrder/...` work as far as kubectl
// apply sends them: order hints for lists with a key, $retainKeys for objects.
import { asArray, isObject, type JsonObject } from "../model/object.ts";
import { builtInListKind } from "./merge-keys.ts";

/** The document with the patch merged in. */
export function applyStrategicMerge(document: unknown, patch: unknown, path: readonly string[] = []): unknown {
  if (!isObject(patch)) return structuredClone(patch);
  if (patch.$patch === "replace") return withoutDirectives(patch);
  if (patch.$patch === "delete") return {};
  const merged: JsonObject = isObject(document) ? { ...document } : {};
  const retained = asArray(patch.$retainKeys);
  if (retained.length > 0) for (const key of Object.keys(merged)) if (!retained.includes(key)) delete merged[key];
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$")) continue;
    if (value === null) delete merged[key];
    else if (Array.isArray(value)) merged[key] = mergeList(asArray(merged[key]), value, [...path, key]);
    else merged[key] = applyStrategicMerge(merged[key], value, [...path, key]);
  }
  applyListDirectives(merged, patch, path);
  return merged;
}

function mergeList(current: readonly unknown[], patch: readonly unknown[], path: readonly string[]): unknown[] {
  const kind = builtInListKind(path);
  if (patch.some((item) => isObject(item) && item.$patch === "replace")) {
    return structuredClone(patch.filter((item) => !(isObject(item) && item.$patch === "replace")));
  }
  if (kind.kind === "set") return [...new Set([...current, ...patch])];
  if (kind.kind === "atomic") return structuredClone([...patch]);
  const merged = [...current];
  for (const item of patch) {
    if (!isObject(item)) continue;
    const index = merged.findIndex((other) => isObject(other) && other[kind.patchKey] === item[kind.patchKey]);
    if (item.$patch === "delete") {
      if (index >= 0) merged.splice(index, 1);
    } else if (index >= 0) merged[index] = applyStrategicMerge(merged[index], item, path);
    else merged.push(withoutDirectives(item));
  }
  return merged;
}

function applyListDirectives(merged: JsonObject, patch: JsonObject, path: readonly string[]): void {
  for (const [key, value] of Object.entries(patch)) {
    const [directive, field = ""] = key.split("/");
    if (directive === "$deleteFromPrimitiveList") {
      merged[field] = asArray(merged[field]).filter((item) => !asArray(value).includes(item));
    } else if (directive === "$setElementOrder" && Array.isArray(merged[field])) {
      merged[field] = inOrder(asArray(merged[field]), asArray(value), [...path, field]);
    }
  }
}

// Items in the hint come first, in its order; the others keep their order after them.
function inOrder(items: readonly unknown[], order: readonly unknown[], path: readonly string[]): unknown[] {
  const kind = builtInListKind(path);
  const keyOf = (item: unknown) => (kind.kind === "map" && isObject(item) ? item[kind.patchKey] : item);
  const wanted = order.map(keyOf);
  const rank = (item: unknown) => (wanted.includes(keyOf(item)) ? wanted.indexOf(keyOf(item)) : wanted.length);
  return [...items].sort((a, b) => rank(a) - rank(b));
}

function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDirectives);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) =>
      key.startsWith("$") || item === null ? [] : [[key, withoutDirectives(item)]],
    ),
  );
}
