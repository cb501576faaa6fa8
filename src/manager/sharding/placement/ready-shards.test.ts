import { expect, it } from "vitest";
import { sampleShardingRoot } from "../../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import type { Pod } from "../../../kube/client/resources.ts";
import { readyShards } from "./ready-shards.ts";

const pod = (name: string, isReady = true, metadata: object = {}): Pod =>
  ({
    metadata: { name, ...metadata },
    status: { conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
  }) as unknown as Pod;

/** The ready shards of a root with one canary pod and two pods for each normal shard. */
function shards(start: number, pods: readonly Pod[]): number[] {
  const { root } = (sampleShardingRoot() as unknown as ShardingConfig).spec;
  if (root === undefined) throw new Error("no root");
  return [...readyShards(root, start, pods)];
}

it("a shard is ready with one of its pods; the canary's pods make no normal shard ready", () => {
  expect(shards(0, [pod("shop-operator-0")])).toEqual([]);
  expect(shards(0, [pod("shop-operator-2"), pod("shop-operator-1", false)])).toEqual([1]);
  expect(
    shards(
      0,
      ["3", "4", "5"].map((ordinal) => pod(`shop-operator-${ordinal}`)),
    ),
  ).toEqual([2, 3]);
  expect(shards(0, [pod("other-1"), { metadata: { name: "shop-operator-1" } } as Pod])).toEqual([]);
});

it("a terminating pod is not ready", () => {
  expect(shards(0, [pod("shop-operator-1", true, { deletionTimestamp: "2026-01-01T00:00:00Z" })])).toEqual([]);
});

it("ordinals count from the StatefulSet's start; pods below it are of no shard", () => {
  expect(
    shards(
      3,
      ["0", "2", "3"].map((ordinal) => pod(`shop-operator-${ordinal}`)),
    ),
  ).toEqual([]);
  expect(shards(3, [pod("shop-operator-4")])).toEqual([1]);
  expect(shards(3, [pod("shop-operator-8")])).toEqual([3]);
});
