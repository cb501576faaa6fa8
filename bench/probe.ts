// A thread that requests one URL over one connection, one request after the other and at most every 5 ms. When the thread is stopped, it
// reports the response times. Started by event-loop.ts.
import { get as getPlain, Agent as PlainAgent } from "node:http";
import { Agent, get } from "node:https";
import { parentPort, workerData } from "node:worker_threads";

export interface Probed {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

const EVERY_MS = 5;
const { url, ca, token } = workerData as { readonly url: string; readonly ca: string; readonly token: string };
const isPlain = url.startsWith("http:");
const agent = isPlain ? new PlainAgent({ keepAlive: true, maxSockets: 1 }) : new Agent({ keepAlive: true, maxSockets: 1, ca });
const times: number[] = [];
let stopped = false;

function probeOnce(): Promise<void> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const options = { agent, headers: { authorization: `Bearer ${token}` } };
    const req = (isPlain ? getPlain : get)(url, options, (res) => {
      res.resume();
      res.once("end", () => {
        times.push(performance.now() - startedMs);
        resolve();
      });
    });
    req.once("error", reject);
  });
}

parentPort?.once("message", () => {
  stopped = true;
});
while (!stopped) {
  const startedMs = performance.now();
  await probeOnce();
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, EVERY_MS - (performance.now() - startedMs))));
}
agent.destroy();
const sorted = times.toSorted((a, b) => a - b);
const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0;
parentPort?.postMessage({ count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: sorted.at(-1) ?? 0 } satisfies Probed);
