// What broken clusters cost requests to good ones. Three works, in turn without and with connections of another process: through the
// same sidecar to broken clusters, as many to good ones, and as many to the broken ones past the sidecar. Each round compares with its
// own quiet side.
import { Agent, ProxyAgent, request } from "undici";
import { cpuSecondsOf, memoryOf } from "../../test/support/process-memory.ts";
import { median, quantile } from "../table.ts";
import { type ClustersWorld, OBJECT_PATH, program, startClustersWorld } from "./clusters-world.ts";

export interface ClusterSample {
  readonly load: string;
  readonly work: string;
  readonly round: number;
  readonly p50: number;
  readonly p99: number;
}

export interface ClusterCosts {
  /** CPU time of the sidecar while each load ran, in each round. */
  readonly cpu: readonly { readonly load: string; readonly share: number }[];
  readonly samples: readonly ClusterSample[];
  /** Resident memory of the sidecar before the first round and after each, in MB. */
  readonly rssMb: readonly number[];
}

export const QUIET = "none";
const WORK_MS = 5_000;
const PAUSE_MS = 1_000;

export async function measureClusters(rounds: number, note: (text: string) => void): Promise<ClusterCosts> {
  const world = await startClustersWorld(note);
  try {
    const works = worksOf(world);
    const loads = loadsOf(world);
    const samples: ClusterSample[] = [];
    const cpu: { load: string; share: number }[] = [];
    const { pid } = world.pod.proxy;
    for (const { run } of works) await run();
    const rssMb = [memoryOf(pid).rssMb];
    for (let round = 0; round < rounds; round++) {
      note(`clusters: round ${round + 1} of ${rounds}`);
      const inTurn = round % 2 === 0 ? loads : [...loads].reverse();
      for (const { name: load, perSecond, ...targets } of inTurn) {
        const child =
          perSecond === 0
            ? undefined
            : await program("connection-load", JSON.stringify({ ...accessOf(world), ...targets, perSecond }));
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        const [startMs, startSeconds] = [performance.now(), cpuSecondsOf(pid)];
        for (const { name: work, run } of works) {
          const times = await run();
          samples.push({ load, work, round, p50: median(times), p99: quantile(times, 0.99) });
        }
        cpu.push({ load, share: ((cpuSecondsOf(pid) - startSeconds) * 1_000) / (performance.now() - startMs) });
        await child?.stop(0);
      }
      rssMb.push(memoryOf(pid).rssMb);
    }
    for (const { close } of works) await close();
    return { samples, cpu, rssMb };
  } finally {
    await world.stop();
  }
}

function accessOf({ pod, us }: ClustersWorld) {
  return { egressUrl: pod.egressUrl, proxyUrl: pod.proxyUrl, token: us.token };
}

function loadsOf({ tunnels, paths, servers, eu }: ClustersWorld) {
  const direct: readonly string[] = [];
  const good = { tunnels: [new URL(eu.server).host], paths: [`/_ctrlmesh/clusters/us${OBJECT_PATH}`] };
  return [
    { name: QUIET, perSecond: 0, tunnels: [], paths: [], direct },
    { name: "12/s to broken ones", perSecond: 12, tunnels, paths, direct },
    { name: "100/s to broken ones", perSecond: 100, tunnels, paths, direct },
    { name: "100/s to good ones", perSecond: 100, ...good, direct },
    // What the machine and the processes of the bench alone cost.
    { name: "100/s past the sidecar", perSecond: 100, tunnels: [], paths: [], direct: [...tunnels, ...servers] },
  ];
}

function worksOf({ eu, us, pod }: ClustersWorld) {
  const throughTunnel = () => new ProxyAgent({ uri: pod.egressUrl, requestTls: { ca: eu.caPem }, proxyTunnel: true });
  const kept = throughTunnel();
  const served = new Agent({ connect: { ca: pod.proxyCaPem } });
  const get = async (url: string, token: string, dispatcher: Agent | ProxyAgent) => {
    const { statusCode, body } = await request(url, { dispatcher, headers: { authorization: `Bearer ${token}` } });
    await body.arrayBuffer();
    if (statusCode !== 200) throw new Error(`GET ${url}: ${statusCode}`);
  };
  const version = `${eu.server}/version`;
  const newTunnel = async () => {
    const agent = throughTunnel();
    await get(version, eu.token, agent);
    await agent.close();
  };
  const nothing = async () => undefined;
  return [
    { name: "level 1, a tunnel for each request, 40/s", run: () => atRate(40, newTunnel), close: nothing },
    { name: "level 1, one tunnel, 200/s", run: () => atRate(200, () => get(version, eu.token, kept)), close: () => kept.close() },
    {
      name: "level 2, 200/s",
      run: () => atRate(200, () => get(`${pod.proxyUrl}/_ctrlmesh/clusters/us${OBJECT_PATH}`, us.token, served)),
      close: () => served.close(),
    },
  ];
}

/** One after the other, at most so many a second. @returns their times, in ms */
async function atRate(perSecond: number, work: () => Promise<void>): Promise<number[]> {
  const times: number[] = [];
  const start = performance.now();
  for (let at = 0; at < (WORK_MS / 1_000) * perSecond; at++) {
    const waitMs = start + (at * 1_000) / perSecond - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const begin = performance.now();
    await work();
    times.push(performance.now() - begin);
  }
  return times;
}
