// Measures what the listener for the operator's webhooks adds to a review: answered by the operator beside
// it, and forwarded to another pod. Each program has a process of its own, and the three ways take turns
// within each round.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { podUri } from "../../src/base/pem.ts";
import type { PodPeer } from "../../src/mesh/contract/peer-type.ts";
import { startChild } from "../../test/support/child-process.ts";
import { freePort } from "../../test/support/free-port.ts";
import { reviewOf, SERVICE } from "../../test/support/review-world.ts";
import { HTTP1 } from "../load.ts";
import { median, quantile, type Row, type Target } from "../table.ts";

const DURATION_MS = 1_500;
/** The size of an ordinary object. */
const OBJECT = { metadata: { name: "web" }, spec: { data: "x".repeat(4_000) } };
const TARGETS: Readonly<Record<string, Target>> = {
  "1 local": { of: "added", atMost: 0.4 },
  "1 forwarded": { of: "added", atMost: 0.9 },
};

/** @param rounds one more round comes before them and is not measured, so that caches are warm */
export async function webhookRows(rounds: number): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), "bench-webhooks-"));
  const stops: (() => Promise<unknown>)[] = [() => rm(dir, { recursive: true })];
  try {
    const now = Date.now();
    const [mesh, operatorCa] = [createCa({ commonName: "mesh", now }), createCa({ commonName: "operator", now })];
    const pair = issueServerCertificate(operatorCa, { dnsNames: [SERVICE], now });
    const [certFile, keyFile] = [join(dir, "tls.crt"), join(dir, "tls.key")];
    await writeFile(certFile, pair.certPem);
    await writeFile(keyFile, pair.keyPem);
    const start = async (file: string, ...args: string[]) => {
      const program = fileURLToPath(new URL(file, import.meta.url));
      const child = await startChild({ name: file, command: process.execPath, args: [program, ...args] });
      stops.unshift(() => child.stop());
      return Number(child.ready.port);
    };
    const operatorPort = await start("./operator.ts", certFile, keyFile);
    const port = await freePort();
    const peer = (name: string, subset: string, address: string): PodPeer => {
      return { namespace: "ops", name, uid: name, address, subset, isReady: true };
    };
    const peers = [peer("stable", "", "127.0.0.2"), peer("canary", "canary", "127.0.0.3")];
    for (const own of peers) {
      const identity = issueServerCertificate(mesh, { dnsNames: ["localhost"], clientName: podUri(own), now });
      const others = peers.filter((each) => each !== own);
      const config = { peer: own, port, operatorPort, certDir: dir, identity, meshPem: mesh.certPem, peers: others };
      const file = join(dir, `${own.name}.json`);
      await writeFile(file, JSON.stringify(config));
      await start("./pod.ts", file);
    }
    const [direct, proxied] = [`https://127.0.0.1:${operatorPort}`, `https://127.0.0.2:${port}`];
    const ways: readonly Way[] = [
      { name: "direct", url: direct, namespace: "own" },
      { name: "local", url: proxied, namespace: "own" },
      { name: "forwarded", url: proxied, namespace: "other" },
    ];
    const rows: Row[] = [];
    for (const connections of [1, 8]) rows.push(...(await rowsWith(connections, ways, operatorCa.certPem, rounds)));
    return rows;
  } finally {
    for (const stop of stops) await stop();
  }
}

interface Way {
  readonly name: string;
  readonly url: string;
  readonly namespace: string;
}

async function rowsWith(connections: number, ways: readonly Way[], ca: string, rounds: number): Promise<Row[]> {
  const seen = new Map(ways.map(({ name }) => [name, { p50: [] as number[], p99: [] as number[] }]));
  for (let round = 0; round <= rounds; round++) {
    // The order changes by round, since those that come later benefit from warm caches.
    const first = round % ways.length;
    for (const way of [...ways.slice(first), ...ways.slice(0, first)]) {
      const times = await timesOf(way, ca, connections);
      if (round === 0) continue;
      seen.get(way.name)?.p50.push(quantile(times, 0.5));
      seen.get(way.name)?.p99.push(quantile(times, 0.99));
    }
  }
  const figure = (name: string, of: "p50" | "p99") => median(seen.get(name)?.[of] ?? []);
  return ["local", "forwarded"].flatMap((name) =>
    (["p50", "p99"] as const).map((of): Row => {
      const target = of === "p50" ? TARGETS[`${connections} ${name}`] : undefined;
      return {
        section: `review, ${connections} connection${connections === 1 ? "" : "s"}`,
        name: `${name}, ${of}`,
        unit: "ms",
        direct: figure("direct", of),
        proxied: figure(name, of),
        ...(target === undefined ? {} : { target }),
      };
    }),
  );
}

async function timesOf({ url, namespace }: Way, ca: string, connections: number): Promise<number[]> {
  const pool = new Pool(url, { ...HTTP1, connections, connect: { ca, servername: SERVICE } });
  const body = JSON.stringify(reviewOf(namespace, { object: OBJECT }));
  const times: number[] = [];
  const ask = async () => {
    const answer = await pool.request({ method: "POST", path: "/mutate?timeout=10s", body });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`a review at ${url}: ${answer.statusCode} ${text}`);
  };
  // The first requests include the handshakes.
  await Promise.all(Array.from({ length: connections }, ask));
  const end = performance.now() + DURATION_MS;
  const worker = async () => {
    while (performance.now() < end) {
      const started = performance.now();
      await ask();
      times.push(performance.now() - started);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  await pool.close();
  return times;
}
