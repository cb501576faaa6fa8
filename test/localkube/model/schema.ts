// Structural schemas of custom resources: pruning of unknown fields, defaults, and validation of the plain keywords (type,
// required, enum, pattern, bounds, lengths, item counts). Pure.
//
// CEL rules, formats and allOf/anyOf/oneOf/not are not evaluated. There localkube accepts what the API server refuses, never the
// reverse.
import { asObject, deepEqual, isObject, type JsonObject } from "./object.ts";

/** The part of an OpenAPI v3 schema that localkube reads. */
export interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly nullable?: boolean;
  readonly default?: unknown;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: string;
}

export interface Problem {
  /** metav1.StatusCause reason: FieldValueRequired, FieldValueInvalid, FieldValueNotSupported, FieldValueTypeInvalid. */
  readonly reason: string;
  readonly field: string;
  readonly message: string;
}

const ENVELOPE = ["apiVersion", "kind", "metadata"];

/** Removes unknown fields from `value` in place and returns their paths. */
export function prune(value: unknown, schema: Schema, path = "", embedded = true): string[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.flatMap((item, index) => prune(item, items, `${path}[${index}]`, false));
  }
  if (!isObject(value)) return [];
  const dropped: string[] = [];
  for (const key of Object.keys(value)) {
    const inner = propertySchema(schema, key);
    const at = path === "" ? key : `${path}.${key}`;
    if (inner !== undefined) {
      // the API server defines the object's metadata, whatever the schema says
      if (!(path === "" && key === "metadata"))
        dropped.push(...prune(value[key], inner, at, inner["x-kubernetes-embedded-resource"] === true));
    } else if (!keepsUnknown(schema) && !(embedded && ENVELOPE.includes(key))) {
      delete value[key];
      dropped.push(at);
    }
  }
  return dropped;
}

/** Fills in defaults in place. */
export function applyDefaults(value: unknown, schema: Schema): void {
  if (Array.isArray(value)) {
    for (const item of value) if (schema.items !== undefined) applyDefaults(item, schema.items);
    return;
  }
  if (!isObject(value)) return;
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    const unset = value[key] === undefined || (value[key] === null && inner.nullable !== true);
    if (unset && inner.default !== undefined) value[key] = structuredClone(inner.default);
  }
  for (const key of Object.keys(value)) {
    const inner = propertySchema(schema, key);
    if (inner !== undefined) applyDefaults(value[key], inner);
  }
}

/** All problems of `value`, each with the path of its field, like `spec.size`. */
export function validate(value: unknown, schema: Schema, path = ""): Problem[] {
  if (value === null && schema.nullable === true) return [];
  const wrong = typeProblem(value, schema, path);
  if (wrong !== undefined) return [wrong];
  const problems = [...enumProblem(value, schema, path), ...boundProblems(value, schema, path)];
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items !== undefined) problems.push(...value.flatMap((item, index) => validate(item, items, `${path}[${index}]`)));
  } else if (isObject(value)) {
    problems.push(...objectProblems(value, schema, path));
  }
  return problems;
}

function objectProblems(value: JsonObject, schema: Schema, path: string): Problem[] {
  const at = (key: string) => (path === "" ? key : `${path}.${key}`);
  const missing = (schema.required ?? [])
    .filter((key) => value[key] === undefined)
    .map((key) => ({ reason: "FieldValueRequired", field: at(key), message: "Required value" }));
  const inner = Object.keys(value).flatMap((key) => {
    const property = path === "" && key === "metadata" ? undefined : propertySchema(schema, key);
    return property === undefined || value[key] === undefined ? [] : validate(value[key], property, at(key));
  });
  return [...missing, ...inner];
}

function propertySchema(schema: Schema, key: string): Schema | undefined {
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return isObject(schema.additionalProperties) ? (asObject(schema.additionalProperties) as Schema) : undefined;
}

function keepsUnknown(schema: Schema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true || schema.additionalProperties === true;
}

function jsonType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function typeProblem(value: unknown, schema: Schema, path: string): Problem | undefined {
  const actual = jsonType(value);
  const fits = schema["x-kubernetes-int-or-string"]
    ? actual === "integer" || actual === "string"
    : schema.type === undefined || schema.type === actual || (schema.type === "number" && actual === "integer");
  if (fits) return undefined;
  const wanted = schema.type ?? "integer or string";
  return {
    reason: "FieldValueTypeInvalid",
    field: path,
    message: `Invalid value: ${JSON.stringify(actual)}: ${path} must be of type ${wanted}: ${JSON.stringify(actual)}`,
  };
}

function enumProblem(value: unknown, schema: Schema, path: string): Problem[] {
  if (schema.enum === undefined || schema.enum.some((allowed) => deepEqual(allowed, value))) return [];
  const allowed = schema.enum.map((item) => JSON.stringify(item)).join(", ");
  return [
    {
      reason: "FieldValueNotSupported",
      field: path,
      message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${allowed}`,
    },
  ];
}

function boundProblems(value: unknown, schema: Schema, path: string): Problem[] {
  const problems: string[] = [];
  if (typeof value === "number") {
    const { minimum, maximum } = schema;
    if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
      problems.push(`should be greater than${schema.exclusiveMinimum ? "" : " or equal to"} ${minimum}`);
    }
    if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
      problems.push(`should be less than${schema.exclusiveMaximum ? "" : " or equal to"} ${maximum}`);
    }
  } else if (typeof value === "string") {
    problems.push(...countProblems([...value].length, schema.minLength, schema.maxLength, "chars long"));
    if (schema.pattern !== undefined && !matchesPattern(value, schema.pattern)) problems.push(`should match '${schema.pattern}'`);
  } else if (Array.isArray(value)) {
    problems.push(...countProblems(value.length, schema.minItems, schema.maxItems, "items"));
  } else if (isObject(value)) {
    problems.push(...countProblems(Object.keys(value).length, schema.minProperties, schema.maxProperties, "properties"));
  }
  return problems.map((why) => ({
    reason: "FieldValueInvalid",
    field: path,
    message: `Invalid value: ${JSON.stringify(value)}: ${path} in body ${why}`,
  }));
}

function countProblems(count: number, min: number | undefined, max: number | undefined, unit: string): string[] {
  const problems: string[] = [];
  if (min !== undefined && count < min) problems.push(`should be at least ${min} ${unit}`);
  if (max !== undefined && count > max) problems.push(`may not be more than ${max} ${unit}`);
  return problems;
}

function matchesPattern(value: string, pattern: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // RE2 syntax that JavaScript lacks
  }
}
