// Kubeconfigs as people have them outside of a cluster, each used for a request at a server that asks for a client's certificate or a token.
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../../src/base/certificates.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { loadConnection } from "../../../src/runtime/kubeconfig.ts";

let dir: string;
let ca: KeyCertificate;
let clientPair: KeyCertificate;
let server: Server;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "ctrlmesh-kubeconfig-"));
  const now = Date.now();
  ca = createCa({ commonName: "cluster", now });
  clientPair = issueServerCertificate(ca, { clientName: "urn:admin", dnsNames: ["admin"], now });
  const pair = issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now });
  const options = { cert: pair.certPem, key: pair.keyPem, ca: ca.certPem, requestCert: true, rejectUnauthorized: false };
  server = createServer(options, ({ socket, headers }, response) => {
    const isAllowed = (socket as TLSSocket).authorized || headers.authorization === "Bearer made";
    response.writeHead(isAllowed ? 200 : 401, { "content-type": "application/json" }).end('{"major":"1"}');
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  rmSync(dir, { recursive: true });
});

async function versionWith(
  user: object,
  cluster: object = { "certificate-authority-data": base64(ca.certPem) },
): Promise<unknown> {
  const path = join(dir, "config");
  const { port } = server.address() as AddressInfo;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "main",
    clusters: [{ name: "main", cluster: { server: `https://127.0.0.1:${port}`, ...cluster } }],
    users: [{ name: "main", user }],
    contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
  };
  writeFileSync(path, stringify(config));
  const client = createKubeClient(await loadConnection({ kubeconfig: path, env: {}, userAgent: "test" }));
  try {
    return await client.request({ method: "GET", path: "/version" });
  } finally {
    await client.close();
  }
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** An exec plugin that prints this status of an ExecCredential. */
function plugin(status: object): object {
  const apiVersion = "client.authentication.k8s.io/v1";
  const command = join(dir, "plugin");
  writeFileSync(command, `#!/bin/sh\ncat <<'END'\n${JSON.stringify({ apiVersion, kind: "ExecCredential", status })}\nEND\n`);
  chmodSync(command, 0o700);
  return { exec: { apiVersion, command, interactiveMode: "Never" } };
}

test("a client certificate in the kubeconfig", async () => {
  const user = { "client-certificate-data": base64(clientPair.certPem), "client-key-data": base64(clientPair.keyPem) };
  expect(await versionWith(user)).toEqual({ major: "1" });
  await expect(versionWith({})).rejects.toMatchObject({ status: { code: 401 } });
});

test("an exec plugin that gives a token, and one that gives a certificate", async () => {
  expect(await versionWith(plugin({ token: "made" }))).toEqual({ major: "1" });
  const status = { clientCertificateData: clientPair.certPem, clientKeyData: clientPair.keyPem };
  expect(await versionWith(plugin(status))).toEqual({ major: "1" });
});

test("insecure-skip-tls-verify accepts any certificate; without it and without the CA the connection fails", async () => {
  const user = { token: "made" };
  expect(await versionWith(user, { "insecure-skip-tls-verify": true })).toEqual({ major: "1" });
  await expect(versionWith(user, {})).rejects.toMatchObject({ cause: { code: "SELF_SIGNED_CERT_IN_CHAIN" } });
});
