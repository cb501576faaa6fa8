// An operator's webhook server: allows every review. Run by webhooks.ts: node bench/webhooks/operator.ts CERT-FILE KEY-FILE
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

const [certFile = "", keyFile = ""] = process.argv.slice(2);
const server = createServer(
  { cert: readFileSync(certFile), key: readFileSync(keyFile), ALPNProtocols: ["http/1.1"], keepAliveTimeout: 120_000 },
  (req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const { apiVersion, kind, request } = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, { uid: string }>;
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify({ apiVersion, kind, response: { uid: request?.uid, allowed: true } }));
    });
  },
);
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
