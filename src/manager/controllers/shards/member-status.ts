// The status of a config that does not have its family's status: what it shows of its shard. Pure.
import type { ShardingConfig, ShardingStatus } from "../../../api/sharding-config.ts";
import type { App } from "../../sources/app.ts";

/** The family's status has the counts of each shard, and the conditions of the whole family. */
export function memberStatus({ ref, object }: Pick<App, "ref" | "object">, member: ShardingConfig): ShardingStatus {
  const { generation, name = "" } = member.metadata;
  const shard = object.status?.subsets?.find((each) => each.name === name);
  const conditions = object.status?.conditions?.filter(({ type }) => type === "Ready");
  return {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    family: ref.name,
    shard: name,
    ...(shard === undefined ? {} : { shardPods: podsText(shard), shardNamespaces: shard.namespaces }),
    ...(conditions === undefined
      ? {}
      : {
          conditions: conditions.map((each) => ({
            ...each,
            ...(generation === undefined ? {} : { observedGeneration: generation }),
          })),
        }),
  };
}

/** "2/3": ready pods, and all pods. */
export function podsText({ readyPods, pods = 0 }: { readonly readyPods: number; readonly pods?: number | undefined }): string {
  return `${readyPods}/${pods}`;
}
