// docs/concepts/sharding.md explains every field and column that the status of a ShardingConfig has beyond a VirtualApp's, and the
// example autoscaler fits the example root.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { appStatusSchema } from "../../src/api/app-status.ts";
import { shardingConfigKind } from "../../src/api/sharding-config.ts";
import { MAX_NORMAL_SHARDS } from "../../src/api/sharding-keys.ts";
import { shardingStatusSchema } from "../../src/api/sharding-status.ts";

const TEXT = readFileSync(new URL("../../docs/concepts/sharding.md", import.meta.url), "utf8");
const missing = (names: readonly string[]) => names.filter((name) => !TEXT.includes(`\`${name}\``));

it("docs/concepts/sharding.md has every field and column of the status that a VirtualApp does not have", () => {
  const own = Object.keys(shardingStatusSchema.shape).filter((name) => !Object.hasOwn(appStatusSchema.shape, name));
  expect(missing(own.map((name) => (name === "root" ? "root.childShardingConfigs" : name)))).toEqual([]);
  const columns = shardingConfigKind.columns.map(({ name }) => name.toUpperCase()).filter((name) => name !== "AGE");
  expect(columns.filter((name) => !TEXT.includes(`\n| ${name} `))).toEqual([]);
});

it("the example autoscaler scales the StatefulSet of an example root, and never to its canary alone or beyond its shards", () => {
  const read = (name: string) => parse(readFileSync(new URL(`../../examples/sharding/${name}`, import.meta.url), "utf8"));
  const [root, autoscaler] = [read("balanced.yaml"), read("hpa.yaml")];
  const { canary, auto, targetStatefulSet, placement } = root.spec.root;
  const { minReplicas, maxReplicas, scaleTargetRef, behavior } = autoscaler.spec;
  expect(scaleTargetRef).toEqual({ apiVersion: "apps/v1", kind: "StatefulSet", name: targetStatefulSet });
  expect(autoscaler.metadata.namespace).toBe(root.metadata.namespace);
  expect([placement, auto.shardingSize]).toEqual(["Balanced", undefined]);
  expect(minReplicas).toBeGreaterThanOrEqual(canary.replicas + auto.everyShardReplicas);
  expect(maxReplicas).toBeLessThanOrEqual(canary.replicas + auto.everyShardReplicas * MAX_NORMAL_SHARDS);
  expect(behavior.scaleDown.stabilizationWindowSeconds).toBeGreaterThan(behavior.scaleUp.stabilizationWindowSeconds);
});
