// docs/tasks/shard-a-statefulset.md explains every field of a ShardingConfig's spec, and every field and column that its status has beyond a VirtualApp's.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { appStatusSchema } from "../../src/api/app-status.ts";
import { crdOf } from "../../src/api/crd.ts";
import { shardingConfigKind } from "../../src/api/sharding-config.ts";
import { shardingStatusSchema } from "../../src/api/sharding-status.ts";
import type { StructuralSchema } from "../../src/api/structural-schema.ts";

const TEXT = readFileSync(new URL("../../docs/tasks/shard-a-statefulset.md", import.meta.url), "utf8");
const missing = (names: readonly string[]) => names.filter((name) => !TEXT.includes(`\`${name}\``));

/** The paths of all fields without fields of their own. The parts of a label selector are Kubernetes' own. */
function fieldsOf(schema: StructuralSchema | undefined, path: string): string[] {
  const inner = schema?.type === "array" ? schema.items : schema;
  const properties = path.endsWith("selector") ? [] : Object.entries(inner?.properties ?? {});
  if (properties.length === 0) return [path];
  const prefix = path === "" ? "" : `${path}${schema?.type === "array" ? "[]" : ""}.`;
  return properties.flatMap(([name, each]) => fieldsOf(each, `${prefix}${name}`));
}

it("docs/tasks/shard-a-statefulset.md has every field of the spec", () => {
  const spec = crdOf("ShardingConfig").spec.versions[0]?.schema.openAPIV3Schema.properties?.spec;
  // The entries of a root's resourceSelector are described by those of limits.
  const paths = fieldsOf(spec, "").map((path) => path.replace(/(resourceSelector\[\]\.relateResources)\[\].*/, "$1"));
  expect(paths.length).toBeGreaterThan(20);
  expect(missing(paths)).toEqual([]);
});

it("docs/tasks/shard-a-statefulset.md has every field and column of the status that a VirtualApp does not have", () => {
  const own = Object.keys(shardingStatusSchema.shape).filter((name) => !Object.hasOwn(appStatusSchema.shape, name));
  expect(missing(own.map((name) => (name === "root" ? "root.childShardingConfigs" : name)))).toEqual([]);
  const columns = shardingConfigKind.columns.map(({ name }) => name.toUpperCase()).filter((name) => name !== "AGE");
  expect(columns.filter((name) => !TEXT.includes(`\n| ${name} `))).toEqual([]);
});
