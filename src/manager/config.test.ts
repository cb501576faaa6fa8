import { describe, expect, it } from "vitest";
import { readInvocation } from "../base/settings.ts";
import { managerCommandLine } from "./config.ts";

const read = (...argv: string[]) => {
  const invocation = readInvocation(managerCommandLine, argv, {});
  if (invocation.kind !== "run") throw new Error("help");
  return invocation.config;
};
const WEBHOOKS = ["--webhook-listen", "[::]:9443"];
const MESH = ["--identity", "mesh", "--proxy-image", "ctrlmesh/proxy:1"];

describe("the manager's settings", () => {
  it("have no webhooks by default", () => {
    expect(read()).toMatchObject({ identity: "none", webhookListen: undefined, webhookUrl: "", webhookTimeoutSeconds: 10 });
    expect(() => read("--webhook-timeout-seconds", "31")).toThrow(/--webhook-timeout-seconds/);
  });

  it("take webhooks with what they need", () => {
    const config = read(...WEBHOOKS, ...MESH, "--proxy-pull-secrets", "a,b", "--webhook-url", "https://10.0.0.1:9443");
    expect(config.webhookListen).toEqual({ host: "::", port: 9443 });
    expect(config).toMatchObject({ proxyPullSecrets: ["a", "b"], webhookUrl: "https://10.0.0.1:9443" });
  });

  it("refuse webhooks without a certificate and an image, both at once", () => {
    expect(() => read(...WEBHOOKS)).toThrow(/--webhook-listen .*needs --identity mesh[\s\S]*--proxy-image .*is required/);
  });

  it("refuse a lease that proxies would not wait for", () => {
    expect(read("--lease-duration-ms", "20000").leaseDurationMs).toBe(20_000);
    expect(() => read("--lease-duration-ms", "20001")).toThrow(/--lease-duration-ms .*, 1000 to 20000/);
  });

  it("refuse a token cache shorter than kube-apiserver's, except on the loopback", () => {
    const short = ["--api-server-token-cache-ms", "9999"];
    expect(read().apiServerTokenCacheMs).toBe(10_000);
    expect(read(...short).apiServerTokenCacheMs).toBe(9_999);
    expect(() => read(...short, ...MESH)).toThrow(/--api-server-token-cache-ms .*must be at least 10000 with --identity mesh/);
  });

  it("refuse a URL that the API server would not take", () => {
    for (const url of ["http://a", "https://a/?x", "https://u@a", "https://a/path", "/", "https://a:99999", "https://["]) {
      expect(() => read("--webhook-url", url)).toThrow(/--webhook-url .*must be https:\/\/host:port/);
    }
  });
});

describe("the defaults of pods", () => {
  const readDefaults = (text: string) => read("--proxy-defaults", text);

  it("are annotations without their prefix", () => {
    expect(readDefaults('{"proxy-log-level":"debug","proxy-env.CTRLMESH_ACCESS_LOG":"true"}').proxyDefaults).toEqual({
      "ctrlmesh.kruise.io/proxy-log-level": "debug",
      "ctrlmesh.kruise.io/proxy-env.CTRLMESH_ACCESS_LOG": "true",
    });
  });

  it.each([
    ["{", "is not a JSON object of texts"],
    ['{"proxy-cpu":1}', "is not a JSON object of texts"],
    ['{"proxy-log-levl":"debug"}', '"proxy-log-levl" is not a default of pods; did you mean "proxy-log-level"?'],
    ['{"inject":"false"}', '"inject" is not a default of pods; these are: intercept,'],
    ['{"proxy-log-level":"loud"}', '"loud": must be one of'],
    ['{"proxy-env.CTRLMESH_MANAGER":"x:1"}', "CTRLMESH_MANAGER"],
  ])("of %s are refused", (text, message) => {
    expect(() => readDefaults(text)).toThrow(message);
  });
});
