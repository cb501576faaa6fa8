// YAML bodies where locks live (apply patches, and creates by hand). Invariants: only the one scalar with the
// name changes; YAML that parsers may read in two ways (aliases, anchors, tags, merges, equal keys, several
// documents, odd line breaks) is refused. The parser is loaded for the first such body, since most clients of
// Kubernetes send JSON.
import type { ParsedNode } from "yaml";
import type { Rename } from "../../../kube/codec/rename.ts";
import { StatusError } from "../../../kube/status.ts";

/** A lock is some 300 bytes; YAML of more is not parsed. */
const MAX_YAML_BYTES = 64 * 1024;

export interface YamlBody {
  /** The document as JSON, for reading it. */
  readonly json: Uint8Array;
  /** The text with `metadata.name` replaced; the same array if the name is another one. */
  renamed(rename: Rename): Uint8Array;
}

/**
 * @param needsName the body of a create, which must have a name
 * @throws StatusError BadRequest, RequestEntityTooLarge
 */
export async function readYaml(body: Uint8Array, needsName: boolean): Promise<YamlBody> {
  if (body.length > MAX_YAML_BYTES) {
    throw new StatusError("RequestEntityTooLarge", `ctrlmesh: YAML over ${MAX_YAML_BYTES} bytes where locks live: send JSON`);
  }
  const { isMap, isScalar, parseDocument, visit } = await import("yaml");
  const text = decode(body);
  const document = parseDocument(text, { version: "1.1", merge: false, stringKeys: true });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw badYaml(problem.message.split("\n", 1)[0] ?? "", problem);
  if (!isMap(document.contents)) throw badYaml("it is no object");
  visit(document, {
    // Without anchors there are no aliases.
    Node: (_, node) => {
      const { anchor, tag } = node as ParsedNode & { anchor?: string };
      if (anchor !== undefined) refuse("an anchor");
      if (tag !== undefined) refuse("a tag");
    },
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === "<<") refuse("a merge key");
    },
  });
  const name = document.getIn(["metadata", "name"], true);
  const isNamed = [name, document.getIn(["metadata", "generateName"], true)].some((of) => isScalar(of) && of.value);
  if (needsName && !isNamed) refuse("a create without a name");
  return {
    json: Buffer.from(JSON.stringify(document.toJS({ maxAliasCount: 0 }))),
    renamed({ from, to }) {
      if (!isScalar(name) || name.value !== from || !name.range) return body;
      if (name.type === "BLOCK_FOLDED" || name.type === "BLOCK_LITERAL") refuse("a name in block style");
      const [start, end] = name.range;
      return Buffer.from(text.slice(0, start) + JSON.stringify(to) + text.slice(end));
    },
  };
}

// YAML 1.1 breaks lines at some of these, YAML 1.2 does not, so that a comment in the one may be a name in
// the other.
const MARKS = /[\u0080-\u009f\u2028\u2029\ufeff]/;

function decode(body: Uint8Array): string {
  const text = decodeUtf8(body);
  if (MARKS.test(text)) refuse("a character that some parsers take for the end of a line");
  return text;
}

function decodeUtf8(body: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch (cause) {
    throw badYaml("it is not UTF-8", cause);
  }
}

function refuse(what: string): never {
  throw badYaml(`${what} is not supported where locks live`);
}

function badYaml(what: string, cause?: unknown): StatusError {
  return new StatusError("BadRequest", `ctrlmesh: reading YAML: ${what}`, undefined, { cause });
}
