// The status of a config that does not have its family's status: what it shows of its shard. Pure.
import type { ShardingConfig, ShardingStatus } from "../../../api/sharding-config.ts";
import type { App } from "../../apps/app.ts";
import { podsText } from "../describe-family.ts";

/** The family's status has the counts of each shard, and the conditions of the whole family. */
export function memberStatus({ ref, object }: Pick<App, "ref" | "object">, member: ShardingConfig): ShardingStatus {
  const { generation, name = "" } = member.metadata;
  const shard = object.status?.subsets?.find((each) => each.name === name);
  const ready = object.status?.conditions?.filter(({ type }) => type === "Ready");
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  return {
    ...observed,
    family: ref.name,
    shard: name,
    ...(shard === undefined ? {} : { shardPods: podsText(shard), shardNamespaces: shard.namespaces }),
    ...(ready && { conditions: ready.map((each) => ({ ...each, ...observed })) }),
  };
}
