// The README of the chart: each value with its default and its meaning, from the schema of the values. Pure.
import { block, code, page, plain, table } from "./markdown.ts";

export interface ValueSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, ValueSchema>>;
  readonly enum?: readonly unknown[];
}

const INTRO = [
  "Installs [ctrlmesh-manager](../../docs/design.md) and the CRDs. There are no published images yet: [build them](../../docs/tasks/build-images.md) first.",
  block("", "helm install ctrlmesh charts/ctrlmesh --namespace ctrlmesh-system --create-namespace --set image.registry=REGISTRY"),
  "[docs/tasks/install.md](../../docs/tasks/install.md) has all steps. `helm test ctrlmesh -n ctrlmesh-system` checks that the manager answers. An unknown value is refused.",
];

/** @param values the defaults */
export function valuesPage(schema: ValueSchema, values: Readonly<Record<string, unknown>>): string {
  const rows = rowsOf(schema, values, "");
  return page("Chart ctrlmesh", [...INTRO, "## Values", table(["value", "default", "meaning"], rows)]);
}

/** The rows in the order of values.yaml. */
function rowsOf({ properties = {} }: ValueSchema, values: Readonly<Record<string, unknown>>, prefix: string): string[][] {
  return Object.entries(values).flatMap(([name, value]) => {
    const path = `${prefix}${name}`;
    const schema = properties[name] ?? {};
    if (isMap(value) && Object.keys(value).some((key) => schema.properties?.[key] !== undefined))
      return rowsOf(schema, value, `${path}.`);
    const choices =
      schema.enum === undefined ? "" : ` One of ${schema.enum.map((each) => code(JSON.stringify(each))).join(", ")}.`;
    return [[code(path), code(JSON.stringify(value)), plain(schema.description ?? "") + choices]];
  });
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
