// The metadata that the API server maintains: names, uids, times, generations. Pure but for its parameters. Called by write.ts
// for every create and update.
import type { Random } from "../../src/base/clock.ts";
import { badRequest, invalid } from "./failures.ts";
import { asObject, isObject, type JsonObject, type Meta, type StoredObject } from "./model/object.ts";
import type { ResourceType } from "./model/registry.ts";
import type { Problem } from "./model/schema.ts";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
// Kinds with DNS labels as names; the names of all others are DNS subdomains.
const LABEL_NAMED = new Set(["namespaces", "services"]);
// The characters of k8s.io/apimachinery/pkg/util/rand: no vowels and no look-alikes.
const SUFFIX_CHARS = "bcdfghjklmnpqrstvwxz2456789";
const MAX_GENERATED_BASE = 58;

/** The name for a generateName. */
export function generateName(base: string, random: Random): string {
  const suffix = Array.from({ length: 5 }, () => SUFFIX_CHARS[Math.floor(random() * SUFFIX_CHARS.length)]).join("");
  return `${base.slice(0, MAX_GENERATED_BASE)}${suffix}`;
}

/**
 * Checks the kind and apiVersion of a body and the types of its metadata.
 * @throws StatusError BadRequest
 */
export function checkEnvelope(body: unknown, kind: string, apiVersion: string, lenient: boolean): JsonObject {
  if (!isObject(body)) throw badRequest("reading the body: must be an object");
  if (!lenient && (body.kind === undefined || body.apiVersion === undefined))
    throw badRequest("reading the body: 'kind' or 'apiVersion' is missing");
  const wrongKind = body.kind !== undefined && body.kind !== "" && body.kind !== kind;
  const wrongVersion = body.apiVersion !== undefined && body.apiVersion !== "" && body.apiVersion !== apiVersion;
  if (wrongKind || wrongVersion) {
    throw badRequest(`the object provided is ${String(body.apiVersion)} ${String(body.kind)}, not ${apiVersion} ${kind}`);
  }
  const metadata = body.metadata ?? {};
  if (!isObject(metadata)) throw badRequest("reading metadata: must be an object");
  for (const field of ["labels", "annotations"]) checkStringMap(metadata[field], `metadata.${field}`);
  for (const field of ["name", "namespace", "generateName", "resourceVersion", "uid"]) {
    const value = metadata[field] ?? "";
    if (typeof value !== "string") throw badRequest(`reading metadata.${field}: must be a string`);
  }
  return { ...body, kind, apiVersion, metadata };
}

/** @throws StatusError BadRequest if `value` is present and not a map of strings */
export function checkStringMap(value: unknown, field: string): void {
  if (value === undefined || value === null) return;
  if (!isObject(value) || Object.values(value).some((item) => typeof item !== "string")) {
    throw badRequest(`reading ${field}: must be a map of strings`);
  }
}

/**
 * Checks name and labels.
 * @throws StatusError Invalid with all problems
 */
export function checkMetadata(type: ResourceType, metadata: Meta): void {
  const problems: Problem[] = [];
  const reason = "FieldValueInvalid";
  const rule = LABEL_NAMED.has(type.resource) && !type.custom ? LABEL : SUBDOMAIN;
  if (metadata.name === "") {
    problems.push({
      reason: "FieldValueRequired",
      field: "metadata.name",
      message: "Required value: name or generateName is required",
    });
  } else if (!rule.test(metadata.name) || metadata.name.length > (rule === LABEL ? 63 : 253)) {
    problems.push({
      reason,
      field: "metadata.name",
      message: `Invalid value: ${JSON.stringify(metadata.name)}: not a valid RFC 1123 name`,
    });
  }
  for (const value of Object.values(metadata.labels ?? {})) {
    if (LABEL_VALUE.test(value) && value.length <= 63) continue;
    problems.push({
      reason,
      field: "metadata.labels",
      message: `Invalid value: ${JSON.stringify(value)}: not a valid label value`,
    });
  }
  for (const [index, owner] of (metadata.ownerReferences ?? []).entries()) {
    if (owner.uid) continue;
    problems.push({
      reason: "FieldValueRequired",
      field: `metadata.ownerReferences[${index}].uid`,
      message: "Required value: must not be empty",
    });
  }
  if (problems.length > 0) throw invalid(type, metadata.name, problems);
}

/** The metadata of a new object: the client's fields and the API server's own. */
export function newMetadata(
  type: ResourceType,
  body: JsonObject,
  own: { namespace: string; name: string; uid: string; time: string },
): Meta {
  return {
    ...userFields(asObject(body.metadata)),
    name: own.name,
    ...(type.namespaced ? { namespace: own.namespace } : {}),
    uid: own.uid,
    resourceVersion: "",
    ...(type.generation ? { generation: 1 } : {}),
    creationTimestamp: own.time,
  };
}

/** The metadata of an updated object: the client's labels, annotations, owners and finalizers; all other fields stay. */
export function updatedMetadata(existing: StoredObject, body: JsonObject): Meta {
  const { labels: _l, annotations: _a, ownerReferences: _o, finalizers: _f, ...kept } = existing.metadata;
  const { generateName: _g, ...fields } = userFields(asObject(body.metadata));
  return { ...kept, ...fields };
}

function userFields(metadata: JsonObject): Partial<Meta> {
  const fields: JsonObject = {};
  for (const key of ["generateName", "labels", "annotations", "ownerReferences", "finalizers"]) {
    const value = metadata[key];
    const empty =
      value === undefined || value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);
    if (!empty) fields[key] = value;
  }
  return fields as Partial<Meta>;
}
