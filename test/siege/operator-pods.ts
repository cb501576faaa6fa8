// The two pods of the operator: for each an object, a token, a sidecar with all its listeners, and the
// operator's own webhook server. Those servers are in a process of their own, so that they cost this one
// nothing.
import { randomInt } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WEBHOOK_LISTEN_ENV } from "../../src/api/injected-pod.ts";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { PODS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { WEBHOOK_CERT_DIR_ENV, WEBHOOK_CERT_MOUNT, WEBHOOK_PORT_ENV } from "../../src/manager/injection/names.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { podObject, podToken, ROOT, setPodReady } from "../support/mesh/cluster.ts";
import { identityFlags } from "../support/mesh/identity-files.ts";
import { proxyReady } from "../support/proxy-launcher.ts";
import type { ApiServer } from "./api-server.ts";
import type { Endpoint, SidecarTarget } from "./attack.ts";
import { HOME } from "./cluster-objects.ts";
import { type Build, type Manager, type Program, startSidecar } from "./programs.ts";

const APP = "foo-operator";
/** As in examples/demo/webhooks/virtualapp.yaml. */
const SERVER = { port: 9443, certDir: "/certs" };
/** The name by which the API server calls the operator's webhooks. */
export const SERVICE_NAME = "foo-operator.foo-system.svc";

export interface OperatorPod extends Program {
  /** 5445 and 5441, and 5443 and the forward proxy on the loopback. */
  readonly target: SidecarTarget;
  readonly traffic: Endpoint;
  readonly egress: Endpoint;
  /** The CAs of the sidecar's certificate and of the operator's webhooks. */
  readonly caPem: string;
  readonly operatorCaPem: string;
  /** For the API server, as the operator has it. */
  readonly token: string;
}

interface Context {
  readonly apiServer: ApiServer;
  readonly client: KubeClient;
  readonly manager: Manager;
  readonly dir: string;
  readonly build: Build;
}

export interface OperatorPods {
  readonly all: readonly OperatorPod[];
  /** A server like those of the operator, which nobody attacks. */
  readonly control: Endpoint;
  stop(): Promise<void>;
}

export async function startOperatorPods(context: Context): Promise<OperatorPods> {
  const certDir = join(context.dir, "certs");
  mkdirSync(certDir);
  const ca = createCa({ commonName: "foo-operator", now: Date.now() });
  const { certPem, keyPem } = issueServerCertificate(ca, { dnsNames: [SERVICE_NAME], now: Date.now() });
  writeFileSync(join(certDir, "tls.crt"), certPem);
  writeFileSync(join(certDir, "tls.key"), keyPem, { mode: 0o600 });
  const args = [join(ROOT, "test/siege/webhook-servers.ts"), certDir];
  const [operators, control] = (await Promise.all(
    ["operators", "control"].map((name) => startChild({ name, command: process.execPath, args })),
  )) as [Child, Child];
  const ports = operators.ready.ports as readonly number[];
  // Pods call each other at one port, so each has an address of its own. Other runs on this machine have
  // other addresses.
  const [net, port] = [randomInt(20, 250), await freePort()];
  const start = (index: number, version: string, namespace: string) => {
    const reviews = { host: `127.0.${net}.${index + 1}`, port };
    return startPod(context, { name: `${APP}-${index}`, version, reviews, namespace, certDir, own: ports[index] ?? 0 });
  };
  const all = [await start(0, "v1", "team-a"), await start(1, "v2", "canary-a")];
  return {
    all: all.map((pod) => ({ ...pod, operatorCaPem: ca.certPem })),
    control: { host: "127.0.0.1", port: Number((control.ready.ports as readonly number[])[0]) },
    async stop() {
      await Promise.all(all.map(({ supervised }) => supervised.stop(3_000)));
      await Promise.all([operators.stop(1_000), control.stop(1_000)]);
    },
  };
}

interface PodPlan {
  readonly name: string;
  readonly version: string;
  readonly reviews: Endpoint;
  readonly namespace: string;
  readonly certDir: string;
  /** The port of the operator's own server. */
  readonly own: number;
}

async function startPod({ apiServer, client, manager, dir, build }: Context, plan: PodPlan): Promise<OperatorPod> {
  const { name, version, reviews, namespace, certDir, own } = plan;
  const listen = `${reviews.host}:${reviews.port}`;
  const settings = {
    [WEBHOOK_LISTEN_ENV]: listen,
    [WEBHOOK_PORT_ENV]: String(SERVER.port),
    [WEBHOOK_CERT_DIR_ENV]: WEBHOOK_CERT_MOUNT,
  };
  const env = Object.entries(settings).map(([key, value]) => ({ name: key, value }));
  const { metadata } = await client.create(PODS, podObject(HOME, APP, name, { version }, env, SERVER.certDir));
  const uid = metadata.uid ?? "";
  const dataDir = join(dir, name);
  mkdirSync(dataDir);
  const health = { host: reviews.host, port: await freePort() };
  const flags = {
    "webhook-listen": listen,
    "webhook-port": String(own),
    "webhook-cert-dir": certDir,
    "egress-listen": "127.0.0.1:0",
    "health-listen": `${health.host}:${health.port}`,
    ...(await identityFlags(client, { namespace: HOME, name, uid }, dataDir)),
  };
  const { host, port } = manager.mesh;
  const options = { kube: apiServer, manager: `${host}:${port}`, namespace: HOME, name, uid, dataDir, flags };
  const program = await startSidecar(name, options, build);
  const { url, healthUrl, ca, egressUrl = "" } = proxyReady(program.supervised.child);
  await setPodReady(client, HOME, name, reviews.host);
  await eventually(async () => (await fetch(`${healthUrl}/readyz`)).ok, 60_000);
  const [traffic, egress] = [endpointOf(url), endpointOf(egressUrl)];
  const token = await podToken(client, HOME, name, uid);
  const target = { reviews, health, namespace };
  return { ...program, target, traffic, egress, caPem: readFileSync(ca, "utf8"), operatorCaPem: "", token };
}

function endpointOf(url: string): Endpoint {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
