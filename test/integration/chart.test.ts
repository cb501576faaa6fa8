// The chart's values, with Helm but without a cluster: the tests' values contain every value of the schema, and values reach the objects that
// they are for. test/nightly/chart.test.ts applies the same values to a real API server.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { isStale } from "../../scripts/manifests.ts";
import { labelFamilies } from "../../src/manager/labels/label-families.ts";
import { VALUES } from "../support/chart-values.ts";
import { CHART, helmTemplate } from "../support/helm.ts";
import { describeWithProgram } from "../support/requirements.ts";

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}
type Fields = Readonly<Record<string, unknown>>;
interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly annotations?: Fields };
}
interface Manager extends Rendered {
  readonly spec: {
    readonly template: { readonly spec: { readonly securityContext: Fields; readonly containers: readonly Fields[] } };
  };
}

const schema = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")) as Schema;
const defaults = parse(readFileSync(join(CHART, "values.yaml"), "utf8")) as Fields;

describeWithProgram("go", "the chart's values", () => {
  const render = async (values: string) =>
    parseAllDocuments(await helmTemplate(values)).flatMap((each) => (each.toJS() as Rendered | null) ?? []);

  it("are all in some set of test values", () => {
    const sets = Object.values(VALUES);
    const set = new Set(sets.flatMap((values) => paths(parse(values) ?? {}, schema)));
    expect(leaves(schema).filter((path) => !set.has(path))).toEqual([]);
  });

  it("have a default in values.yaml, except for what a parent chart sets", () => {
    const given = new Set(paths(defaults, schema));
    const missing = leaves(schema).filter((path) => !given.has(path) && !path.includes("resources."));
    expect(missing).toEqual(["enabled"]);
  });

  it("switch off parts of the security contexts, which have defaults", async () => {
    const values = `
podSecurityContext: { runAsUser: null, runAsNonRoot: false }
securityContext: { readOnlyRootFilesystem: false }
`;
    const manager = (await render(values)).find(({ kind }) => kind === "Deployment") as Manager;
    const { securityContext, containers } = manager.spec.template.spec;
    expect(securityContext).toEqual({
      runAsNonRoot: false,
      runAsGroup: 1359,
      fsGroup: 1359,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: false,
      capabilities: { drop: ["ALL"] },
    });
  });

  it("name the families whose objects the manager may label, by resource", async () => {
    const manager = (await render(`${VALUES["everything on"]}`)).find(({ kind }) => kind === "Deployment") as Manager;
    const env = manager.spec.template.spec.containers[0]?.env as readonly { readonly name: string; readonly value?: string }[];
    const families = env.find(({ name }) => name === "CTRLMESH_LABEL_FAMILIES")?.value ?? "";
    expect(labelFamilies.parse(families)).toEqual(
      new Map([
        ["configmaps", ["foo-system/foo-operator"]],
        ["foos.demo.ctrlmesh.io", ["*"]],
      ]),
    );
  });

  it("of the chart make deploy/ctrlmesh.yaml (if not: node scripts/manifests.ts)", async () => {
    expect(await isStale()).toBe(false);
  });

  it("set annotations of every object, CRDs included", async () => {
    const objects = await render(`${VALUES["everything on"]}\ncommonAnnotations: { owner: platform }`);
    expect(objects.length).toBeGreaterThan(20);
    expect(objects.filter(({ metadata }) => metadata.annotations?.owner !== "platform").map(({ kind }) => kind)).toEqual([]);
  });
});

/** The paths of the schema's values that are not groups of values. */
function leaves({ properties }: Schema, path = ""): string[] {
  if (properties === undefined) return [path];
  return Object.entries(properties)
    .flatMap(([name, inner]) => leaves(inner, path === "" ? name : `${path}.${name}`))
    .toSorted();
}

/** The paths of these values, to the depth of the schema. */
function paths(values: unknown, inner: Schema | undefined, path = ""): string[] {
  if (inner?.properties === undefined) return [path];
  return Object.entries(values as Fields).flatMap(([name, value]) =>
    paths(value, inner.properties?.[name], path === "" ? name : `${path}.${name}`),
  );
}
