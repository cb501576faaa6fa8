// Reads and renames JSON Patches (RFC 6902) of a lock, which the codecs do not read, since a list of
// operations is no object. Pure; lock-body.ts calls it. Invariant: only the object's own name changes; every
// other byte stays, also integers that JavaScript cannot hold.

import { z } from "zod";
import { readJson } from "../../../base/json.ts";
import { applyEdits, type Edit } from "../../../kube/codec/base/byte-edit.ts";
import { asBuffer } from "../../../kube/codec/base/types.ts";
import { OPEN_BRACE, OPEN_BRACKET } from "../../../kube/codec/json/scan.ts";
import { JsonWalker } from "../../../kube/codec/json/walker.ts";
import type { Rename } from "../../../kube/codec/rename.ts";
import { StatusError } from "../../../kube/status.ts";
import { LEADER_ANNOTATION, type LockRecord, recordOfObject } from "./lock-record.ts";

const operations = z.array(z.looseObject({ op: z.string(), path: z.string(), value: z.unknown().optional() }));
type Operation = z.output<typeof operations>[number];

const ANNOTATION_PATH = `/metadata/annotations/${LEADER_ANNOTATION.replace("/", "~1")}`;

/** The operations. @throws StatusError BadRequest */
export function readJsonPatch(body: Uint8Array): Operation[] {
  try {
    return readJson(operations, body);
  } catch (cause) {
    throw new StatusError("BadRequest", "ctrlmesh: reading a JSON Patch: it is no list of operations", undefined, { cause });
  }
}

// The place of the name in the value of an operation on this path.
const NAME_IN: ReadonlyMap<unknown, readonly string[]> = new Map([
  ["/metadata/name", []],
  ["/metadata", ["name"]],
  ["", ["metadata", "name"]],
]);

/**
 * The body with the lock's name replaced where an operation tests or states it; the same array if none does.
 * @throws MeshError CODEC_MALFORMED
 */
export function renameJsonPatch(body: Uint8Array, { from, to }: Rename): Uint8Array {
  const bytes = asBuffer(body);
  const edits: Edit[] = [];
  for (const operation of childrenOf(bytes, { start: 0, end: bytes.length }, OPEN_BRACKET).values()) {
    const name = nameIn(bytes, operation);
    if (name !== undefined && textAt(bytes, name) === from) edits.push({ ...name, replacement: Buffer.from(JSON.stringify(to)) });
  }
  return applyEdits(body, edits);
}

/** A value's own bytes. */
interface Span {
  readonly start: number;
  readonly end: number;
}

function nameIn(bytes: Buffer, operation: Span): Span | undefined {
  const members = childrenOf(bytes, operation, OPEN_BRACE);
  const path = members.get("path");
  const keys = path && NAME_IN.get(textAt(bytes, path));
  if (keys === undefined) return undefined;
  let span = members.get("value");
  for (const key of keys) span = span && childrenOf(bytes, span, OPEN_BRACE).get(key);
  return span;
}

// The values in an array by their index, or in an object by their key, of which the last one counts; none in
// anything else.
function childrenOf(bytes: Buffer, { start, end }: Span, bracket: typeof OPEN_BRACE | typeof OPEN_BRACKET): Map<unknown, Span> {
  const children = new Map<unknown, Span>();
  const walker = new JsonWalker().start(bytes, start, end);
  if (walker.next() !== "value" || !walker.enter(bracket)) return children;
  while (walker.next() === "value" && walker.skip()) {
    const key = bracket === OPEN_BRACE ? walker.keyText() : children.size;
    children.set(key, { start: walker.valueStart, end: walker.valueEnd });
  }
  return children;
}

function textAt(bytes: Buffer, { start, end }: Span): unknown {
  return JSON.parse(bytes.toString("utf8", start, end));
}

/** The lock's record in the patch. */
export function recordOfJsonPatch(resource: string, patch: readonly Operation[]): LockRecord {
  const spec: Record<string, unknown> = {};
  const annotations: Record<string, unknown> = {};
  for (const { op, path, value } of patch) {
    if (op !== "add" && op !== "replace") continue;
    if (path === "/spec" && typeof value === "object") Object.assign(spec, value);
    else if (path === "/spec/holderIdentity") spec.holderIdentity = value;
    else if (path === "/spec/leaseDurationSeconds") spec.leaseDurationSeconds = value;
    else if (path === ANNOTATION_PATH) annotations[LEADER_ANNOTATION] = value;
  }
  return recordOfObject(resource, { spec, metadata: { annotations } });
}
