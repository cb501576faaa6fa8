// The servers of broken clusters, and a forwarder for each to the control plane at port FORWARD-TO, by which a manager can read
// namespaces. Run by clusters-world.ts: node bench/clusters/bad-servers.ts FORWARD-TO. Prints their ports and the CA of "expired".
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";

const [forwardTo = ""] = process.argv.slice(2);
const now = Date.now();
const ca = createCa({ commonName: "bad", now, days: 2 });
const expired = issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now: now - 2 * 86_400_000, days: 1 });
const quiet = (socket: Socket) => socket.on("error", () => undefined);

/** The unresolvable cluster has no server. */
const servers = {
  silent: createServer((socket) => void quiet(socket).resume()),
  garbage: createServer((socket) => void quiet(socket).write("\x00\xff garbage\r\n".repeat(64))),
  reset: createServer((socket) => void quiet(socket).resetAndDestroy()),
  expired: createTlsServer({ cert: expired.certPem, key: expired.keyPem }, (socket) => void quiet(socket).end()),
};
servers.expired.on("tlsClientError", () => undefined);
const forwarder = () =>
  createServer((socket) => {
    const target = quiet(connect(Number(forwardTo), "127.0.0.1"));
    quiet(socket).pipe(target).pipe(socket);
  });
const listen = (server: ReturnType<typeof createServer>) =>
  new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
const ports = Object.fromEntries(
  await Promise.all(Object.entries(servers).map(async ([kind, server]) => [kind, await listen(server)] as const)),
);
const forwarders = await Promise.all(Array.from({ length: 6 }, () => listen(forwarder())));
process.stdin.resume().on("end", () => process.exit());
process.stdout.write(`${JSON.stringify({ ports, forwarders, caPem: ca.certPem })}\n`);
