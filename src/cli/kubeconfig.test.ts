// `ctrlmesh kubeconfig`: what it derives, and what it refuses.
import { describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { startCli } from "../../test/support/cli.ts";
import { meshClusterOf } from "../../test/support/mesh-cluster.ts";
import { EXIT } from "./frame/exit.ts";

const SERVERS = ["https://eu-1.example.com:6443/k8s/clusters/c-1"];
const terminated = {
  ...meshClusterOf("eu-1", "eu", { servers: SERVERS, interception: "Terminate", terminate: { kubeconfigSecret: "eu-1" } }),
};

function kubeconfig(user: object, more: object = {}): string {
  return stringify({
    "current-context": "admin@eu",
    clusters: [{ name: "eu", cluster: { server: SERVERS[0], "certificate-authority-data": "UEVN" } }],
    users: [{ name: "admin", user }],
    contexts: [{ name: "admin@eu", context: { cluster: "eu", user: "admin", namespace: "team" } }],
    ...more,
  });
}

function cliWith(text: string) {
  const cli = startCli([terminated, meshClusterOf("us-1", "us")]);
  cli.files.set("eu.yaml", text);
  return cli;
}
const run = (text: string) => cliWith(text).run("kubeconfig", "eu-1", "-f", "eu.yaml");

describe("kubeconfig", () => {
  it("leads to the proxy in the operator's pod, with the credentials of the file", async () => {
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "aws" };
    for (const user of [{ token: "t" }, { tokenFile: "/token" }, { exec }]) {
      const { code, stdout } = await run(kubeconfig(user));
      expect(code).toBe(EXIT.ok);
      expect(parse(stdout)).toEqual({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "eu-1",
        clusters: [
          {
            name: "eu-1",
            cluster: {
              server: "https://127.0.0.1:5443/_ctrlmesh/clusters/eu-1",
              "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
            },
          },
        ],
        users: [{ name: "eu-1", user }],
        contexts: [{ name: "eu-1", context: { cluster: "eu-1", user: "eu-1", namespace: "team" } }],
      });
    }
  });

  it.each([
    [kubeconfig({ "client-certificate-data": "x" }), "users.user.client-certificate-data: the proxy cannot pass on"],
    [kubeconfig({}), "users.user: it has none of token, tokenFile and exec"],
    [kubeconfig({ username: "u", password: "p" }), "users.user.username: only bearer tokens"],
    [kubeconfig({ token: "t" }, { "current-context": "other" }), 'the file has no context "other"; it has: admin@eu'],
    [
      kubeconfig({ token: "t" }, { "current-context": undefined }),
      "current-context: not set: name one of admin@eu with --file-context",
    ],
    [kubeconfig({ token: "t" }, { users: [] }), 'context "admin@eu": users: "admin" is missing or empty'],
    [kubeconfig({ token: "t" }, { clusters: [] }), 'context "admin@eu": clusters: "eu" is missing or empty'],
    [
      kubeconfig({ token: "t" }, { clusters: [{ name: "eu", cluster: { server: "https://x" } }] }),
      "clusters.cluster.server: https://x is not a server of meshcluster eu-1, which has https://eu-1.example.com:6443",
    ],
    [kubeconfig({ token: "t" }, { clusters: "eu" }), "the file is no kubeconfig: clusters: must be a list, not a string"],
    [
      kubeconfig({ token: "t" }, { clusters: [{ name: "eu", cluster: {} }] }),
      "the file is no kubeconfig: clusters[0].cluster.server: required",
    ],
    [
      kubeconfig({ token: "t" }, { users: [{ name: "admin", user: "a secret" }] }),
      "the file is no kubeconfig: users[0].user: must be an object, not a string",
    ],
    ["- a\n- list", "the file is no kubeconfig: its content: must be an object, not a list"],
    ["token: {secret", "the file is no valid YAML"],
    [kubeconfig({ token: "" }), "users.user: it has none of token, tokenFile and exec"],
    [kubeconfig({ token: null, exec: null }), "users.user: it has none of token, tokenFile and exec"],
    [kubeconfig({ token: 12345 }), "users.user.token: must be a text of one line, without spaces"],
    [kubeconfig({ token: "a-secret\n" }), "users.user.token: must be a text of one line, without spaces"],
    [kubeconfig({ token: "Bearer a-secret" }), "users.user.token: must be a text of one line, without spaces"],
    [kubeconfig({ token: "t" }, { contexts: [], "current-context": "" }), "the file is no kubeconfig: it has no contexts"],
    [
      kubeconfig({ token: "t" }, { clusters: [{ name: "eu", cluster: { server: "https://admin:secret@eu-1.example.com" } }] }),
      "clusters.cluster.server: must be a URL without a user",
    ],
  ])("refuses what the proxy cannot serve, naming the field: %#", async (text, why) => {
    const { code, stdout, stderr } = await run(text);
    expect([code, stdout]).toEqual([EXIT.failed, ""]);
    expect(stderr).toContain(why);
    expect(stderr).not.toContain("secret");
  });

  it("takes fields that are empty for none", async () => {
    expect((await run(kubeconfig({ token: "t", "client-certificate-data": "", username: null }))).code).toBe(EXIT.ok);
  });

  it("keeps the extensions of the cluster, in which exec plugins find their settings", async () => {
    const extensions = [{ name: "client.authentication.k8s.io/exec", extension: { clusterName: "c-1" } }];
    const { stdout } = await run(
      kubeconfig({ token: "t" }, { clusters: [{ name: "eu", cluster: { server: SERVERS[0], extensions } }] }),
    );
    expect(parse(stdout).clusters[0].cluster.extensions).toEqual(extensions);
  });

  it("says which settings of the connection the sidecar does not take, and where its own are", async () => {
    const cluster = { server: SERVERS[0], "proxy-url": "socks5://u:secret@p", "insecure-skip-tls-verify": true };
    const { stderr } = await run(kubeconfig({ token: "t" }, { clusters: [{ name: "eu", cluster }] }));
    expect(stderr).toContain(
      "left out: clusters.cluster.proxy-url, clusters.cluster.insecure-skip-tls-verify: the sidecar connects directly, and checks the certificate by spec.terminate of the MeshCluster",
    );
    expect(stderr).not.toContain("secret");
    const usual = {
      server: SERVERS[0],
      "certificate-authority-data": "UEVN",
      "proxy-url": "",
      "insecure-skip-tls-verify": false,
    };
    expect((await run(kubeconfig({ token: "t" }, { clusters: [{ name: "eu", cluster: usual }] }))).stderr).not.toContain(
      "left out",
    );
  });

  it("refuses a cluster of which whole clusters are divided, one that is not there, and a line without a file", async () => {
    const cli = cliWith(kubeconfig({ token: "t" }));
    expect((await cli.run("kubeconfig", "us-1", "-f", "eu.yaml")).stderr).toContain("interception Tunnel");
    expect((await cli.run("kubeconfig", "ap-1", "-f", "eu.yaml")).stderr).toContain("has no MeshCluster ap-1");
    expect((await cli.run("kubeconfig", "eu-1")).code).toBe(EXIT.usage);
    expect((await cli.run("kubeconfig", "-f", "eu.yaml")).code).toBe(EXIT.usage);
  });
});
