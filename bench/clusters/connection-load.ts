// Connections to clusters through a sidecar, at a rate: each opens a tunnel and a TLS handshake in it, or sends one request, and gives up
// after a second. Run by clusters.ts: node bench/clusters/connection-load.ts JSON
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect as tlsConnect } from "node:tls";

interface Load {
  readonly egressUrl: string;
  readonly proxyUrl: string;
  readonly token: string;
  /** host:port of each cluster with a tunnel. */
  readonly tunnels: readonly string[];
  /** Paths at the sidecar, of clusters that it serves. */
  readonly paths: readonly string[];
  /** host:port of servers to which the process connects by itself. */
  readonly direct: readonly string[];
  readonly perSecond: number;
}

const GIVE_UP_MS = 1_000;
const { egressUrl, proxyUrl, token, tunnels, paths, direct, perSecond }: Load = JSON.parse(process.argv[2] ?? "");
const { hostname, port } = new URL(egressUrl);

function openTunnel(server: string): void {
  const request = httpRequest({ hostname, port, method: "CONNECT", path: server });
  const timer = setTimeout(() => request.destroy(), GIVE_UP_MS);
  request
    .on("error", () => clearTimeout(timer))
    .on("response", (response) => {
      clearTimeout(timer);
      response.resume();
    })
    .on("connect", (_response, socket) => {
      const end = () => {
        clearTimeout(timer);
        socket.destroy();
      };
      setTimeout(end, GIVE_UP_MS);
      socket.on("error", end);
      tlsConnect({ socket, rejectUnauthorized: true, host: "127.0.0.1" }).on("error", end).on("secureConnect", end);
    })
    .end();
}

function connectDirectly(server: string): void {
  const { hostname: host, port } = new URL(`https://${server}`);
  const socket = tlsConnect({ host, port: Number(port) });
  const timer = setTimeout(() => socket.destroy(), GIVE_UP_MS);
  socket
    .on("error", () => socket.destroy())
    .on("secureConnect", () => socket.destroy())
    .on("close", () => clearTimeout(timer));
}

function ask(path: string): void {
  const headers = { authorization: `Bearer ${token}` };
  const request = httpsRequest(`${proxyUrl}${path}`, { headers, rejectUnauthorized: false, agent: false });
  const timer = setTimeout(() => request.destroy(), GIVE_UP_MS);
  request
    .on("response", (response) => response.resume().on("close", () => clearTimeout(timer)))
    .on("error", () => clearTimeout(timer))
    .end();
}

const works = [
  ...tunnels.map((server) => () => openTunnel(server)),
  ...paths.map((path) => () => ask(path)),
  ...direct.map((server) => () => connectDirectly(server)),
];
let at = 0;
let due = performance.now();
process.stdin.resume().on("end", () => process.exit());
process.stdout.write("{}\n");
setInterval(() => {
  for (; due <= performance.now(); due += 1_000 / perSecond) works[at++ % works.length]?.();
}, 5);
