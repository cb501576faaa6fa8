// The proxy of one pod as a process, between localkube and a scripted manager that sends it routes and policies. The pod is of subset blue.
// The namespaces a and b have a ConfigMap "first" each.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../src/kube/client/resources.ts";
import type { PolicyReportMessage, ResourceMessage, UpdateMessage } from "../../src/mesh/contract/messages.ts";
import type { PolicySet } from "../../src/policy/policy.ts";
import { createLocalKube, type LocalKube } from "../localkube/localkube.ts";
import { eventually } from "./eventually.ts";
import { createProxyLauncher, proxyReady } from "./proxy-launcher.ts";
import { type Metrics, readMetrics } from "./proxy-metrics.ts";
import { encodeRequest, openRaw, type RawAnswer, type RawConnection, type RawRequest, sendRaw } from "./raw-client.ts";
import { type ScriptedManager, startManager } from "./scripted-manager.ts";
import { type Routes, routes } from "./test-routes.ts";
import { policyUpdate, wholeUpdate } from "./updates.ts";

export const POD_USER_AGENT = "operator";
/** The pod's subset owns namespace a. */
export const OWN_A: Routes = { blue: ["a"], defaultSubset: ["b"] };

export interface PolicedProxy {
  readonly kube: LocalKube;
  readonly manager: ScriptedManager;
  /** Of the present process. */
  readonly pid: number;
  /** The forward proxy; "" without the flag. */
  readonly egressUrl: string;
  /** Sends a request of the operator through the proxy and reads the whole answer. */
  send(request: RawRequest): Promise<RawAnswer>;
  /** Opens a connection to the proxy and sends a request of the operator. */
  open(request: RawRequest): Promise<RawConnection>;
  /** Sends the policies and waits until the proxy has acknowledged them. */
  enforce(set: Partial<PolicySet>): Promise<void>;
  /** Sends policies that are changed on their way, and resolves with the problems that the proxy names. */
  refused(set: Partial<PolicySet>, spoil: Partial<ResourceMessage>): Promise<readonly string[]>;
  /** Sends the routes and waits until the proxy has acknowledged them. */
  route(of: Routes): Promise<void>;
  /** The newest report about policies. */
  readonly report: PolicyReportMessage | undefined;
  /** What the proxy has stored of its breakers. */
  storedBreakers(): Promise<string>;
  metrics(): Promise<Metrics>;
  /** The answer of /readyz. */
  readyz(): Promise<{ readonly status: number; readonly text: string }>;
  /** What the process has logged. */
  output(): string;
  /** Ends the proxy by kill -9 and starts it again. */
  killAndRestart(): Promise<void>;
  stopManager(): void;
  /** Starts another manager under the address of the first. */
  startManager(): Promise<void>;
  stop(): Promise<void>;
}

export interface PolicedProxyOptions {
  /** Further flags of the proxy. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** @param announced the resource types that the manager says it sends */
export async function startPolicedProxy(
  announced: readonly string[] = [],
  { flags = {}, env = {} }: PolicedProxyOptions = {},
): Promise<PolicedProxy> {
  const dir = await mkdtemp(join(tmpdir(), "policed-proxy-"));
  const kube = createLocalKube();
  await kube.start(new AbortController().signal);
  const admin = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "admin" });
  for (const name of ["a", "b"]) {
    await admin.create(NAMESPACES, { metadata: { name } });
    await admin.create(CONFIG_MAPS, { metadata: { namespace: name, name: "first" }, data: { from: name } });
  }
  await admin.close();
  const caFile = join(dir, "kube-ca.crt");
  await writeFile(caFile, kube.caPem);
  let manager = await startManager(0, { types: announced });
  const launch = createProxyLauncher({
    kube: { server: kube.url, caFile },
    manager: manager.endpoint,
    namespace: "shop",
    name: "shop-0",
    uid: "uid-1",
    dataDir: join(dir, "data"),
    flags: { "access-log": "true", ...flags },
    env,
  });
  let child = await launch();
  const { url, healthUrl, ca, egressUrl = "" } = proxyReady(child);
  const target = { url, caPem: await readFile(ca, "utf8"), token: kube.token };
  let nonce = 0;

  const withAgent = (request: RawRequest): RawRequest => ({
    ...request,
    headers: [["User-Agent", POD_USER_AGENT], ...(request.headers ?? [])],
  });
  const connected = () => eventually(() => manager.streams.length === 1);
  /** The problems of the NACK; none for an ACK. */
  const answerTo = async (update: UpdateMessage): Promise<readonly string[]> => {
    await connected();
    manager.send({ update });
    return eventually(() => {
      for (const message of manager.received) {
        if ("ack" in message && message.ack?.nonce === update.nonce) return [];
        if ("nack" in message && message.nack?.nonce === update.nonce) return message.nack.problems;
      }
      return false;
    });
  };
  const acknowledged = async (update: UpdateMessage) => {
    const problems = await answerTo(update);
    if (problems.length > 0) throw new Error(`the proxy has refused what the manager sent: ${problems.join("; ")}`);
  };
  return {
    kube,
    egressUrl,
    get manager() {
      return manager;
    },
    send: (request) => sendRaw(target, withAgent(request)),
    async open(request) {
      const connection = await openRaw(target);
      const { head, body } = encodeRequest(target, withAgent(request));
      connection.socket.write(Buffer.concat([head, body]));
      return connection;
    },
    enforce: (set) => acknowledged(policyUpdate({ limits: [], faults: [], egress: [], ...set }, ++nonce)),
    refused: (set, spoil) => answerTo(policyUpdate({ limits: [], faults: [], egress: [], ...set }, ++nonce, spoil)),
    route: (of) => acknowledged(wholeUpdate(routes(++nonce, of), nonce)),
    get report() {
      const reports = manager.received.flatMap((message) => ("report" in message && message.report ? [message.report] : []));
      return reports.flatMap((report) => ("policies" in report ? [report.policies] : [])).at(-1);
    },
    storedBreakers: () => readFile(join(dir, "data/breakers.json"), "utf8"),
    metrics: () => readMetrics(healthUrl),
    async readyz() {
      const answer = await fetch(`${healthUrl}/readyz`);
      return { status: answer.status, text: await answer.text() };
    },
    get pid() {
      return child.pid;
    },
    output: () => child.output(),
    async killAndRestart() {
      child.kill("SIGKILL");
      await child.ended;
      child = await launch();
    },
    stopManager: () => manager.stop(),
    async startManager() {
      manager = await startManager(manager.port, { types: announced });
    },
    async stop() {
      await child.stop();
      manager.stop();
      await kube.stop();
      await rm(dir, { recursive: true });
    },
  };
}
