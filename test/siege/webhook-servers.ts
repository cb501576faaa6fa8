// Webhook servers that allow every review, as a process: `node webhook-servers.ts FOLDER` with tls.crt and tls.key in it. It prints two ports. They do
// not parse the reviews, so that a heavy one costs only whoever forwards it. Started by operator-pods.ts.
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** All reviews of a siege have their uid in front. */
const UID_BYTES = 200;

async function allow(req: IncomingMessage, res: ServerResponse): Promise<void> {
  let head = "";
  for await (const chunk of req as AsyncIterable<Buffer>) {
    if (head.length < UID_BYTES) head += chunk.subarray(0, UID_BYTES).toString("latin1");
  }
  const uid = /"uid":"([^"]*)"/.exec(head)?.[1] ?? "";
  res.setHeader("content-type", "application/json");
  res.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: { uid, allowed: true } }));
}

const dir = process.argv[2] ?? "";
const [cert, key] = ["tls.crt", "tls.key"].map((file) => readFileSync(join(dir, file)));
const ports: number[] = [];
for (let index = 0; index < 2; index++) {
  const server = createServer({ cert, key }, (req, res) => void allow(req, res).catch(() => res.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ports.push((server.address() as AddressInfo).port);
}
process.stdout.write(`${JSON.stringify({ ports })}\n`);
