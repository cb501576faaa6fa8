// JSON Patches (RFC 6902) of a lock: a list of operations, which is no object, so that the codecs do not read it. Pure. Called
// by lock-body. Invariant: only an operation that states the object's own name is changed; a patch without one stays as it is.
import { z } from "zod";
import type { Rename } from "../../../kube/codec/rename.ts";
import { StatusError } from "../../../kube/status.ts";
import { LEADER_ANNOTATION, type LockRecord, recordOfObject } from "./lock-record.ts";

const operations = z.array(z.looseObject({ op: z.string(), path: z.string(), value: z.unknown().optional() }));
type Operation = z.output<typeof operations>[number];

const ANNOTATION_PATH = `/metadata/annotations/${LEADER_ANNOTATION.replace("/", "~1")}`;

/** The operations. @throws StatusError BadRequest */
export function readJsonPatch(body: Uint8Array): Operation[] {
  try {
    return operations.parse(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch (cause) {
    throw new StatusError("BadRequest", "ctrlmesh: reading a JSON Patch: it is no list of operations", undefined, { cause });
  }
}

/** The body with the lock's name replaced where an operation tests or states it; the same array if none does. */
export function renameJsonPatch(body: Uint8Array, patch: readonly Operation[], { from, to }: Rename): Uint8Array {
  const isName = ({ path, value }: Operation) => path === "/metadata/name" && value === from;
  if (!patch.some(isName)) return body;
  return Buffer.from(JSON.stringify(patch.map((operation) => (isName(operation) ? { ...operation, value: to } : operation))));
}

/** What the patch says of the lock's holder. */
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
