// API servers of other clusters that are up and down in turn, as a process of their own. Argument: how many. Prints their URLs and CAs.
// SIGUSR2 makes all of them good servers from then on.
//
// While a server flaps, it takes connections for 2 s and drops each one at once for 2 s. Each connection shows another certificate, each
// fifth list is refused, and a namespace comes or goes every 100 ms. Watches end after half a second.
import type { IncomingMessage, ServerResponse } from "node:http";
import { issueServerCertificate } from "../../../src/base/certificates.ts";
import { type FakeApi, startFakeApi } from "../fake-api.ts";

const TURN_MS = 2_000;
const DAY_MS = 86_400_000;
const NAMESPACES = Array.from({ length: 50 }, (_, index) => `team-${index}`);
let isCalm = false;
let version = 1;

const servers = await Promise.all(Array.from({ length: Number(process.argv[2]) }, (_, index) => startFlapping(index)));
process.stdout.write(`${JSON.stringify({ servers: servers.map(({ url, ca }) => ({ url, ca: ca.certPem })) })}\n`);
process.stdin.resume().once("end", () => process.exit(0));
process.once("SIGUSR2", () => {
  isCalm = true;
  for (const server of servers) server.reset();
});

async function startFlapping(index: number): Promise<FakeApi> {
  let lists = 0;
  let calmLists = 0;
  const api = await startFakeApi((req, res) => {
    req.resume();
    res.setHeader("content-type", "application/json");
    const isWatch = req.url?.includes("watch=");
    if (!isCalm && isDown()) res.destroy();
    else if (isWatch && isCalm && calmLists === 0)
      res.writeHead(410).end("{}"); // so that it lists anew
    else if (isWatch) watch(req, res);
    else if (!isCalm && ++lists % 5 === 0) res.writeHead(400 + (lists % 19)).end(`{"message":"request ${lists}"}`);
    else {
      if (isCalm) calmLists++;
      res.end(JSON.stringify({ metadata: { resourceVersion: String(version) }, items: NAMESPACES.map(namespaceOf) }));
    }
  });
  const isDown = () => Math.floor((Date.now() + index * 617) / TURN_MS) % 2 === 1;
  const certificates = Array.from({ length: 8 }, (_, at) =>
    issueServerCertificate(api.ca, {
      dnsNames: ["localhost"],
      ipAddresses: ["127.0.0.1"],
      // Each second one ends soon.
      now: Date.now() - (at % 2) * (10 + at) * 0.95 * DAY_MS,
      days: 10 + at,
    }),
  );
  const flap = () => {
    if (isCalm) return;
    const next = certificates[Math.floor(Math.random() * certificates.length)];
    if (next !== undefined) api.useCertificate(next);
    if (isDown()) api.reset();
  };
  setInterval(flap, 50);
  return api;
}

function namespaceOf(name: string) {
  return { metadata: { name, resourceVersion: String(version) } };
}

/** While the server flaps, a watch tells of one namespace that comes and goes. */
function watch(req: IncomingMessage, res: ServerResponse): void {
  res.on("error", () => undefined);
  res.write("\n");
  let count = 0;
  const timer = setInterval(() => {
    if (isCalm) return;
    count++;
    version++;
    const object = { apiVersion: "v1", kind: "Namespace", ...namespaceOf("flapping") };
    res.write(`${JSON.stringify({ type: count % 2 === 1 ? "ADDED" : "DELETED", object })}\n`);
    if (count === 5) res.end();
  }, 100);
  req.socket.once("close", () => clearInterval(timer));
  res.once("close", () => clearInterval(timer));
}
