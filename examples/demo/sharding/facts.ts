// Reads the present state of the act: the root's status, and who reconciled which Foo.
import { SHARDING_CONFIGS } from "../../../src/api/resources.ts";
import { DEFAULT_DISPLAY_NAME } from "../../../src/mesh/ownership/words.ts";
import { FOOS } from "../manifests.ts";
import type { World } from "../world.ts";
import type { Facts } from "./view.ts";

export async function lookAt({ client, setting, operator }: World): Promise<Facts> {
  const name = setting.appName;
  const [foos, { status }] = await Promise.all([
    client.list(FOOS),
    client.get(SHARDING_CONFIGS, { namespace: setting.namespace, name }),
  ]);
  const condition = (type: string) => status?.conditions?.find((one) => one.type === type);
  const converged = condition("Converged");
  const reconciledBy = new Map(foos.items.map(({ metadata, status }) => [metadata.namespace ?? "", status?.reconciledBy ?? ""]));
  const byShard = Map.groupBy(reconciledBy.values(), (pod) => operator.subsetOfPod.get(pod));
  return {
    root: {
      name,
      ready: condition("Ready")?.status ?? "Unknown",
      converged: converged?.status === "True",
      balance: status?.balance && [status.balance.smallest, status.balance.largest],
      message: converged?.message ?? "",
    },
    // Pods that stand by belong to no shard.
    shards: (status?.subsets ?? [])
      .filter((subset) => subset.name !== DEFAULT_DISPLAY_NAME)
      .map(({ name: shard, pods = 0, readyPods, leader = "", namespaces }) => ({
        shard,
        leader,
        namespaces,
        pods: `${readyPods}/${pods}`,
        reconciled: byShard.get(shard)?.length ?? 0,
      })),
    reconciledBy,
    behind: foos.items.filter(({ metadata, status }) => status?.observedGeneration !== metadata.generation).length,
  };
}
