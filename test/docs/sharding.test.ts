// docs/concepts/sharding.md explains every field and column that the status of a ShardingConfig has beyond a VirtualApp's.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { appStatusSchema } from "../../src/api/app-status.ts";
import { shardingConfigKind } from "../../src/api/sharding-config.ts";
import { shardingStatusSchema } from "../../src/api/sharding-status.ts";

const TEXT = readFileSync(new URL("../../docs/concepts/sharding.md", import.meta.url), "utf8");
const missing = (names: readonly string[]) => names.filter((name) => !TEXT.includes(`\`${name}\``));

it("docs/concepts/sharding.md has every field and column of the status that a VirtualApp does not have", () => {
  const own = Object.keys(shardingStatusSchema.shape).filter((name) => !Object.hasOwn(appStatusSchema.shape, name));
  expect(missing(own.map((name) => (name === "root" ? "root.childShardingConfigs" : name)))).toEqual([]);
  const columns = shardingConfigKind.columns.map(({ name }) => name.toUpperCase()).filter((name) => name !== "AGE");
  expect(columns.filter((name) => !TEXT.includes(`\n| ${name} `))).toEqual([]);
});
