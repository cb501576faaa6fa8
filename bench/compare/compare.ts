// The comparison with another mesh's proxy: the same work directly, through this project's proxy and through the other one, in
// turns on one control plane. Both proxies own 20 of 200 namespaces. Without the other proxy it measures the same rows of ours alone.
import { nameOf } from "../../test/support/many-config-maps.ts";
import { cpuSecondsOf, memoryOf } from "../../test/support/process-memory.ts";
import { watchRows } from "../watches.ts";
import { ownProcess, type Way } from "../way.ts";
import { connectAll } from "../way-connections.ts";
import { NAMESPACES, namespaceName, startWorld, type World } from "../world.ts";
import { coldAndWarm, eightConnections, paced } from "./gets.ts";
import { expectOwnObjects, listAll, listOwn } from "./lists.ts";
import { NAMESPACE_LABEL, startOtherManager } from "./manager.ts";
import { startOtherProxy } from "./other-proxy.ts";
import type { Comparison, RoundCost, Sample } from "./samples.ts";

export interface CompareOptions {
  readonly objects: number;
  readonly rounds: number;
  /** The path of the other proxy's binary. */
  readonly against: string | undefined;
  readonly note: (text: string) => void;
}

/** The namespaces of the proxies, as world.ts labels them for the subset "tenth". */
const OWN = Array.from({ length: 20 }, (_, index) => namespaceName(index + 1));
const [NAMESPACE = ""] = OWN;
const OBJECT = `/api/v1/namespaces/${NAMESPACE}/configmaps/${nameOf(1)}`;
const WATCHED = { rate: 50, events: 500 } as const;

export async function compare({ objects, rounds, against, note }: CompareOptions): Promise<Comparison> {
  const world = await startWorld({ objects, objectLabels: labelsIn }, note);
  const stops = [() => world.stop()];
  try {
    const ways: Way[] = [
      { name: "direct", endpoint: world.direct },
      { name: "ours", endpoint: world.tenth, proxy: ownProcess(world.tenth) },
    ];
    if (against !== undefined) {
      const stopManager = await startOtherManager({ namespaces: OWN, apply: (yaml) => world.mesh.apply(yaml) });
      stops.unshift(async () => stopManager());
      const other = await startOtherProxy(against, world.kube);
      stops.unshift(() => other.stop());
      ways.push({ name: "theirs", endpoint: { url: other.url, caPem: "", token: world.kube.token }, proxy: other });
    }
    await expectOwnObjects(ways, OWN, ownObjects(objects));
    await warmClientAndApiServer(ways);
    const samples: Sample[] = [];
    const costs: RoundCost[] = [];
    for (let round = 0; round < rounds; round++) {
      note(`comparison, round ${round + 1} of ${rounds}`);
      samples.push(...(await roundOf(world, ways, round)));
      for (const { name: proxy, proxy: process } of ways) {
        if (proxy === "direct" || process === undefined) continue;
        costs.push({ proxy, rssMb: memoryOf(process.pid).rssMb, cpuSeconds: cpuSecondsOf(process.pid) });
      }
    }
    return { samples, costs };
  } finally {
    for (const stop of stops) await stop();
  }
}

/** What needs new proxies comes first. The last process then does the rest of the work. */
async function roundOf(world: World, ways: readonly Way[], round: number): Promise<Sample[]> {
  const samples = [
    ...(await listAll(ways, { restarts: true })),
    ...(await paced(ways, OBJECT, round)),
    ...(await eightConnections(ways, OBJECT, round, "eightCold")),
    ...(await coldAndWarm(ways, OBJECT)),
    ...(await eightConnections(ways, OBJECT, round, "eightWarm")),
    ...(await listOwn(ways, OWN)),
  ];
  await listAll(ways, { restarts: false }); // for the memory and the processor time alone
  return [...samples, ...(await watchSamples(world, ways))];
}

/** The bench's own client and the API server are warm from the first round on. The proxies start anew in each round. */
async function warmClientAndApiServer(ways: readonly Way[]): Promise<void> {
  const connections = await connectAll(ways.filter(({ name }) => name === "direct"));
  await connections.time({ path: OBJECT, turns: 3_000 });
  await connections.close();
  await listAll(ways, { restarts: false });
}

/** Each proxy's watch receives the same events as a direct watch beside it. */
async function watchSamples(world: World, ways: readonly Way[]): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (const { name: proxy, endpoint: side } of ways) {
    if (proxy === "direct") continue;
    const rows = await watchRows(world, { name: proxy, side, namespace: NAMESPACE, labels: labelsIn(NAMESPACE), ...WATCHED });
    for (const [row, name] of [
      ["watchP50", "arrival, p50"],
      ["watchP99", "arrival, p99"],
    ] as const) {
      const found = rows.find((each) => each.name === name);
      if (found !== undefined) samples.push({ row, proxy, direct: found.direct, proxied: found.proxied });
    }
  }
  return samples;
}

function labelsIn(namespace: string): Readonly<Record<string, string>> {
  return { [NAMESPACE_LABEL]: namespace };
}

/** Object i is in namespace i mod 200. */
function ownObjects(objects: number): number {
  return Array.from({ length: objects }, (_, index) => namespaceName(index % NAMESPACES)).filter((name) => OWN.includes(name))
    .length;
}
