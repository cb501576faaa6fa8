// What containers of the first node use, as the kubelet reports it and `kubectl top` shows it.
import type { World } from "./world.ts";

const CONTAINERS = ["ctrlmesh-proxy", "manager", "operator"];
const SAMPLE =
  /^(container_memory_working_set_bytes|container_cpu_usage_seconds_total)\{container="([^"]+)",namespace="([^"]+)",pod="([^"]+)"\} (\S+) /gm;

export interface Usage {
  readonly megabytes: number;
  readonly cpuSeconds: number;
}

/** By container and pod, as "ctrlmesh-proxy foo-system/foo-abc". */
export type Usages = ReadonlyMap<string, Usage>;

/** A line for each container name: the least and the most of memory and CPU, over some seconds. */
export async function describeUsage(world: World, seconds: number): Promise<string[]> {
  const before = await readUsage(world);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return describeChange(before, await readUsage(world), seconds);
}

/** The same for two readings. */
export function describeChange(before: Usages, after: Usages, seconds: number): string[] {
  return CONTAINERS.flatMap((name) => {
    const keys = [...after.keys()].filter((key) => key.startsWith(`${name} `));
    if (keys.length === 0) return [];
    const megabytes = keys.map((key) => after.get(key)?.megabytes ?? 0);
    const millicores = keys.flatMap((key) => {
      const first = before.get(key);
      return first === undefined ? [] : (((after.get(key)?.cpuSeconds ?? 0) - first.cpuSeconds) * 1000) / seconds;
    });
    return `${name}: working set ${range(megabytes)} MB, CPU ${range(millicores)} m`;
  });
}

export async function readUsage(world: World): Promise<Usages> {
  const [node = ""] = world.cluster.nodeNames;
  const text = await world.run("get", "--raw", `/api/v1/nodes/${node}/proxy/metrics/resource`);
  const usage = new Map<string, Usage>();
  for (const [, metric, container = "", namespace, pod, value] of text.matchAll(SAMPLE)) {
    const key = `${container} ${namespace}/${pod}`;
    const known = usage.get(key) ?? { megabytes: 0, cpuSeconds: 0 };
    const now = metric?.includes("memory") ? { megabytes: Number(value) / 1e6 } : { cpuSeconds: Number(value) };
    usage.set(key, { ...known, ...now });
  }
  return usage;
}

function range(values: readonly number[]): string {
  return values.length === 0 ? "unknown" : `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}`;
}
