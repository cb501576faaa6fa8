// JSON Patch (RFC 6902). Pure: the document is copied. As on the API server, a failed `test` and a missing path are both
// unprocessable.
import { StatusError } from "../../../src/kube/status.ts";
import { deepEqual, isObject } from "../model/object.ts";

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/**
 * Applies the operations in order.
 * @throws StatusError BadRequest for a malformed patch, Invalid for a patch that does not fit the document
 */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new StatusError("BadRequest", "reading JSON patch: must be an array of operations");
  let root = structuredClone(document);
  for (const operation of patch.map(readOperation)) root = applyOperation(root, operation);
  return root;
}

function readOperation(value: unknown): Operation {
  if (!isObject(value) || typeof value.op !== "string" || typeof value.path !== "string") {
    throw new StatusError("BadRequest", "reading JSON patch: an operation needs op and path");
  }
  return {
    op: value.op,
    path: value.path,
    value: value.value,
    ...(typeof value.from === "string" ? { from: value.from } : {}),
  };
}

function applyOperation(root: unknown, { op, path, from, value }: Operation): unknown {
  switch (op) {
    case "add":
      return add(root, path, structuredClone(value));
    case "remove":
      return remove(root, path);
    case "replace":
      read(root, path);
      return path === "" ? value : add(remove(root, path), path, structuredClone(value));
    case "move": {
      const moved = read(root, from ?? "");
      return add(remove(root, from ?? ""), path, moved);
    }
    case "copy":
      return add(root, path, structuredClone(read(root, from ?? "")));
    case "test":
      if (!deepEqual(read(root, path), value)) throw misfit(`testing path ${path}: test failed`);
      return root;
    default:
      throw new StatusError("BadRequest", `reading JSON patch: unknown operation ${JSON.stringify(op)}`);
  }
}

function add(root: unknown, path: string, value: unknown): unknown {
  if (path === "") return value;
  const [parent, key] = locate(root, path);
  if (Array.isArray(parent)) {
    const index = key === "-" ? parent.length : indexIn(parent.length + 1, key, path);
    parent.splice(index, 0, value);
  } else parent[key] = value;
  return root;
}

function remove(root: unknown, path: string): unknown {
  const [parent, key] = locate(root, path);
  if (Array.isArray(parent)) parent.splice(indexIn(parent.length, key, path), 1);
  else if (Object.hasOwn(parent, key)) delete parent[key];
  else throw misfit(`removing path ${path}: it does not exist`);
  return root;
}

function read(root: unknown, path: string): unknown {
  if (path === "") return root;
  const [parent, key] = locate(root, path);
  if (Array.isArray(parent)) return parent[indexIn(parent.length, key, path)];
  if (!Object.hasOwn(parent, key)) throw misfit(`reading path ${path}: it does not exist`);
  return parent[key];
}

function locate(root: unknown, path: string): [unknown[] | Record<string, unknown>, string] {
  if (!path.startsWith("/"))
    throw new StatusError("BadRequest", `reading JSON patch: path ${JSON.stringify(path)} must start with /`);
  const keys = path
    .slice(1)
    .split("/")
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = keys.pop() ?? "";
  let at = root;
  for (const key of keys) {
    if (Array.isArray(at)) at = at[indexIn(at.length, key, path)];
    else if (isObject(at) && Object.hasOwn(at, key)) at = at[key];
    else throw misfit(`following path ${path}: ${JSON.stringify(key)} does not exist`);
  }
  if (!Array.isArray(at) && !isObject(at)) throw misfit(`following path ${path}: its parent is neither object nor array`);
  return [at, last];
}

function indexIn(length: number, key: string, path: string): number {
  const index = /^(0|[1-9]\d*)$/.test(key) ? Number(key) : -1;
  if (index < 0 || index >= length) throw misfit(`following path ${path}: no index ${key}`);
  return index;
}

function misfit(message: string): StatusError {
  return new StatusError("Invalid", `the server rejected our request due to an error in our request: ${message}`);
}
