// The YAML of a kubeconfig that a tenant wrote, as plain data. Pure. Invariants: no text takes the event loop for long. No error and no
// warning of the process shows anything of the text. The parser alone guarantees neither: it can take minutes for 1.3 KB of nested keys,
// and quotes them in a warning.
import { isMap, isScalar, isSeq, type ParsedNode, parseDocument } from "yaml";
import { MeshError } from "../../base/errors.ts";

/** A kubeconfig with forty clusters has a thousand. */
export const MAX_YAML_MARKS = 2_000;
/** A kubeconfig has six levels, and its extensions have some more. */
const MAX_DEPTH = 32;

/** What begins or ends a field, an item or another part. Tokens and base64 have none. */
const MARK = /[[\]{}?&!*%\\|>@`,:]|-\s/g;

/** @throws MeshError `KUBECONFIG_INVALID` */
export function readPlainYaml(text: string): unknown {
  if (hasMoreMarks(text)) {
    throw new MeshError(
      "KUBECONFIG_INVALID",
      `it has more than ${MAX_YAML_MARKS} fields, items and symbols of YAML: keep one cluster, one user and one context`,
    );
  }
  try {
    // The parser compares each key with all others of its map.
    const { contents, errors } = parseDocument(text, { uniqueKeys: false, prettyErrors: false });
    if (errors.length > 0) throw refused();
    return plain(contents, MAX_DEPTH);
  } catch {
    throw refused();
  }
}

function hasMoreMarks(text: string): boolean {
  MARK.lastIndex = 0;
  return text.matchAll(MARK).drop(MAX_YAML_MARKS).next().done !== true;
}

function refused(): MeshError {
  return new MeshError("KUBECONFIG_INVALID", "it must be one YAML document, without syntax errors, duplicate keys and aliases");
}

function plain(node: ParsedNode | null, depth: number): unknown {
  if (depth === 0) throw refused();
  if (node === null) return null;
  if (isScalar(node)) return node.value;
  if (isSeq(node)) return node.items.map((item) => plain(item as ParsedNode, depth - 1));
  if (!isMap(node)) throw refused();
  const fields = new Map<string, unknown>();
  for (const { key, value } of node.items) {
    if (!isScalar(key) || typeof key.value !== "string" || fields.has(key.value)) throw refused();
    fields.set(key.value, plain(value as ParsedNode | null, depth - 1));
  }
  return Object.fromEntries(fields);
}
