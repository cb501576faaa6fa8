// The sidecar as a process, between a scripted API server at home, a scripted manager, and other clusters that the test brings. The
// pod is of subset blue, which owns the clusters with tunnels, and the namespace "own" inside the others.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UpdateMessage } from "../../src/mesh/contract/messages.ts";
import { eventually } from "./eventually.ts";
import { answerJson, startFakeApi } from "./fake-api.ts";
import { createProxyLauncher, type ProxyLauncherOptions, proxyReady } from "./proxy-launcher.ts";
import { readMetrics } from "./proxy-metrics.ts";
import { subset, table } from "./route-table.ts";
import { startManager } from "./scripted-manager.ts";
import { routes } from "./test-routes.ts";
import { policyUpdate, wholeUpdate } from "./updates.ts";

export type ClusterSidecar = Awaited<ReturnType<typeof startClusterSidecar>>;

export interface OtherClusters {
  /** Ports on 127.0.0.1, by the name of the cluster. */
  readonly tunnels?: Readonly<Record<string, number>>;
  /** Those that the sidecar serves. Their certificates name localhost. */
  readonly served?: Readonly<Record<string, { readonly url: string; readonly ca: string }>>;
  readonly drainMs?: number;
}

const ACK_MS = 60_000;
const UID = "uid-1";
const CLAIMS = Buffer.from(JSON.stringify({ "kubernetes.io": { pod: { uid: UID } } })).toString("base64url");
const BOUND_TOKEN = `Bearer head.${CLAIMS}.signature`;
const INSIDE = table([subset("blue")], { own: [0], theirs: [] });

export async function startClusterSidecar(options: Pick<ProxyLauncherOptions, "flags" | "env" | "proxyMain"> = {}) {
  const dir = await mkdtemp(join(tmpdir(), "cluster-sidecar-"));
  const home = await startFakeApi((req, res) => {
    req.resume();
    answerJson(res, req.method === "POST" ? 201 : 200, {});
  });
  const caFile = join(dir, "home.crt");
  await writeFile(caFile, home.ca.certPem);
  const manager = await startManager(0, { types: ["policy"] });
  const child = await createProxyLauncher({
    kube: { server: home.url, caFile },
    manager: manager.endpoint,
    namespace: "shop",
    name: "shop-0",
    uid: UID,
    dataDir: join(dir, "data"),
    ...options,
    flags: { "egress-listen": "127.0.0.1:0", "egress-private-addresses": "127.0.0.0/8", "log-level": "info", ...options.flags },
  })();
  const { url, healthUrl, ca, egressUrl = "" } = proxyReady(child);
  const target = { hostname: "127.0.0.1", port: new URL(url).port, servername: "localhost", ca: await readFile(ca) };
  let nonce = 0;
  /** Sends the update, and again on each new stream: a sidecar on a busy machine may connect anew. */
  const enforce = async (update: UpdateMessage): Promise<void> => {
    let sentOn: object | undefined;
    await eventually(() => {
      const stream = manager.streams.at(-1);
      if (stream !== undefined && stream !== sentOn) manager.send({ update });
      sentOn = stream;
      return manager.received.some((message) => "ack" in message && message.ack?.nonce === update.nonce);
    }, ACK_MS);
    manager.received.length = 0;
  };
  /** A request with its own connection, unless an agent is given. Resolves with the head, or with the socket of a tunnel. */
  const ask = (path: string, { headers, body, ...more }: RequestOptions & { readonly body?: string } = {}) =>
    new Promise<{ readonly status: number; readonly answer: IncomingMessage; readonly socket?: Socket }>((resolve, reject) => {
      const authorized = { authorization: "Bearer abroad", ...headers };
      const sent = httpsRequest({ ...target, agent: false, path, headers: authorized, ...more });
      sent.once("response", (answer) => resolve({ status: answer.statusCode ?? 0, answer: answer.on("error", () => undefined) }));
      sent.once("upgrade", (answer, socket: Socket) => {
        resolve({ status: 101, answer, socket: socket.on("error", () => undefined) });
      });
      sent.on("error", reject).end(body);
    });
  await enforce(policyUpdate({ limits: [], faults: [], egress: [] }, ++nonce));

  return {
    child,
    home,
    ask,
    healthUrl,
    metrics: () => readMetrics(healthUrl),
    /** Watches, tunnels and requests to other servers that are open now. */
    async openStreams(): Promise<number> {
      const metrics = await readMetrics(healthUrl);
      return metrics.sum("ctrlmesh_proxy_open_streams") + metrics.sum("ctrlmesh_proxy_egress_open");
    },
    isDraining: async () => (await fetch(`${healthUrl}/readyz`)).status === 500,
    /** Sends routes with these clusters, and waits until they are acknowledged. */
    async route({ tunnels = {}, served = {}, drainMs = 1_000 }: OtherClusters): Promise<void> {
      const clusters = [
        ...Object.entries(tunnels).map(([name, port]) => ({ name, servers: [`127.0.0.1:${port}`], drainMs, owner: "blue" })),
        ...Object.entries(served).map(([name, upstream], index) => ({
          name,
          servers: [`${name}.example:${index + 1}`],
          drainMs,
          owner: "",
          isFenced: true as const,
          upstream: { ...upstream, serverName: "localhost" },
        })),
      ];
      const clusterTables = new Map(Object.keys(served).map((name) => [name, INSIDE]));
      await enforce(wholeUpdate(routes(++nonce, { blue: ["own"] }, { clusters, clusterTables }), nonce));
    },
    /** A request home with the pod's own token, so that the pod may write to other clusters. */
    async proveHome(): Promise<void> {
      const { status, answer } = await ask("/version", { headers: { authorization: BOUND_TOKEN } });
      answer.resume();
      if (status !== 200) throw new Error(`home: ${status}`);
    },
    /** Opens a tunnel by CONNECT. Resolves with the status, and with the socket if it is 200. */
    connect: (port: number) =>
      new Promise<{ readonly status: number; readonly socket: Socket }>((resolve, reject) => {
        const { hostname, port: at } = new URL(egressUrl);
        const sent = httpRequest({ hostname, port: at, method: "CONNECT", path: `127.0.0.1:${port}`, agent: false });
        sent.on("connect", ({ statusCode = 0 }, socket: Socket) =>
          resolve({ status: statusCode, socket: socket.on("error", () => undefined) }),
        );
        sent.on("error", reject).end();
      }),
    async stop(): Promise<void> {
      await child.stop();
      manager.stop();
      await home.close();
      await rm(dir, { recursive: true });
    },
  };
}
