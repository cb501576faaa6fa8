// Lists of all objects and of the subset's own, seven times each, over one connection that is kept.
import { JSON_TYPE } from "../../src/kube/media-types.ts";
import type { KubeList, KubeObject } from "../../src/kube/types.ts";
import { keepConnection } from "../kept-connection.ts";
import { restartAll, type Way } from "../way.ts";
import { connectAll } from "../way-connections.ts";
import { NAMESPACE_LABEL } from "./manager.ts";
import { mediansOf, type Sample, samplesOf } from "./samples.ts";

const ALL = "/api/v1/configmaps";
const TIMES = 7;
const ENCODINGS = { Json: JSON_TYPE, Protobuf: "application/vnd.kubernetes.protobuf" } as const;

/**
 * The operator lists everything, and a proxy gives it what it owns.
 * @param restarts the proxies are new for each encoding
 */
export async function listAll(ways: readonly Way[], { restarts }: { readonly restarts: boolean }): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (const encoding of ["Json", "Protobuf"] as const) {
    if (restarts) await restartAll(ways);
    const times = await listTimes(ways, ALL, ENCODINGS[encoding]);
    const slowest = new Map([...times].map(([way, all]) => [way, Math.max(...all)]));
    samples.push(...samplesOf(`list${encoding}`, mediansOf(times)), ...samplesOf(`list${encoding}Slowest`, slowest));
  }
  return samples;
}

/** The operator selects its own namespaces by label, on every way. */
export async function listOwn(ways: readonly Way[], namespaces: readonly string[]): Promise<Sample[]> {
  const selector = encodeURIComponent(`${NAMESPACE_LABEL} in (${namespaces.join(",")})`);
  const samples: Sample[] = [];
  for (const encoding of ["Json", "Protobuf"] as const) {
    const times = await listTimes(ways, `${ALL}?labelSelector=${selector}`, ENCODINGS[encoding]);
    samples.push(...samplesOf(`own${encoding}`, mediansOf(times)));
  }
  return samples;
}

/** @throws Error if a proxy does not give exactly the own objects, since the comparison would be of different work */
export async function expectOwnObjects(ways: readonly Way[], namespaces: readonly string[], count: number): Promise<void> {
  for (const { name, endpoint, proxy } of ways) {
    if (proxy === undefined) continue;
    const connection = await keepConnection(endpoint);
    const { items } = (await connection.getJson(ALL)) as KubeList<KubeObject>;
    await connection.close();
    const own = items.filter(({ metadata }) => namespaces.includes(metadata.namespace ?? "")).length;
    if (own === count && items.length === count) continue;
    throw new Error(`the proxy "${name}" lists ${items.length} objects, ${own} of its namespaces; its namespaces have ${count}`);
  }
}

async function listTimes(ways: readonly Way[], path: string, accept: string): Promise<ReadonlyMap<Way, readonly number[]>> {
  const connections = await connectAll(ways);
  const times = await connections.time({ path, accept, turns: TIMES });
  await connections.close();
  return times;
}
