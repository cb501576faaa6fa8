import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { loadConnection } from "./kubeconfig.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubeconfig-"));
});
afterEach(() => rm(dir, { recursive: true }));

const base64 = (text: string) => Buffer.from(text).toString("base64");

async function kubeconfig(user: object, cluster: object = {}, file = "config", name = "main"): Promise<string> {
  const path = join(dir, file);
  const server = { server: "https://api:6443", "certificate-authority-data": base64("CA"), ...cluster };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [{ name, cluster: server }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  };
  await writeFile(path, stringify(config));
  return path;
}

const load = (path: string, more: object = {}) => loadConnection({ kubeconfig: path, env: {}, userAgent: "test", ...more });

test("certificates are read from data, or from files beside the kubeconfig", async () => {
  await writeFile(join(dir, "client.key"), "KEY");
  const path = await kubeconfig(
    { "client-certificate-data": base64("CERT"), "client-key": "client.key" },
    { "tls-server-name": "name" },
  );
  const { token, ...connection } = await load(path);
  expect(connection).toEqual({
    server: "https://api:6443",
    caPem: "CA",
    clientCert: "CERT",
    clientKey: "KEY",
    tlsServerName: "name",
    skipTlsVerify: false,
    userAgent: "test",
  });
  expect(await token()).toBe("");
});

test("a token file is read again for every request", async () => {
  await writeFile(join(dir, "token"), "first\n");
  const { token } = await load(await kubeconfig({ tokenFile: "token" }));
  expect(await token()).toBe("first");
  await writeFile(join(dir, "token"), "second\n");
  expect(await token()).toBe("second");
});

test("a token is read from the kubeconfig or from an exec plugin", async () => {
  expect(await (await load(await kubeconfig({ token: "fixed" }))).token()).toBe("fixed");
  const credential = { kind: "ExecCredential", apiVersion: "client.authentication.k8s.io/v1", status: { token: "made" } };
  const exec = {
    apiVersion: credential.apiVersion,
    command: "echo",
    args: [JSON.stringify(credential)],
    interactiveMode: "Never",
  };
  expect(await (await load(await kubeconfig({ exec }))).token()).toBe("made");
});

test("KUBECONFIG may name several files, and the first takes precedence", async () => {
  const first = await kubeconfig({ token: "1" }, {}, "first", "one");
  const second = await kubeconfig({ token: "2" }, { server: "https://other" }, "second", "two");
  const env = { KUBECONFIG: `${first}:${second}`, KUBERNETES_SERVICE_HOST: "ignored" };
  expect((await loadConnection({ env, userAgent: "test" })).server).toBe("https://api:6443");
  expect((await loadConnection({ env, userAgent: "test", context: "two" })).server).toBe("https://other");
});

test("without a kubeconfig the pod's service account is used, and ~/.kube/config outside of a cluster", async () => {
  await writeFile(join(dir, "ca.crt"), "CA");
  await writeFile(join(dir, "token"), "bound");
  const env = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443", HOME: "/nowhere" };
  const connection = await loadConnection({ env, userAgent: "test", serviceAccountDir: dir });
  expect([connection.server, connection.caPem, await connection.token()]).toEqual(["https://10.0.0.1:443", "CA", "bound"]);
  await expect(loadConnection({ env: { HOME: dir }, userAgent: "test" })).rejects.toMatchObject({ code: "KUBECONFIG_INVALID" });
  await expect(loadConnection({ env: {}, userAgent: "test" })).rejects.toMatchObject({ code: "NOT_IN_CLUSTER" });
});

test("settings that are not supported are refused", async () => {
  for (const [user, cluster] of [
    [{}, { "proxy-url": "http://proxy" }],
    [{ username: "u", password: "p" }, {}],
    [{ as: "somebody" }, {}],
  ] as const) {
    await expect(load(await kubeconfig(user, cluster))).rejects.toMatchObject({ code: "KUBECONFIG_INVALID" });
  }
  await expect(load(await kubeconfig({}), { context: "missing" })).rejects.toMatchObject({ code: "KUBECONFIG_INVALID" });
});
