import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { createCa, issueServerCertificate } from "../../base/certificates.ts";
import { MAX_KUBECONFIG_BYTES, readTenantKubeconfig } from "./read-kubeconfig.ts";

const now = Date.UTC(2026, 0, 1);
const ca = createCa({ commonName: "eu", now });
const leaf = issueServerCertificate(ca, { dnsNames: ["manager"], now });
const base64 = (text: string) => Buffer.from(text).toString("base64");
const SERVERS = ["eu.example:6443/prefix"];
const TOKEN = "a-secret-token";
const NO_YAML = "it must be one YAML document, without syntax errors, duplicate keys and aliases";
const NO_KUBECONFIG = "it is no kubeconfig";
const NO_CONTEXT = "current-context: must be set";

const kubeconfig = (cluster: object = {}, user: object = { token: TOKEN }, more: object = {}) =>
  stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://eu.example:6443/prefix", ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
    ...more,
  });
const problem = (text: string) => {
  const result = readTenantKubeconfig(text, SERVERS);
  return result.ok ? "" : result.problem;
};

describe("a kubeconfig with inline data", () => {
  it("gives the server, the CA and the token", () => {
    const data = { "certificate-authority-data": base64(`comment\n${ca.certPem}`), "tls-server-name": "kubernetes.default" };
    const result = readTenantKubeconfig(kubeconfig(data, { token: `${TOKEN}\n` }), SERVERS);
    const connection = result.ok ? result.connection : undefined;
    expect(connection).toMatchObject({
      server: "https://eu.example:6443/prefix",
      tlsServerName: "kubernetes.default",
      caPem: ca.certPem,
      clientCert: undefined,
    });
    expect(connection?.token()).toBe(TOKEN);
  });

  it("may have a client certificate, fields that are empty, and TLS verification that is not switched off", () => {
    const user = { "client-certificate-data": base64(leaf.certPem), "client-key-data": base64(leaf.keyPem), token: "" };
    const cluster = { "insecure-skip-tls-verify": false, "certificate-authority": "", "proxy-url": null };
    expect(readTenantKubeconfig(kubeconfig(cluster, user), SERVERS)).toMatchObject({
      ok: true,
      connection: { clientCert: leaf.certPem, clientKey: leaf.keyPem },
    });
  });
});

describe("a hostile kubeconfig is refused if it", () => {
  it.each<[string, object, object | undefined, string]>([
    ["runs a program", {}, { exec: { command: "sh", args: ["-c", "id"] } }, "user.exec"],
    ["runs a program beside a token", {}, { token: TOKEN, exec: { command: "sh" } }, "user.exec"],
    ["asks an auth provider", {}, { "auth-provider": { name: "gcp" } }, "user.auth-provider"],
    [
      "reads the manager's token file",
      {},
      { tokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token" },
      "user.tokenFile",
    ],
    ["reads a certificate file", {}, { "client-certificate": "/etc/x", "client-key": "/etc/y" }, "user.client-certificate"],
    ["reads a CA file", { "certificate-authority": "/etc/passwd" }, undefined, "cluster.certificate-authority"],
    ["goes through a proxy", { "proxy-url": "http://attacker.example" }, undefined, "cluster.proxy-url"],
    ["verifies no certificate", { "insecure-skip-tls-verify": true }, undefined, "cluster.insecure-skip-tls-verify"],
    ["verifies no certificate, as a text", { "insecure-skip-tls-verify": "true" }, undefined, "cluster.insecure-skip-tls-verify"],
    ["names another server", { server: "https://kubernetes.default.svc" }, undefined, "cluster.server"],
    ["names another cluster of a gateway", { server: "https://eu.example:6443/other" }, undefined, "cluster.server"],
    ["names another port", { server: "https://eu.example" }, undefined, "cluster.server"],
    ["hides another server behind a user", { server: "https://eu.example:6443@attacker.example" }, undefined, "cluster.server"],
    ["has a password in the URL", { server: "https://:x@eu.example:6443" }, undefined, "cluster.server"],
    ["sends the token in clear text", { server: "http://eu.example:6443" }, undefined, "cluster.server"],
    ["impersonates", {}, { token: TOKEN, as: "system:admin" }, "user.as"],
    ["has a password", {}, { username: "a", password: "b" }, "user.username"],
    ["adds a header by a line break", {}, { token: "a\r\nx-remote-user: b" }, "user.token"],
    ["has a field of the future", {}, { token: TOKEN, newKind: {} }, "user: has a field"],
    ["has no credentials", {}, {}, "user: has neither"],
    [
      "has a key that is none",
      {},
      { "client-certificate-data": base64(leaf.certPem), "client-key-data": "AAAA" },
      "user.client-key-data",
    ],
    [
      "has a certificate without its key",
      {},
      { "client-certificate-data": base64(leaf.certPem) },
      "user: client-certificate-data",
    ],
    [
      "has the key of another certificate",
      {},
      { "client-certificate-data": base64(leaf.certPem), "client-key-data": base64(ca.keyPem) },
      "user.client-key-data: must be the key of the first certificate in client-certificate-data",
    ],
    [
      "has a CA that is none",
      { "certificate-authority-data": base64("no PEM") },
      undefined,
      "cluster.certificate-authority-data",
    ],
    ["has a name that is none", { "tls-server-name": "a b" }, undefined, "cluster.tls-server-name"],
    ["has a token that is a list", {}, { token: [TOKEN] }, "user.token"],
  ])("%s", (_, cluster, user, field) => {
    expect(problem(kubeconfig(cluster, user))).toContain(field);
  });

  it.each<[string, string, string]>([
    ["is too long", `${kubeconfig()}#${"x".repeat(MAX_KUBECONFIG_BYTES)}`, "it is longer than"],
    ["is no YAML", "{", NO_YAML],
    ["is cut in the middle", kubeconfig().slice(0, -1).concat("\nusers: ["), NO_YAML],
    ["is indented with tabs", kubeconfig().replaceAll("  ", "\t"), NO_YAML],
    ["is two documents", `${kubeconfig()}---\n${kubeconfig()}`, NO_YAML],
    ["has a field twice", `${kubeconfig()}current-context: y\n`, NO_YAML],
    ["nests thousands of lists", "[".repeat(30_000), "keep one cluster, one user and one context"],
    ["multiplies by aliases", `a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n${kubeconfig()}`, NO_YAML],
    ["is empty", "", NO_KUBECONFIG],
    ["is a text", "kubeconfig", NO_KUBECONFIG],
    ["is in base64 twice", base64(kubeconfig()), NO_KUBECONFIG],
    ["has no current context", kubeconfig({}, undefined, { "current-context": undefined }), NO_CONTEXT],
    ["has an empty current context", kubeconfig({}, undefined, { "current-context": "" }), NO_CONTEXT],
    ["names no context", kubeconfig({}, undefined, { "current-context": "other" }), "contexts: has no item that current-context"],
    [
      "has two users of one name, which kubectl refuses too",
      kubeconfig({}, undefined, { users: ["a", "b"].map((token) => ({ name: "u", user: { token } })) }),
      "users: has two items that the current context's user names",
    ],
    ["has no lists", kubeconfig({}, undefined, { clusters: "c", users: 5 }), "clusters: has no item that the current context"],
    [
      "names its cluster by a prototype",
      kubeconfig({}, undefined, { contexts: [{ name: "x", context: { cluster: "__proto__", user: "u" } }] }),
      "clusters: has no item that the current context",
    ],
  ])("%s", (_, text, words) => {
    expect(problem(text)).toContain(words);
  });

  it("and the problem shows nothing of its text", () => {
    const users = [{ token: [TOKEN] }, { [TOKEN]: "x" }, { token: TOKEN, exec: { env: TOKEN } }, { token: `${TOKEN}\u0000` }];
    const texts = [...users.map((user) => kubeconfig({}, user)), `token: ${TOKEN}: x: y`, kubeconfig({ server: TOKEN })];
    for (const text of texts) expect(problem(text)).not.toContain(TOKEN);
  });
});
