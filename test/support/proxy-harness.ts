// The real proxy in this process, between a fake API server and a session that the test controls, with a plain HTTPS client.
// `stop` fails if any socket is still open, so a leak fails the test that caused it.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { Agent, type RequestOptions, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock, systemRandom } from "../../src/base/clock.ts";
import { runGroups } from "../../src/base/lifecycle.ts";
import { type Logger, silentLogger } from "../../src/base/log.ts";
import { createRegistry, type Registry } from "../../src/base/metrics.ts";
import { readInvocation } from "../../src/base/settings.ts";
import type { Enforced } from "../../src/mesh/ownership/enforced.ts";
import { enforced } from "../../src/mesh/ownership/enforced.ts";
import { createProxy, type ProxyDeps, type ReadyInfo } from "../../src/proxy/app.ts";
import type { Layer } from "../../src/proxy/call/call.ts";
import { proxyCommandLine } from "../../src/proxy/config.ts";
import { createIdentity } from "../../src/proxy/identity/create-identity.ts";
import type { PlanLog } from "../../src/proxy/outbound/lists/plan-log.ts";
import { outboundLayers } from "../../src/proxy/outbound/stack.ts";
import { createPolicies, type RunningPolicies } from "../../src/proxy/policies/policies.ts";
import { createPolicyMetrics } from "../../src/proxy/policies/policy-metrics.ts";
import { NO_MEMORY } from "../../src/proxy/session/memory.ts";
import type { ManagerSession } from "../../src/proxy/session/session.ts";
import { createStateFolder } from "../../src/proxy/state/state-folder.ts";
import { eventually } from "./eventually.ts";
import type { FakeApi } from "./fake-api.ts";
import { snapshot, table } from "./route-table.ts";

const passThrough: Layer = (next) => next;

export interface HarnessOptions {
  /** The API server. `open` are its connections. */
  readonly api: Pick<FakeApi, "url" | "open"> & { readonly ca: { readonly certPem: string } };
  readonly isolate?: Layer;
  readonly election?: Layer;
  readonly lockGate?: Layer;
  /** False if the session has no snapshot. */
  readonly hasSnapshot?: boolean;
  readonly drainMs?: number;
  readonly upstream?: ProxyDeps["upstream"];
  readonly traffic?: ProxyDeps["traffic"];
  /** The file with the CA that the proxy trusts; the default is the fake API's. */
  readonly apiCaFile?: string;
  readonly dataDir?: string;
  readonly log?: Logger;
  readonly accessLog?: boolean | string;
  /** Further flags, without their dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  /** The clock of the certificate only. */
  readonly identityClock?: Clock;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface ProxyHarness {
  readonly ready: ReadyInfo;
  readonly registry: Registry;
  readonly dataDir: string;
  readonly apiCaFile: string;
  /** Keep-alive connections to the proxy. */
  readonly agent: Agent;
  /** The fake session. A test may change `session.current`. */
  readonly session: { current: Enforced | undefined };
  /** None are enforced at first. */
  readonly policies: RunningPolicies;
  /** The source of `/debug/plans`. */
  readonly plans: PlanLog;
  /** Sends a request and reads the whole answer. Rejects if the answer is truncated. */
  fetch(path: string, options?: RequestOptions & { readonly body?: Uint8Array }): Promise<Answer>;
  /** Sends a request and resolves with the unread response. */
  open(path: string, options?: RequestOptions): Promise<IncomingMessage>;
  /** Starts the drain and waits until it ends. */
  drain(): Promise<void>;
  stop(): Promise<void>;
}

/** An app without rules: this pod owns everything. */
const UNDIVIDED = enforced(snapshot(table([], {})));

/** Starts the proxy. */
export async function startProxy(options: HarnessOptions): Promise<ProxyHarness> {
  const { api, hasSnapshot = true } = options;
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "ctrlmesh-proxy-")));
  const apiCaFile = options.apiCaFile ?? join(dataDir, "api-ca.crt");
  if (options.apiCaFile === undefined) await writeFile(apiCaFile, api.ca.certPem);
  const registry = createRegistry("proxy", "test");
  const metrics = createPolicyMetrics(registry);
  const policies = createPolicies({
    clock: systemClock,
    random: systemRandom,
    log: silentLogger(),
    managerAwayMs: () => 0,
    metrics,
  });
  const session: ManagerSession & { current: Enforced | undefined } = {
    name: "session",
    start: async () => undefined,
    stop: async () => undefined,
    current: hasSnapshot ? UNDIVIDED : undefined,
    awaited: undefined,
    trouble: undefined,
    policies,
    peers: { current: [], onChange: () => undefined },
    onChange: () => () => undefined,
    beginWrite: () => () => undefined,
    beginHold: () => () => undefined,
    beginRenewal: () => () => undefined,
    beginEgress: () => () => undefined,
    inside: () => session,
    report: () => undefined,
    memory: NO_MEMORY,
  };
  const log = options.log ?? silentLogger();
  const config = configFor(api, dataDir, apiCaFile, options);
  const clock = options.identityClock ?? systemClock;
  const { certificate } = createIdentity({
    config,
    state: createStateFolder(config.dataDir, log),
    registry,
    clock,
    random: systemRandom,
    log,
  });
  let plans: PlanLog | undefined;
  const proxy = createProxy(config, {
    certificate,
    session,
    layers(deps) {
      plans = deps.plans;
      const given = new Map([
        ["election", options.election ?? passThrough],
        ["isolate", options.isolate ?? passThrough],
        ["lock-gate", options.lockGate ?? passThrough],
      ]);
      return outboundLayers(deps).map(({ name, layer }) => ({ name, layer: given.get(name) ?? layer }));
    },
    registry,
    clock: systemClock,
    random: systemRandom,
    log,
    ...(options.upstream === undefined ? {} : { upstream: options.upstream }),
    ...(options.traffic === undefined ? {} : { traffic: options.traffic }),
  });
  const stopping = new AbortController();
  let over: Promise<void> = Promise.resolve();
  await new Promise<void>((resolve, reject) => {
    const started = { name: "started", start: async () => resolve(), stop: async () => undefined };
    over = runGroups([...proxy.groups, [started]], { signal: stopping.signal, log, drainMs: 20_000 });
    over.catch(reject);
  });
  if (plans === undefined) throw new Error("the proxy has asked for no layers");
  const ready = proxy.ready();
  const agent = new Agent({ keepAlive: true, ca: await readFile(ready.ca) });

  const open = (path: string, more: RequestOptions & { readonly body?: Uint8Array } = {}) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const { body, ...rest } = more;
      const req = request(new URL(ready.url), { agent, path, ...rest });
      req.once("response", resolve);
      req.on("error", reject);
      req.end(body);
    });
  const drain = async () => {
    stopping.abort();
    await over;
  };
  return {
    ready,
    registry,
    dataDir,
    apiCaFile,
    agent,
    session,
    policies,
    plans,
    open,
    async fetch(path, more) {
      const res = await open(path, more);
      return { status: res.statusCode ?? 0, headers: res.headers, body: await readAll(res) };
    },
    drain,
    async stop() {
      agent.destroy();
      await drain();
      await eventually(() => api.open === 0, { withinMs: 2_000 });
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true });
    },
  };
}

function configFor(api: HarnessOptions["api"], dataDir: string, apiCaFile: string, options: HarnessOptions) {
  const flags = {
    "api-server": api.url,
    "api-server-ca": apiCaFile,
    manager: "127.0.0.1:1",
    "pod-name": "operator-0",
    "pod-namespace": "ops",
    "data-dir": dataDir,
    listen: "127.0.0.1:0",
    "health-listen": "127.0.0.1:0",
    "drain-ms": String(options.drainMs ?? 5_000),
    "access-log": String(options.accessLog ?? false),
    ...options.flags,
  };
  const invocation = readInvocation(
    proxyCommandLine,
    Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    {},
  );
  if (invocation.kind !== "run") throw new Error("not a configuration");
  return invocation.config;
}

/** The whole body. Rejects if it is truncated. */
export async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
