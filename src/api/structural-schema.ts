// zod schema -> the OpenAPI v3 dialect of CustomResourceDefinitions ("structural schema"): a type everywhere, no $ref, and
// no additionalProperties beside properties, since the API server itself prunes what is unknown. Pure; called by crd.ts.
import { z } from "zod";
import { MeshError } from "../base/errors.ts";

/** The part of apiextensions/v1 JSONSchemaProps that is written here. */
export interface StructuralSchema {
  readonly type: "object" | "array" | "string" | "integer" | "number" | "boolean";
  readonly description?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly [keyword: string]: unknown;
}

/**
 * Converts a zod schema. Descriptions and x-kubernetes-* keywords come from `.describe()` and `.meta()`.
 * @throws MeshError `SCHEMA_NOT_STRUCTURAL` for what a CRD cannot say, for example a union
 */
export function toStructuralSchema(schema: z.ZodType): StructuralSchema {
  // The input form: a field with a default or a fallback is optional for who writes the object.
  const json = z.toJSONSchema(schema, {
    target: "openapi-3.0",
    io: "input",
    reused: "inline",
    override: ({ jsonSchema }) => simplify(jsonSchema),
  });
  return structural(json, "$");
}

/** Takes out what zod writes and a CRD must not carry. */
function simplify(json: z.core.JSONSchema.BaseSchema): void {
  // false from strict objects, {} from loose ones: pruning and the API server do the first, the second says nothing.
  if (typeof json.additionalProperties !== "object" || Object.keys(json.additionalProperties).length === 0) {
    delete json.additionalProperties;
  }
  // zod's own expression for dates is long; the format is what Kubernetes checks.
  if (json.format === "date-time") delete json.pattern;
  if (json.type === "integer") nameIntegerFormat(json);
}

/** Largest int32, the bound of Kubernetes' counts and ports. */
export const MAX_INT32 = 2_147_483_647;

/** The format says what the two natural bounds would say. */
function nameIntegerFormat(json: z.core.JSONSchema.BaseSchema): void {
  json.format ??= json.maximum !== undefined && json.maximum <= MAX_INT32 ? "int32" : "int64";
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
  if (json.maximum === Number.MAX_SAFE_INTEGER || json.maximum === MAX_INT32) delete json.maximum;
}

const KEYWORDS = new Set(
  "type description properties required additionalProperties items enum format pattern minimum maximum minLength maxLength minItems maxItems minProperties maxProperties default".split(
    " ",
  ),
);
const TYPES = new Set<unknown>(["object", "array", "string", "integer", "number", "boolean"]);

/** Copies what a CRD may carry, in a stable order, and refuses the rest. */
function structural(json: z.core.JSONSchema.BaseSchema | boolean | undefined, path: string): StructuralSchema {
  if (typeof json !== "object" || !isType(json.type)) throw notStructural(path, "has no single type");
  for (const keyword of Object.keys(json)) {
    if (!KEYWORDS.has(keyword) && !keyword.startsWith("x-kubernetes-")) throw notStructural(path, `keyword ${keyword}`);
  }
  const { type, description, properties, items, additionalProperties, ...rest } = json;
  return {
    ...(description === undefined ? {} : { description }),
    type,
    ...rest,
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: structural(schemaOf(additionalProperties), `${path}{}`) }),
    ...(items === undefined ? {} : { items: structural(schemaOf(items), `${path}[]`) }),
    ...(properties === undefined ? {} : { properties: structuralProperties(properties, path) }),
  };
}

function structuralProperties(properties: Readonly<Record<string, unknown>>, path: string): Record<string, StructuralSchema> {
  const entries = Object.entries(properties).map(([name, inner]) => [name, structural(schemaOf(inner), `${path}.${name}`)]);
  return Object.fromEntries(entries);
}

function schemaOf(value: unknown): z.core.JSONSchema.BaseSchema | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function isType(type: unknown): type is StructuralSchema["type"] {
  return TYPES.has(type);
}

function notStructural(path: string, why: string): MeshError {
  return new MeshError("SCHEMA_NOT_STRUCTURAL", `converting the schema at ${path}: ${why}`);
}
