// Opens the dashboard: watches the cluster, and serves the page that shows it. Invariant: after `close` nothing of it is left: no
// connection, no timer, no process. Called by the command and by the demo.
import { randomBytes } from "node:crypto";
import { type Clock, type Random, systemRandom, type Timer } from "../../base/clock.ts";
import { VERSION } from "../../base/version.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { Cluster } from "../frame/cluster.ts";
import { createBoard, SHOWN_KINDS } from "./board.ts";
import { pageFiles } from "./page-files.ts";
import { type PageServer, type Routes, servePage } from "./server.ts";
import { createStreams, MAX_STREAMS, type Streams } from "./streams.ts";
import { createTraffic } from "./traffic.ts";
import { watchedKinds } from "./watched-kinds.ts";

/** The page is told of changes at most this often. */
const PACE_MS = 250;
const TICK_MS = 1_000;
/** Whoever takes the port after the end of this program learns the path from the page that connects again, and not this. */
const PROOF_BYTES = 16;

export interface DashboardOptions {
  readonly cluster: Cluster;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** The flags with which ctrlmesh asks the same cluster. */
  readonly access: readonly string[];
  /** 0: a free one. */
  readonly port: number;
  readonly clock: Clock;
  readonly random?: Random;
}

export async function openDashboard(options: DashboardOptions): Promise<PageServer> {
  const { cluster, namespace, access, port, clock, random = systemRandom } = options;
  const closing = new AbortController();
  const { signal } = closing;
  const files = await pageFiles();
  const { client, close } = await cluster.watcher();
  const kinds = watchedKinds({ client, namespace, clock, random, onKind: (part) => board.put(`kind ${part.resource}`, part) });
  const pace = paced(clock, signal, () => streams.changed(board.update()));
  const board = createBoard(kinds.storeOf, pace);
  for (const shown of SHOWN_KINDS) {
    const resource = resourceName(shown);
    board.put(`kind ${resource}`, { part: "kind", resource, kind: shown.kind, state: "loading" });
  }
  const proof = randomBytes(PROOF_BYTES).toString("hex");
  const streams = createStreams(board.parts, { namespace, access, version: VERSION, proof }, () => ({
    nowMs: clock.now(),
    ...kinds.connection(),
  }));
  const server = await servePage(port, routesOf({ ...files, html: files.html.replace("PROOF", proof) }, streams, cluster)).catch(
    async (error: unknown) => {
      closing.abort();
      await close();
      throw error;
    },
  );
  const watching = kinds.start(signal);
  tickEachSecond(clock, signal, streams);
  return {
    url: server.url,
    async close() {
      closing.abort();
      streams.closeAll();
      await Promise.all([server.close(), watching]);
      await close();
    },
  };
}

function routesOf(files: Awaited<ReturnType<typeof pageFiles>>, streams: Streams, cluster: Cluster): Routes {
  return {
    "": { type: "text/html; charset=utf-8", body: files.html },
    "page.js": { type: "text/javascript; charset=utf-8", body: files.script },
    "icon.svg": { type: "image/svg+xml", body: files.icon },
    "page.css": { type: "text/css; charset=utf-8", body: files.style },
    events: (_, response) => {
      response.setHeader("content-type", "text/event-stream");
      if (!streams.add(response)) response.writeHead(503).end(`more than ${MAX_STREAMS} pages are open\n`);
    },
    traffic: createTraffic(cluster),
  };
}

/** Returns a function that has `run` called soon, but not more often than the pace. */
function paced(clock: Clock, signal: AbortSignal, run: () => void): () => void {
  let timer: Timer | undefined;
  let lastMs = Number.NEGATIVE_INFINITY;
  signal.addEventListener("abort", () => timer?.cancel(), { once: true });
  return () => {
    if (timer !== undefined || signal.aborted) return;
    timer = clock.after(Math.max(0, lastMs + PACE_MS - clock.monotonicMs()), () => {
      timer = undefined;
      lastMs = clock.monotonicMs();
      run();
    });
  };
}

function tickEachSecond(clock: Clock, signal: AbortSignal, streams: Streams): void {
  const tick = () => {
    streams.tick();
    timer = clock.after(TICK_MS, tick);
  };
  let timer = clock.after(TICK_MS, tick);
  signal.addEventListener("abort", () => timer.cancel(), { once: true });
}
