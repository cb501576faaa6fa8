// The API servers of other clusters for the churn: good ones, and one for each way to be broken.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { answerJson, type Script, startFakeApi } from "../support/fake-api.ts";

const SWITCHING = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n";
const EVENT = `${JSON.stringify({ type: "MODIFIED", object: { metadata: { name: "c", namespace: "own", resourceVersion: "2" } } })}\n`;

/** As an API server with one ConfigMap answers. Watches have ten events a second. */
const answer: Script = (req, res) => {
  req.resume();
  const { url = "", method } = req;
  const item = { metadata: { name: "c", namespace: "own", resourceVersion: "1" } };
  if (url.includes("watch=1")) {
    res.writeHead(200, { "content-type": "application/json" }).write(EVENT);
    const timer = setInterval(() => res.write(EVENT), 100);
    res.once("close", () => clearInterval(timer)).on("error", () => undefined);
  } else if (url.endsWith("/api/v1")) {
    const resources = [{ name: "configmaps", namespaced: true, kind: "ConfigMap", verbs: ["list"] }];
    answerJson(res, 200, { kind: "APIResourceList", groupVersion: "v1", resources });
  } else if (method === "GET" && !url.endsWith("/c"))
    answerJson(res, 200, { kind: "ConfigMapList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items: [item] });
  else answerJson(res, 200, { kind: "ConfigMap", apiVersion: "v1", ...item });
};

async function startApi() {
  const api = await startFakeApi(answer);
  api.onUpgrade = (_req, socket) => {
    socket.on("error", () => undefined).write(SWITCHING);
    socket.pipe(socket);
  };
  return api;
}

export type ClusterServers = Awaited<ReturnType<typeof startClusterServers>>;

export async function startClusterServers() {
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  const listen = async (serve: (socket: Socket) => void): Promise<number> => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket.on("error", () => undefined));
      socket.once("close", () => sockets.delete(socket));
      serve(socket);
    });
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return (server.address() as AddressInfo).port;
  };
  const [good, changing] = await Promise.all([startApi(), startApi()]);
  const dead = await listen(() => undefined);
  servers.pop()?.close();
  const ports = {
    good: good.port,
    changing: changing.port,
    dead,
    // Its process is as if it were stopped: the kernel takes the bytes, and nobody answers or ends a connection.
    silent: await listen(() => undefined),
    garbage: await listen((socket) => void socket.write("\x00\xff garbage\r\n".repeat(64))),
    reset: await listen((socket) => void socket.resetAndDestroy()),
  };
  return {
    ports,
    /** What a sidecar that serves them has to know. */
    upstreams: () =>
      Object.fromEntries(
        Object.entries(ports).map(([name, port]) => {
          const { ca } = name === "changing" ? changing : good;
          return [name, { url: `https://127.0.0.1:${port}`, ca: ca.certPem }] as const;
        }),
      ),
    /** Gives "changing" a new CA, and forgets the requests so far. */
    change(): void {
      changing.rotateCa();
      changing.reset();
      for (const { seen } of [good, changing]) seen.length = 0;
    },
    async stop(): Promise<void> {
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all([good.close(), changing.close()]);
    },
  };
}
