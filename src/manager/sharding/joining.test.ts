import { expect, it } from "vitest";
import { samplePlacement, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { joiningText } from "./joining.ts";
import type { Placement } from "./placement.ts";
import { formatPlacement } from "./stored-placement.ts";

const NOW = Date.parse("2026-01-31T12:00:00Z");
const textOf = (placement: Partial<Placement>, config: object = sampleShardingRoot()) =>
  joiningText({
    ...config,
    status: { placement: formatPlacement(samplePlacement(placement)) },
  } as unknown as ShardingConfig);

it("says nothing of a family without a placement, or in which no shard waits", () => {
  expect(joiningText(sampleShardingRoot() as unknown as ShardingConfig)).toBeUndefined();
  expect(textOf({})).toBeUndefined();
});

it("names the shards that wait for others that start", () => {
  const waiting = new Map([3, 4, 5, 6, 7].map((shard) => [shard, NOW]));
  expect(textOf({ waiting })).toBe(
    "shop-3-normal, shop-4-normal, shop-5-normal and 2 more are ready and will get namespaces together with shards that start, after 10 minutes at the latest",
  );
});

it("says that a shard also waits for the namespaces of other clusters, if the root divides them", () => {
  const { spec, ...config } = sampleShardingRoot() as unknown as ShardingConfig;
  const root = { ...spec.root, clustersBy: "Namespace" };
  expect(textOf({ waiting: new Map([[3, NOW]]) }, { ...config, spec: { ...spec, root } })).toBe(
    "shop-3-normal is ready and will get namespaces together with shards that start, and once the manager knows the namespaces of all other clusters or has waited for them for 1 minute, after 10 minutes at the latest",
  );
});

it("says how long a shard that was lost has to be ready", () => {
  const losses = new Map([[3, { times: 4, lastMs: NOW }]]);
  expect(textOf({ waiting: new Map([[3, NOW]]), losses })).toBe(
    "shop-3-normal is ready and will get namespaces after 8 minutes without an interruption (since 2026-01-31T12:00:00.000Z), because of 4 losses",
  );
});

it("says for each shard what it waits for", () => {
  const waiting = new Map([3, 4, 5].map((shard) => [shard, NOW]));
  expect(textOf({ waiting, losses: new Map([[4, { times: 1, lastMs: NOW }]]) })).toBe(
    "shop-3-normal, shop-5-normal are ready and will get namespaces together with shards that start, after 10 minutes at the latest; shop-4-normal is ready and will get namespaces after 1 minute without an interruption (since 2026-01-31T12:00:00.000Z), because of 1 loss",
  );
});

it("says from when shards join again if the budget is used up, and names its field", () => {
  expect(textOf({ waiting: new Map([[3, NOW]]), joinsFromMs: NOW + 60_000 })).toBe(
    "shop-3-normal is ready and will get namespaces from 2026-01-31T12:01:00.000Z, because as many moved within an hour as the budget allows (spec.root.auto.maxMovedPercentPerHour, 200 % of all)",
  );
});
