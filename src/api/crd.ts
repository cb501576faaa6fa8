// The CustomResourceDefinitions of all kinds, generated from their schemas. Pure. Invariant: the schemas are
// structural: every node has a type, and there is no $ref. The API server prunes unknown fields, so no object
// needs additionalProperties beside its properties.
import { z } from "zod";
import { MeshError } from "../base/errors.ts";
import { circuitBreakerKind } from "./circuit-breaker.ts";
import { faultInjectionKind } from "./fault-injection.ts";
import { MAX_INT32 } from "./fields.ts";
import type { KindDefinition } from "./kind.ts";
import { managerStateKind } from "./manager-state.ts";
import { meshClusterKind } from "./mesh-cluster.ts";
import { ownershipSliceKind } from "./ownership-slice.ts";
import { shardingConfigKind } from "./sharding-config.ts";
import { trafficPolicyKind } from "./traffic-policy.ts";
import { virtualAppKind } from "./virtual-app.ts";

export const KINDS = {
  VirtualApp: virtualAppKind,
  ShardingConfig: shardingConfigKind,
  TrafficPolicy: trafficPolicyKind,
  CircuitBreaker: circuitBreakerKind,
  FaultInjection: faultInjectionKind,
  ManagerState: managerStateKind,
  OwnershipSlice: ownershipSliceKind,
  MeshCluster: meshClusterKind,
} as const satisfies Record<string, KindDefinition>;

export type KindName = keyof typeof KINDS;

export const KIND_NAMES = Object.keys(KINDS) as readonly KindName[];

/** The part of an apiextensions.k8s.io/v1 CustomResourceDefinition that this project uses. */
export type CustomResourceDefinition = ReturnType<typeof crdOf>;

export function crdOf(name: KindName) {
  const definition: KindDefinition = KINDS[name];
  const { group, kind, plural, shortNames, scope, columns } = definition;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames.length === 0 ? {} : { shortNames }),
        categories: ["ctrlmesh"],
      },
      scope,
      versions: [
        {
          name: "v1alpha1",
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: rootSchema(definition) },
        },
      ],
    },
  };
}

/** The API server defines apiVersion, kind and metadata. In metadata a CRD may restrict only the name. */
function rootSchema({ schema }: KindDefinition): StructuralSchema {
  const {
    properties: { apiVersion: _, kind: __, metadata, ...fields } = {},
    required = [],
    ...root
  } = toStructuralSchema(schema);
  const bounded = metadata?.properties?.name?.maxLength !== undefined ? { properties: { name: metadata.properties.name } } : {};
  const ours = required.filter((field) => field in fields);
  return {
    ...root,
    ...(ours.length === 0 ? {} : { required: ours }),
    properties: {
      apiVersion: { type: "string", description: "Group and version of the object's schema." },
      kind: { type: "string", description: "Kind of the object." },
      metadata: { type: "object", ...bounded },
      ...fields,
    },
  };
}

/** The part of apiextensions/v1 JSONSchemaProps that this project uses. */
export interface StructuralSchema {
  readonly type: "object" | "array" | "string" | "integer" | "number" | "boolean";
  readonly description?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly [keyword: string]: unknown;
}

/** @throws MeshError `SCHEMA_NOT_STRUCTURAL` for a schema that a CRD cannot express, for example a union */
export function toStructuralSchema(schema: z.ZodType): StructuralSchema {
  // The input form: a field with a default or a fallback is optional for the writer of the object.
  const json = z.toJSONSchema(schema, {
    target: "openapi-3.0",
    io: "input",
    reused: "inline",
    override: ({ jsonSchema }) => simplify(jsonSchema),
  });
  return structural(json, "$");
}

function simplify(json: z.core.JSONSchema.BaseSchema): void {
  // zod writes false for strict objects and {} for loose ones, and neither has an effect in a CRD.
  if (typeof json.additionalProperties !== "object" || Object.keys(json.additionalProperties).length === 0) {
    delete json.additionalProperties;
  }
  // zod's own pattern for dates is long, and Kubernetes checks the format.
  if (json.format === "date-time") delete json.pattern;
  if (json.type === "integer") setIntegerFormat(json);
}

function setIntegerFormat(json: z.core.JSONSchema.BaseSchema): void {
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

/** Copies the keywords that a CRD may have, in a stable order, and refuses any other. */
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
