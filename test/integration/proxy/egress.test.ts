// The forward proxy of the real proxy process with real clients, between localkube and a scripted manager. All servers are on loopback.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { BreakerSpec, LimitRule } from "../../../src/policy/policy.ts";
import { type ClientRun, type EgressWorld, runClient, startEgressWorld } from "../../support/egress-world.ts";
import { goProgram } from "../../support/go-build.ts";
import { egressRule, limitRule } from "../../support/policies.ts";
import { describeWithProgram, itWithProgram } from "../../support/requirements.ts";

const CURL = ["--silent", "--show-error", "--max-time", "30"];
const SHOWN = ["--write-out", "\n%{http_code} %{http_connect}"];

let world: EgressWorld;
beforeAll(async () => {
  world = await startEgressWorld();
});
afterAll(() => world?.stop());
beforeEach(async () => {
  await world.enforce({});
  for (const origin of [world.http, world.https]) origin.requests.length = 0;
});

const httpUrl = (path = "/", host = "localhost") => `http://${host}:${world.http.port}${path}`;
const httpsUrl = (path = "/", host = "localhost") => `https://${host}:${world.https.port}${path}`;
const curl = (url: string, ...args: string[]) =>
  runClient("curl", [...CURL, ...SHOWN, "--proxy", world.url, "--cacert", world.caFile, ...args, url]);
const allow = (...hosts: string[]) =>
  egressRule(
    "Allow",
    hosts.map((host) => ({ host })),
    { name: "allow" },
  );
const deny = (...hosts: string[]) =>
  egressRule(
    "Deny",
    hosts.map((host) => ({ host })),
    { name: "deny" },
  );

function limitOf(url: string, limiter: LimitRule["limiter"], methods = ["*"]): LimitRule {
  return limitRule(limiter, { name: "calls", match: { resources: [], urls: [{ url, methods }], http: [] } });
}

const PYTHON = `
import os, sys
url, ca = sys.argv[1], sys.argv[2]
try:
    import requests
    try:
        r = requests.get(url, verify=ca, timeout=30)
        print(r.status_code, r.text)
    except requests.exceptions.RequestException as e:
        print(e)
except ImportError:
    import ssl, urllib.request, urllib.error
    try:
        r = urllib.request.urlopen(url, context=ssl.create_default_context(cafile=ca), timeout=30)
        print(r.status, r.read().decode())
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode())
    except OSError as e:
        print(e)
`;
const node = (imports: string, url: string) => {
  const script = `
    ${imports}
    const answer = await fetch(process.argv[1]).catch((error) => error);
    if (answer instanceof Error) console.log(String(answer.cause), answer.cause?.cause ?? "");
    else console.log(answer.status, await answer.text());`;
  return runClient(process.execPath, ["--input-type=module", "--eval", script, url], {
    HTTP_PROXY: world.url,
    HTTPS_PROXY: world.url,
    NODE_EXTRA_CA_CERTS: world.caFile,
    NODE_USE_ENV_PROXY: "1",
  });
};
const UNDICI = `
  import { EnvHttpProxyAgent, fetch, setGlobalDispatcher } from "undici";
  setGlobalDispatcher(new EnvHttpProxyAgent());`;

/** Each gets a URL and returns what it prints. The names of the proxy's variables are those that people set. */
const CLIENTS: Readonly<Record<string, (url: string) => Promise<ClientRun>>> = {
  curl: (url) => curl(url),
  python3: (url) =>
    runClient("python3", ["-c", PYTHON, url, world.caFile], {
      HTTP_PROXY: world.url,
      HTTPS_PROXY: world.url,
      http_proxy: world.url,
    }),
  go: async (url) => runClient(await goProgram("test/operators/go-fetch"), [`--proxy=${world.url}`, `--ca=${world.caFile}`, url]),
  node: (url) => node("", url),
  undici: (url) => node(UNDICI, url),
};
/** Node 24's own fetch sends plain HTTP through a tunnel, which carries nothing but TLS. */
const PLAIN = new Set(["curl", "python3", "go", "undici"]);
const PROGRAMS: Readonly<Record<string, string>> = { undici: "node" };

describe.each(Object.entries(CLIENTS))("%s", (name, get) => {
  const program = PROGRAMS[name] ?? name;

  itWithProgram(program, "reaches a server with TLS through a tunnel", async () => {
    expect((await get(httpsUrl("/v1?x=1"))).stdout).toContain("GET /v1?x=1");
    expect(world.https.requests).toHaveLength(1);
  });

  if (PLAIN.has(name)) {
    itWithProgram(program, "reaches a server without TLS by its absolute URL", async () => {
      expect((await get(httpUrl("/v1?x=1"))).stdout).toContain("GET /v1?x=1");
      expect(world.http.requests[0]?.headers.host).toBe(`localhost:${world.http.port}`);
    });
  }

  itWithProgram(program, "is refused what no rule allows and reads why, until the list is gone", async () => {
    await world.enforce({ egress: [allow("other.example")] });
    for (const url of [httpsUrl(), httpUrl()]) {
      const { stdout, stderr } = await get(url);
      expect(stdout + stderr).toMatch(/no rule allows it, as CircuitBreaker shop\/guard, rule .{0,2}allow|403/);
    }
    expect([...world.https.requests, ...world.http.requests]).toEqual([]);
    await world.enforce({});
    expect((await get(httpsUrl("/again"))).stdout).toContain("GET /again");
  });
});

describeWithProgram("curl", "rules", () => {
  it("refuse a host in any of its forms, with a text that names the object and the rule", async () => {
    await world.enforce({ egress: [deny("localhost")] });
    const text = `ctrlmesh egress: GET to localhost:${world.http.port}: refused by CircuitBreaker shop/guard, rule "deny"`;
    expect((await curl(httpUrl())).stdout).toBe(`${text}\n\n403 000`);
    expect((await curl(httpUrl("/", "LOCALHOST"))).stdout).toContain("403 000");
    expect((await curl(httpUrl("/", "localhost."))).stdout).toContain("403 000");
    expect((await curl(httpsUrl())).stdout).toContain("000 403");
    expect((await curl(httpUrl("/", "127.0.0.1"))).stdout).toContain("200 000");
  });

  it("refuse a name by the addresses that it has, as denied by their rule (D16)", async () => {
    const before = await world.counted("denied");
    await world.enforce({ egress: [deny("127.0.0.1", "::1")] });
    const text = /its address [0-9.:]+ is refused by CircuitBreaker shop\/guard, rule "deny"/;
    const { stdout } = await curl(httpUrl(), "--include");
    expect(stdout).toMatch(text);
    expect(stdout).toMatch(/x-ctrlmesh-error: EGRESS_DENIED[\s\S]*403 000$/);
    expect((await curl(httpsUrl())).stdout).toContain("000 403");
    expect(await world.counted("denied")).toBe(before + 2);
    const decided = { decision: "deny", rule: "guard/deny", mode: "Enforce" };
    expect((await world.proxy.metrics()).sum("ctrlmesh_proxy_policy_decisions_total", decided)).toBeGreaterThanOrEqual(2);
    await world.enforce({ egress: [{ ...deny("127.0.0.1", "::1"), mode: "Shadow" }] });
    expect((await curl(httpUrl())).stdout).toContain("200 000");
    await world.enforce({ egress: [deny("::1")] });
    expect((await curl(httpUrl())).stdout).toContain("200 000");
  });

  it("allow by method, where the method is visible", async () => {
    await world.enforce({ egress: [{ ...allow("localhost"), methods: ["GET"] }] });
    expect((await curl(httpUrl())).stdout).toContain("200 000");
    expect((await curl(httpUrl(), "--request", "POST")).stdout).toContain("403 000");
    expect((await curl(httpsUrl())).stdout).toContain("000 403");
    await world.enforce({ egress: [{ ...allow("localhost"), methods: ["CONNECT"] }] });
    expect((await curl(httpsUrl())).stdout).toContain("200 200");
  });

  it("in the shadow are counted and change nothing", async () => {
    const before = (await world.proxy.metrics()).sum("ctrlmesh_proxy_policy_decisions_total", {
      decision: "deny",
      mode: "Shadow",
    });
    await world.enforce({
      egress: [
        { ...allow("other.example"), mode: "Shadow" },
        { ...deny("localhost"), mode: "Shadow" },
      ],
    });
    expect((await curl(httpsUrl("/x"))).stdout).toBe("GET /x\n200 200");
    const metrics = await world.proxy.metrics();
    expect(metrics.sum("ctrlmesh_proxy_policy_decisions_total", { decision: "deny", mode: "Shadow" })).toBe(before + 2);
  });
});

describeWithProgram("curl", "a tunnel", () => {
  const elsewhere = () => ["--connect-to", `other.example:${world.https.port}:localhost:${world.https.port}`];

  it("to one host does not carry TLS for another one", async () => {
    await world.enforce({ egress: [allow("localhost")] });
    const before = await world.counted("sni-mismatch");
    const { code, stdout } = await curl(httpsUrl("/", "other.example"), ...elsewhere());
    expect([code, stdout]).toEqual([35, expect.stringContaining("000 200")]);
    expect(await world.counted("sni-mismatch")).toBe(before + 1);
    expect(world.https.requests).toEqual([]);
  });

  it("to an address needs no name", async () => {
    await world.enforce({ egress: [allow("127.0.0.1")] });
    expect((await curl(httpsUrl("/", "127.0.0.1"))).stdout).toContain("200 200");
  });

  itWithProgram("go", "of Go that names another server is closed", async () => {
    const args = [`--proxy=${world.url}`, `--ca=${world.caFile}`, "--server-name=other.example", httpsUrl()];
    expect((await runClient(await goProgram("test/operators/go-fetch"), args)).stdout).toContain("EOF");
  });

  it("carries nothing but TLS", async () => {
    const before = await world.counted("no-tls");
    const { code } = await curl(httpUrl(), "--proxytunnel");
    expect(code).not.toBe(0);
    expect(await world.counted("no-tls")).toBe(before + 1);
    expect(world.http.requests).toEqual([]);
  });
});

describeWithProgram("curl", "limits and faults", () => {
  const ONE = { kind: "bucket", perSecond: 0.001, burst: 1 } as const;
  const BREAKER: BreakerSpec = {
    kind: "breaker",
    trigger: { consecutive: 1, minimumRequests: 1, windowMs: 60_000 },
    sleepMs: 600_000,
  };
  const headers = ["--include"];

  it("limit requests by URL and method with a 429", async () => {
    await world.enforce({ limits: [limitOf(`${httpUrl("/v1")}/*`, ONE, ["GET"])] });
    const codes = [];
    for (const path of ["/v1/a", "/v1/b", "/v2"]) codes.push((await curl(httpUrl(path), ...headers)).stdout);
    expect(codes[0]).toContain("200 000");
    expect(codes[1]).toMatch(
      /429[\s\S]*x-ctrlmesh-error: LIMITED[\s\S]*retry-after: \d+[\s\S]*limited by CircuitBreaker shop\/guard, rule "calls"/,
    );
    expect(codes[2]).toContain("200 000");
    expect((await curl(httpUrl("/v1/c"), "--request", "PUT")).stdout).toContain("200 000");
  });

  it("count a tunnel as one request to its host", async () => {
    await world.enforce({ limits: [limitOf(httpsUrl("/*"), ONE)] });
    expect((await curl(httpsUrl("/v1"))).stdout).toContain("200 200");
    expect((await curl(httpsUrl("/v1"))).stdout).toContain("000 429");
  });

  it("open a breaker when the server fails, with a 503 without Retry-After", async () => {
    await world.enforce({ limits: [limitOf(httpUrl("/*"), BREAKER)] });
    const { serve } = world.http;
    world.http.serve = (_, res) => void res.writeHead(500).end("broken");
    const codes = [await curl(httpUrl()), await curl(httpUrl(), ...headers)].map(({ stdout }) => stdout);
    world.http.serve = serve;
    expect(codes[0]).toBe("broken\n500 000");
    expect(codes[1]).toMatch(
      /503[\s\S]*BREAKER_OPEN[\s\S]*refused by CircuitBreaker shop\/guard, rule "calls": try again in \d+ s/,
    );
    expect(codes[1]).not.toMatch(/retry-after/i);
  });

  it("open a breaker when nobody listens, with a 502 before", async () => {
    const url = "http://127.0.0.1:1/";
    await world.enforce({ limits: [limitOf(`${url}*`, BREAKER)] });
    expect((await curl(url)).stdout).toMatch(/connecting to 127\.0\.0\.1:1: connect ECONNREFUSED[\s\S]*502 000$/);
    expect((await curl(url)).stdout).toContain("503 000");
  });

  it("abort and delay requests to other servers by their path and headers", async () => {
    const origin = { ...limitRule(ONE).origin, kind: "FaultInjection" as const, name: "storm" };
    const http = [{ path: { regex: "^/v1" }, headers: [{ name: "X-Tenant", value: "a" }] }];
    const match = { resources: [], urls: [], http };
    await world.enforce({ faults: [{ origin, mode: "Enforce", match, abort: { status: 418, percent: 100 } }] });
    const sent = (path: string, tenant: string) => curl(httpUrl(path), "--header", `x-tenant: ${tenant}`);
    expect((await sent("/v1", "a")).stdout).toMatch(/fault injected by FaultInjection shop\/storm, rule "rule"\n\n418 000$/);
    expect((await sent("/v1", "b")).stdout).toContain("200 000");
    expect((await sent("/v2", "a")).stdout).toContain("200 000");
  });
});

describeWithProgram("curl", "Mesh-Real-Endpoint", () => {
  const direct = (endpoint: string, path = "/", ...args: string[]) =>
    runClient("curl", [...CURL, ...SHOWN, "--header", `Mesh-Real-Endpoint: ${endpoint}`, ...args, `${world.url}${path}`]);

  it("is called with TLS in place of the proxy, with the whole URL or the request's path after it", async () => {
    expect((await direct(httpsUrl("/foo?x=1"))).stdout).toBe("GET /foo?x=1\n200 000");
    expect((await direct(httpsUrl("/foo"), "/bar?y=2")).stdout).toBe("GET /foo/bar?y=2\n200 000");
    const headers = world.https.requests[0]?.headers ?? {};
    expect(headers.host).toBe(`localhost:${world.https.port}`);
    expect(headers).not.toHaveProperty("mesh-real-endpoint");
  });

  it("is judged by method and path", async () => {
    await world.enforce({ limits: [limitOf(httpsUrl("/foo/*"), { kind: "deny" }, ["POST"])] });
    expect((await direct(httpsUrl("/foo"), "/bar", "--request", "POST")).stdout).toContain("503 000");
    expect((await direct(httpsUrl("/foo"), "/bar")).stdout).toContain("200 000");
  });

  it("must have a certificate for its name", async () => {
    expect((await direct(httpsUrl("/", "127.0.0.1"))).stdout).toContain("200 000");
    const { stdout } = await direct(httpsUrl("/", "127.0.0.2"));
    expect(stdout).toMatch(/connecting to 127\.0\.0\.2:\d+: .*(certificate|refused)[\s\S]*502 000$/i);
  });
});
