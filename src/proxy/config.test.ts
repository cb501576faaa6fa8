import { describe, expect, it } from "vitest";
import { readInvocation } from "../base/settings.ts";
import { proxyCommandLine } from "./config.ts";

const ENV = {
  CTRLMESH_API_SERVER: "https://api:6443",
  CTRLMESH_MANAGER: "manager:5447",
  CTRLMESH_POD_NAME: "operator-0",
  CTRLMESH_POD_NAMESPACE: "ops",
};

function config(argv: readonly string[] = [], env: Record<string, string> = ENV) {
  const invocation = readInvocation(proxyCommandLine, argv, env);
  if (invocation.kind !== "run") throw new Error("not a run");
  return invocation.config;
}

describe("readInvocation", () => {
  it("fills in the defaults of a pod", () => {
    expect(config()).toEqual({
      apiServer: "https://api:6443",
      apiServerCa: "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
      manager: "manager:5447",
      identity: undefined,
      podName: "operator-0",
      podNamespace: "ops",
      podUid: "",
      dataDir: "/var/lib/ctrlmesh",
      listen: { host: "127.0.0.1", port: 5443 },
      alsoListen: [],
      tls: undefined,
      egressListen: undefined,
      egressPrivateAddresses: [],
      healthListen: { host: "0.0.0.0", port: 5441 },
      logLevel: "info",
      accessLog: 0,
      drainMs: 8000,
      warmUpMs: 1000,
    });
  });

  it("lets a flag win over its variable", () => {
    expect(config(["--listen", "[::1]:0", "--manager=m:1"], { ...ENV, CTRLMESH_LISTEN: "127.0.0.1:1" })).toMatchObject({
      listen: { host: "::1", port: 0 },
      manager: "m:1",
    });
  });

  it.each([
    [{ KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" }, "https://10.96.0.1"],
    [{ KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" }, "https://[fd00::1]:6443"],
  ])("finds the API server as every client does: %o", (service, url) => {
    const { CTRLMESH_API_SERVER: _, ...env } = ENV;
    expect(config([], { ...env, ...service }).apiServer).toBe(url);
  });

  it("takes the three settings of webhooks together, and names those that are missing", () => {
    const all = ["--webhook-listen=0.0.0.0:5445", "--webhook-port=9443", "--webhook-cert-dir=/certs"];
    expect(config(all).webhooks).toEqual({ listen: { host: "0.0.0.0", port: 5445 }, port: 9443, certDir: "/certs" });
    for (const given of all) {
      const missing = all.filter((each) => each !== given).map((each) => each.split("=")[0]);
      expect(() => config([given])).toThrow(new RegExp(missing.map((name) => `${name} .*is required`).join("[\\s\\S]*")));
    }
  });

  it("tells every problem at once, by the names that users set", () => {
    const argv = ["--listen=nonsense", "--api-server=http://x", "--drain-ms=soon", "--tls-cert=/a"];
    expect(() => readInvocation(proxyCommandLine, argv, {})).toThrow(
      /--api-server \(CTRLMESH_API_SERVER\): "http:\/\/x" is not https[\s\S]*--manager \(CTRLMESH_MANAGER\): is required[\s\S]*--listen \(CTRLMESH_LISTEN\): "nonsense"[\s\S]*--drain-ms/,
    );
  });

  it.each([
    ["true", 1],
    ["false", 0],
    ["0.01", 0.01],
    ["sample=0.25", 0.25],
    ["sample=1", 1],
    ["0", 0],
  ])("takes %s for the access log's share", (text, share) => {
    expect(config([`--access-log=${text}`]).accessLog).toBe(share);
  });

  it.each(["2", "sample=", "sample=1.5", "yes", "-1", "1e-3", "sample=true"])("refuses %s for the access log", (text) => {
    expect(() => config([`--access-log=${text}`])).toThrow(
      `--access-log (CTRLMESH_ACCESS_LOG): "${text}" is not true, false, or a share of the requests from 0 to 1`,
    );
  });

  it("refuses a flag that it does not know", () => {
    expect(() => readInvocation(proxyCommandLine, ["--lisen=x"], ENV)).toThrow(/--lisen[\s\S]*--help/);
  });

  it("refuses half a certificate, and URLs with a path or credentials", () => {
    expect(() => config(["--tls-key=/k"])).toThrow(/--tls-cert/);
    expect(() => config(["--api-server=https://u:p@x"])).toThrow(/is not https/);
    expect(() => config(["--api-server=https://x/path"])).toThrow(/is not https/);
  });

  it("binds the forward proxy to loopback only", () => {
    for (const host of ["127.0.0.1", "127.1.2.3"]) {
      expect(config([`--egress-listen=${host}:15002`]).egressListen).toEqual({ host, port: 15_002 });
    }
    expect(config(["--egress-listen=[::1]:0"]).egressListen).toEqual({ host: "::1", port: 0 });
    for (const address of [
      "0.0.0.0:1",
      "[::]:1",
      "10.0.0.1:1",
      "localhost:1",
      "127.0.0.1.example:1",
      "127.0.0.1:1,127.0.0.1:2",
    ]) {
      expect(() => config([`--egress-listen=${address}`])).toThrow(/--egress-listen \(CTRLMESH_EGRESS_LISTEN\): (must be|takes)/);
    }
  });

  it("reads the private addresses of the forward proxy, and names every text that is none", () => {
    expect(config(["--egress-private-addresses=10.0.0.0/8, fd00::/8"]).egressPrivateAddresses).toEqual([
      { address: "10.0.0.0", bits: 8, family: "ipv4" },
      { address: "fd00::", bits: 8, family: "ipv6" },
    ]);
    expect(() => config(["--egress-private-addresses=10.0.0.0,x/8"])).toThrow(
      /"10.0.0.0" is not a range[\s\S]*"x\/8" is not a range/,
    );
  });

  it("reads the files of the mesh's identity, and refuses half of it", () => {
    const files = ["--manager-ca=/id/mesh.crt", "--token=/id/token"];
    expect(config(["--identity=mesh", ...files]).identity).toEqual({ managerCa: "/id/mesh.crt", token: "/id/token" });
    expect(() => config(["--identity=mesh"])).toThrow(
      /--manager-ca \(CTRLMESH_MANAGER_CA\): is required with --identity=mesh[\s\S]*--token \(CTRLMESH_TOKEN\): is required/,
    );
    // Whoever gives them believes that they are used.
    expect(() => config(files)).toThrow(/--manager-ca[^\n]*needs --identity=mesh[\s\S]*--token[^\n]*needs --identity=mesh/);
    expect(() => config(["--identity=tls"])).toThrow("--identity (CTRLMESH_IDENTITY): must be mesh or none");
  });

  it("prints a table of all settings with --help, whatever else is wrong", () => {
    const invocation = readInvocation(proxyCommandLine, ["--help"], {});
    expect(invocation).toMatchObject({ kind: "help", text: expect.stringContaining("CTRLMESH_HEALTH_LISTEN") });
  });
});
