// A proxy that only forwards: node:https in, undici out, with the versions and settings of the real proxy. Its cost is the
// minimum for a proxy with these libraries. Run by world.ts: node bench/bare-proxy.ts URL CA-FILE
import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type Dispatcher, Pool } from "undici";
import { createCa, issueServerCertificate } from "../src/base/certificates.ts";

const [origin = "", caFile = ""] = process.argv.slice(2);
const now = Date.now();
const ca = createCa({ commonName: "bare-proxy", now, days: 2 });
const { certPem, keyPem } = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"], now, days: 1 });
const pool = new Pool(origin, { connect: { ca: readFileSync(caFile) }, allowH2: false, pipelining: 1 });
const HOP_BY_HOP = new Set(["host", "connection", "keep-alive", "transfer-encoding"]);

const server = createServer(
  { cert: certPem, key: keyPem, ALPNProtocols: ["http/1.1"], keepAliveTimeout: 120_000 },
  (req, res) => {
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => undefined,
      onResponseStart: (_controller, status, headers) => void res.writeHead(status, withoutHops(headers)),
      onResponseData: (_controller, chunk) => void res.write(chunk),
      onResponseEnd: () => void res.end(),
      onResponseError: (_controller, error) => void res.destroy(error),
    };
    const method = (req.method ?? "GET") as Dispatcher.HttpMethod;
    pool.dispatch(
      { method, path: req.url ?? "/", headers: withoutHops(req.headers), body: method === "GET" ? null : req },
      handler,
    );
  },
);
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `https://127.0.0.1:${port}`, caPem: ca.certPem })}\n`);
});

function withoutHops(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const name in headers) if (!HOP_BY_HOP.has(name)) kept[name] = headers[name] ?? "";
  return kept;
}
