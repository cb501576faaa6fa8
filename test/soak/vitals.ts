// The vitals of a proxy: its memory, file descriptors, timers and handles, and the streams that the API server holds open for it.
// vitals-preload.js reports the values inside the process upon SIGUSR2, after a garbage collection.
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "../support/eventually.ts";
import { memoryOf } from "../support/process-memory.ts";
import { parseMetrics, readMetrics } from "../support/proxy-metrics.ts";

export interface Vitals {
  readonly rssMb: number;
  readonly heapUsedMb: number;
  /** The heap's memory from the system, used or not. */
  readonly heapTotalMb: number;
  /** Memory outside the heap, buffers included. */
  readonly externalMb: number;
  readonly fds: number;
  readonly sockets: number;
  /** The handles that keep the process alive, by kind: Timeout, TLSWrap, TCPSocketWrap, ... */
  readonly resources: Readonly<Record<string, number>>;
  /** Watches, as the proxy counts them. */
  readonly watches: number;
  /** Watches and tunnels that are open on the API server, the control plane's own included. */
  readonly longRunning: number;
  /** The delay of the event loop since the last call. */
  readonly late: Lateness;
}

export interface Lateness {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface VitalsTarget {
  readonly pid: number;
  readonly healthUrl: string;
  /** The folder that vitals-preload.js writes to. */
  readonly folder: string;
  /** The API server's /metrics, as text. */
  readonly serverMetrics: () => Promise<string>;
}

interface Inside {
  readonly late: Lateness;
  readonly heapUsed: number;
  readonly heapTotal: number;
  readonly external: number;
  readonly arrayBuffers: number;
  readonly resources: Readonly<Record<string, number>>;
}

const MB = 1024 * 1024;
const PRELOAD = fileURLToPath(new URL("./vitals-preload.js", import.meta.url));

/** Until `stop`, new processes load vitals-preload.js, because of NODE_OPTIONS. */
export function preloadVitals(): { readonly folder: string; stop(): void } {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-vitals-"));
  const before = { ...process.env };
  process.env.NODE_OPTIONS = `${before.NODE_OPTIONS ?? ""} --expose-gc --import ${PRELOAD}`;
  process.env.CTRLMESH_VITALS = folder;
  return {
    folder,
    stop() {
      for (const name of ["NODE_OPTIONS", "CTRLMESH_VITALS"]) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function readVitals({ pid, healthUrl, folder, serverMetrics }: VitalsTarget): Promise<Vitals> {
  const metrics = await readMetrics(healthUrl);
  const server = parseMetrics(await serverMetrics());
  const inside = await readInside(pid, folder);
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  return {
    rssMb: memoryOf(pid).rssMb,
    heapUsedMb: round(inside.heapUsed / MB),
    heapTotalMb: round(inside.heapTotal / MB),
    externalMb: round((inside.external + inside.arrayBuffers) / MB),
    fds: links.length,
    sockets: links.filter((link) => link.startsWith("socket:")).length,
    resources: inside.resources,
    late: inside.late,
    watches: metrics.sum("ctrlmesh_proxy_active_watches"),
    longRunning:
      server.sum("apiserver_longrunning_requests", { resource: "configmaps" }) +
      server.sum("apiserver_longrunning_requests", { resource: "secrets" }) +
      server.sum("apiserver_longrunning_requests", { resource: "pods", verb: "CONNECT" }),
  };
}

async function readInside(pid: number, folder: string): Promise<Inside> {
  const file = `${folder}/${pid}.json`;
  rmSync(file, { force: true });
  process.kill(pid, "SIGUSR2");
  return eventually(() => JSON.parse(readFileSync(file, "utf8")) as Inside, { withinMs: 20_000, everyMs: 20 });
}

// The process may close the file before the link is read.
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

const round = (value: number) => Math.round(value * 10) / 10;
