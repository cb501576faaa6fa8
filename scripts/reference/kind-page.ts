// The page of one kind: each field with its type, default, allowed values and meaning, from the kind's schema, and an example. Pure.
import type { CustomResourceDefinition, StructuralSchema } from "../../src/api/crd.ts";
import { block, code, page, plain, table } from "./markdown.ts";

interface Field {
  readonly path: string;
  readonly schema: StructuralSchema;
  readonly isRequired: boolean;
}

const MAX_PATTERN = 40;
const HEAD = ["field", "type", "default", "allowed", "meaning"];

/** @param example the YAML of an object that the tests apply; "" for none */
export function kindPage({ spec }: CustomResourceDefinition, example: string): string {
  const { group, names, scope, versions } = spec;
  const [version] = versions;
  const schema = version?.schema.openAPIV3Schema;
  const { kind, plural, shortNames = [] } = names as { kind: string; plural: string; shortNames?: readonly string[] };
  const facts = [
    `\`apiVersion: ${group}/${version?.name}\``,
    `\`kind: ${kind}\``,
    scope === "Cluster" ? "cluster-scoped" : "namespaced",
  ];
  const commands = [plural, ...shortNames].map((name) => `\`kubectl get ${name}\``);
  return page(kind, [
    schema?.description ?? "",
    `${facts.join(", ")}; ${commands.join(" or ")}.`,
    ...(example === "" ? [] : ["## Example", block("yaml", example)]),
    ...["spec", "status"].flatMap((part) => section(part, schema?.properties?.[part])),
    ...section("Fields", schema && withoutSections(schema)),
  ]);
}

/** The fields of a kind that has neither spec nor status; undefined if there are none. */
function withoutSections(schema: StructuralSchema): StructuralSchema | undefined {
  const { apiVersion: _, kind: __, metadata: ___, spec: ____, status: _____, ...properties } = schema.properties ?? {};
  if (Object.keys(properties).length === 0) return undefined;
  return { type: "object", properties, required: schema.required ?? [] };
}

function section(part: string, schema: StructuralSchema | undefined): string[] {
  if (schema === undefined) return [];
  const fields = fieldsOf(schema, "");
  const rows = fields.map((field) => [
    code(field.path),
    typeOf(field.schema),
    defaultOf(field),
    allowed(field.schema),
    meaning(field.schema),
  ]);
  return [`## ${part}`, ...(schema.description === undefined ? [] : [schema.description]), table(HEAD, rows)];
}

function fieldsOf(schema: StructuralSchema, prefix: string): Field[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const path = prefix === "" ? name : `${prefix}.${name}`;
    return [{ path, schema: child, isRequired: schema.required?.includes(name) ?? false }, ...fieldsOf(child, path)];
  });
  const items = schema.items === undefined ? [] : fieldsOf(schema.items, `${prefix}[]`);
  const values = schema.additionalProperties === undefined ? [] : fieldsOf(schema.additionalProperties, `${prefix}.*`);
  return [...own, ...items, ...values];
}

function typeOf({ type, items, additionalProperties, format, ...more }: StructuralSchema): string {
  if (more["x-kubernetes-int-or-string"] === true) return "integer or string";
  if (items !== undefined) return `list of ${plural(typeOf(items))}`;
  if (additionalProperties !== undefined) return `map of ${plural(typeOf(additionalProperties))}`;
  return format === "date-time" ? "time" : type;
}

function plural(type: string): string {
  return type.startsWith("list") || type.startsWith("map") ? type : `${type}s`;
}

function defaultOf({ schema, isRequired }: Field): string {
  if (schema.default !== undefined) return code(JSON.stringify(schema.default));
  return isRequired ? "required" : "";
}

/** The bounds of a value, in words. */
function allowed({ items, ...schema }: StructuralSchema): string {
  const { enum: values, pattern } = schema as { readonly enum?: readonly unknown[]; readonly pattern?: string };
  const bounds = [
    ...(values === undefined ? [] : [values.map((value) => code(String(value))).join(", ")]),
    ...range(schema, "minimum", "maximum", ""),
    ...range(schema, "minLength", "maxLength", " characters"),
    ...range(schema, "minItems", "maxItems", " entries"),
    ...range(schema, "minProperties", "maxProperties", " entries"),
    // The others are the names of Kubernetes, and longer than what they tell.
    ...(pattern === undefined || pattern.length > MAX_PATTERN ? [] : [`matches ${code(pattern)}`]),
    ...(items === undefined ? [] : [allowed(items)].filter((text) => text !== "").map((text) => `each: ${text}`)),
  ];
  return bounds.join("; ");
}

function range(schema: Omit<StructuralSchema, "items">, least: string, most: string, unit: string): string[] {
  const [from, to] = [schema[least], schema[most]];
  if (from === undefined && to === undefined) return [];
  if (to === undefined) return [`at least ${from}${unit}`];
  return [from === undefined ? `at most ${to}${unit}` : `${from} to ${to}${unit}`];
}

/** The description, and the rules that the API server checks. */
function meaning({ description = "", items, ...schema }: StructuralSchema): string {
  const rules = [schema, items].flatMap((each) => (each?.["x-kubernetes-validations"] ?? []) as readonly { message?: string }[]);
  const messages = rules.flatMap(({ message }) => (message === undefined ? [] : [`Rule: ${message}.`]));
  return plain([description, ...messages].join(" ").trim());
}
