// Measures how much later an event arrives through the proxy than directly, at 50 and at 1,000 events per
// second, and the cost of fifty idle watches. Both watches receive the same event, so the server's own delay
// cancels out.
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { CONFIG_MAPS } from "../src/kube/client/resources.ts";
import { HTTP1 } from "./load.ts";
import { quantile, type Row, type Usage } from "./table.ts";
import type { Endpoint, Side, World } from "./world.ts";

/**
 * The number of concurrent writers, since one write takes longer than a millisecond. Each writer has its own
 * object.
 */
const WRITERS = 16;
const ALL = "/api/v1/configmaps";
const EVENT_NUMBER = /"sent":"(\d+)"/g;

interface Watching {
  /** Arrival time by event number. */
  readonly seen: ReadonlyMap<number, number>;
  close(): Promise<void>;
}

export interface WatchWork {
  /** The way of filtering. */
  readonly name: string;
  readonly side: Endpoint;
  /** A namespace that the side owns. */
  readonly namespace: string;
  /**
   * The direct side also watches only this namespace, as the proxy does upstream. The API server sends such
   * events a little later.
   */
  readonly isPushedDown?: boolean;
  /** Of the objects. Default none. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly rate: number;
  readonly events: number;
}

/** Separates the objects of one measurement from those of the previous one. */
let works = 0;

/** The same events through a proxy that only forwards. This is the minimum cost of a proxy. */
export async function bareWatchRows(world: World, work: Omit<WatchWork, "name" | "side">): Promise<Row[]> {
  const measured = await watchRows(world, { ...work, name: "all namespaces", side: world.bare });
  return measured.map(({ target: _, ...row }) => ({ ...row, section: `bare Node proxy, ${row.section}` }));
}

export async function watchRows(
  world: World,
  { name: how, side, namespace, isPushedDown, labels = {}, rate, events }: WatchWork,
): Promise<Row[]> {
  const names = Array.from({ length: WRITERS }, (_, slot) => `watched-${works++}-${slot}`);
  for (const name of names) await world.mesh.client.create(CONFIG_MAPS, { metadata: { namespace, name, labels } });
  const watches = {
    direct: await watch(world.direct, isPushedDown ? `/api/v1/namespaces/${namespace}/configmaps` : ALL),
    proxied: await watch(side, ALL),
  };
  const sent = await write(world.direct, namespace, names, rate, events);
  await until(() => watches.direct.seen.size >= events && watches.proxied.seen.size >= events, 60_000);
  await watches.direct.close();
  await watches.proxied.close();
  const delays = (watching: Watching) => [...sent].map(([event, at]) => (watching.seen.get(event) ?? Number.NaN) - at);
  const added = [...sent.keys()].map((event) => (watches.proxied.seen.get(event) ?? 0) - (watches.direct.seen.get(event) ?? 0));
  const section = `WATCH at ${rate} events/s, ${how}`;
  const between = (q: number): Row => ({
    section,
    name: `arrival, p${q * 100}`,
    unit: "ms",
    direct: quantile(delays(watches.direct), q),
    proxied: quantile(delays(watches.proxied), q),
  });
  const later = (q: number, atMost: number): Row => {
    const name = `delay of the same event, p${q * 100}`;
    return { section, name, unit: "ms", direct: 0, proxied: quantile(added, q), target: { of: "added", atMost } };
  };
  const elapsedSeconds = (watching: Watching) =>
    (Math.max(...watching.seen.values()) - Math.min(...watching.seen.values())) / 1000;
  const throughput: Row = {
    section,
    name: "events",
    unit: "/s",
    direct: events / elapsedSeconds(watches.direct),
    proxied: events / elapsedSeconds(watches.proxied),
  };
  return [between(0.5), between(0.99), later(0.5, 0.5), later(0.99, 2), throughput];
}

/** Fifty watches over all namespaces, idle for ten seconds. */
export async function idleWatches(world: World, side: Side): Promise<Usage> {
  const watches = await Promise.all(Array.from({ length: 50 }, () => watch(side, ALL)));
  await sleep(1_000);
  world.usage(side, "");
  await sleep(10_000);
  const usage = world.usage(side, "50 idle watches, 10 s");
  for (const each of watches) await each.close();
  return usage;
}

async function watch({ url, caPem, token }: Endpoint, collection: string): Promise<Watching> {
  const pool = new Pool(url, { ...HTTP1, connections: 1, connect: { ca: caPem }, bodyTimeout: 0 });
  const seen = new Map<number, number>();
  const headers = { authorization: `Bearer ${token}`, accept: "application/json" };
  const list = await pool.request({ method: "GET", path: `${collection}?limit=1`, headers });
  const { metadata } = (await list.body.json()) as { metadata: { resourceVersion: string } };
  const path = `${collection}?watch=true&allowWatchBookmarks=true&resourceVersion=${metadata.resourceVersion}`;
  const answer = await pool.request({ method: "GET", path, headers });
  if (answer.statusCode !== 200) throw new Error(`watching ${url}: ${answer.statusCode}`);
  let incomplete = "";
  answer.body.on("data", (chunk: Buffer) => {
    const now = performance.now();
    const text = incomplete + chunk.toString("latin1");
    for (const match of text.matchAll(EVENT_NUMBER)) if (!seen.has(Number(match[1]))) seen.set(Number(match[1]), now);
    incomplete = text.slice(-30); // may end inside an event number
  });
  answer.body.on("error", () => undefined); // `close` destroys the body
  return { seen, close: () => pool.destroy() };
}

// Event i is due at i / rate seconds.
async function write(
  { url, caPem, token }: Endpoint,
  namespace: string,
  names: readonly string[],
  rate: number,
  events: number,
): Promise<Map<number, number>> {
  const pool = new Pool(url, { ...HTTP1, connections: WRITERS, connect: { ca: caPem } });
  const sent = new Map<number, number>();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/merge-patch+json" };
  const start = performance.now();
  let next = 0;
  const worker = async (name: string) => {
    for (let event = next++; event < events; event = next++) {
      const dueMs = start + (event * 1000) / rate - performance.now();
      if (dueMs > 0) await sleep(dueMs);
      sent.set(event, performance.now());
      const body = JSON.stringify({ data: { sent: String(event) } });
      const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
      const answer = await pool.request({ method: "PATCH", path, headers, body });
      await answer.body.dump();
      if (answer.statusCode !== 200) throw new Error(`patching ${path}: ${answer.statusCode}`);
    }
  };
  await Promise.all(names.map(worker));
  await pool.close();
  return sent;
}

async function until(done: () => boolean, withinMs: number): Promise<void> {
  const end = performance.now() + withinMs;
  while (!done()) {
    if (performance.now() > end) throw new Error("the watches did not receive every event");
    await sleep(5);
  }
}
