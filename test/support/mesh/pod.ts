// A pod as processes: its object, its proxy with a lasting data folder, and optionally an operator behind it.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EGRESS_LISTEN_ENV, WEBHOOK_LISTEN_ENV } from "../../../src/api/injected-pod.ts";
import { PODS } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import {
  WEBHOOK_CERT_DIR_ENV,
  WEBHOOK_CERT_MOUNT,
  WEBHOOK_PORT,
  WEBHOOK_PORT_ENV,
} from "../../../src/manager/injection/names.ts";
import { type Child, startChild } from "../child-process.ts";
import { eventually } from "../eventually.ts";
import { goProgram } from "../go-build.ts";
import type { Kube } from "../kube.ts";
import { createProxyLauncher, proxyReady } from "../proxy-launcher.ts";
import { type Supervised, supervise } from "../supervised.ts";
import { podObject, podToken, setPodEnded, setPodReady, writeKubeconfig } from "./cluster.ts";
import { identityFlags } from "./identity-files.ts";

/** Where servers of this machine may listen: it may have a private address. */
const OWN_ADDRESSES = "127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16";

export interface PodOptions {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Runs the Go operator behind the proxy; a list has more flags for it. */
  readonly operator?: boolean | readonly string[];
  /** The pod's VirtualApp; the default is the mesh's own. */
  readonly app?: string;
  /** Its proxy is also the forward proxy for other servers, and may reach the loopback. */
  readonly egress?: boolean;
  /** The pod takes reviews of its operator's webhooks, on a loopback address of its own. */
  readonly webhooks?: PodWebhooks | undefined;
}

/** `spec.configuration.webhook` of an app whose pods have `webhooks`. */
export const WEBHOOK_SERVER = { certDir: "/certs", port: 9443 } as const;

export interface PodWebhooks {
  /** The pod's IP. */
  readonly address: string;
  /** Of the operator, on 127.0.0.1. */
  readonly port: number;
  readonly certDir: string;
}

/** A pod as processes. */
export interface MeshPod {
  readonly name: string;
  readonly uid: string;
  readonly proxyUrl: string;
  readonly healthUrl: string;
  /** The forward proxy; "" without `egress`. */
  readonly egressUrl: string;
  /** PEM of the CA of the proxy's certificate. */
  readonly proxyCaPem: string;
  /** Calls the API server through the proxy as the pod. */
  readonly kubeconfig: string;
  /** Calls the API server through the proxy as cluster administrator, to test the rules of the mesh without those of RBAC. */
  readonly adminKubeconfig: string;
  readonly token: string;
  readonly proxy: Child;
  readonly operator: Child | undefined;
  /** The processes, which a test can crash, stop and start again. */
  readonly processes: { readonly proxy: Supervised; readonly operator: Supervised | undefined };
  /** kill -9 of the proxy, then a new one with the same data folder and port. */
  restartProxy(): Promise<void>;
  killProxy(): Promise<void>;
  /** Ends the processes, reports that in the pod's status, and deletes the pod object. */
  remove(): Promise<void>;
  /** Deletes the object at once while the processes continue, like a pod on a lost node. */
  deleteObject(): Promise<void>;
  /** Ends the processes and keeps the object. */
  stop(): Promise<void>;
}

export interface PodWorld {
  readonly kube: Kube;
  readonly client: KubeClient;
  readonly appNamespace: string;
  /** host:port of the managers. */
  readonly manager: string;
  readonly proxyMain?: string;
  /** The parent of the pods' folders. */
  readonly dir: string;
  /** Pods and managers know each other by the mesh's identity. */
  readonly identity: boolean;
  /** Restarts processes that end. */
  readonly restarts: boolean;
  readonly verbose: boolean;
  /** The managers' output, for a failure's message. */
  managerOutput(): string;
}

/** Creates the object and starts the processes. @throws Error if the proxy does not become ready */
export async function startPod(world: PodWorld, options: Required<PodOptions>): Promise<MeshPod> {
  const { client, appNamespace: namespace, restarts } = world;
  const { name, app, labels, egress, webhooks } = options;
  const proxyEnv = [
    ...(egress ? [{ name: EGRESS_LISTEN_ENV, value: "127.0.0.1:15002" }] : []),
    ...(webhooks === undefined ? [] : webhookEnv(webhooks)),
  ];
  const { metadata } = await client.create(
    PODS,
    podObject(namespace, app, name, labels, proxyEnv, webhooks && WEBHOOK_SERVER.certDir),
  );
  const uid = metadata.uid ?? "";
  const token = await podToken(client, namespace, name, uid);
  const dataDir = join(world.dir, `${name}-${uid}`);
  mkdirSync(dataDir, { recursive: true });
  const flags = {
    ...(egress ? { "egress-listen": "127.0.0.1:0", "egress-private-addresses": OWN_ADDRESSES } : {}),
    ...(webhooks === undefined ? {} : webhookFlags(webhooks)),
    ...(world.identity ? await identityFlags(client, { namespace, name, uid }, dataDir) : {}),
  };
  const launch = createProxyLauncher({ ...world, namespace, name, uid, dataDir, flags });
  const proxy = await supervise({ launch, restarts });
  const ready = proxyReady(proxy.child);
  const kubeconfig = writeKubeconfig(join(dataDir, "pod.kubeconfig"), ready.url, ready.ca, token);
  const adminKubeconfig = writeKubeconfig(join(dataDir, "admin.kubeconfig"), ready.url, ready.ca, world.kube.token);
  const operator = await startBehind(world, proxy, options, kubeconfig).catch(async (error: unknown) => {
    await proxy.stop(0);
    throw error;
  });
  const deleteObject = async () => void (await client.delete(PODS, { namespace, name }, { gracePeriodSeconds: 0 }));
  const stop = async () => {
    await operator?.stop(2_000);
    await proxy.stop(5_000);
  };
  return {
    name,
    uid,
    proxyUrl: ready.url,
    healthUrl: ready.healthUrl,
    get egressUrl() {
      return proxyReady(proxy.child).egressUrl ?? "";
    },
    proxyCaPem: readFileSync(ready.ca, "utf8"),
    kubeconfig,
    adminKubeconfig,
    token,
    get proxy() {
      return proxy.child;
    },
    get operator() {
      return operator?.child;
    },
    processes: { proxy, operator },
    killProxy: () => proxy.kill(),
    async restartProxy() {
      await proxy.kill();
      await proxy.start();
    },
    async remove() {
      await stop();
      await setPodEnded(client, namespace, name);
      await deleteObject();
    },
    deleteObject,
    stop,
  };
}

/** Waits until the proxy serves, then starts the operator, if there is one. */
async function startBehind(
  { client, appNamespace: namespace, restarts, verbose, managerOutput }: PodWorld,
  proxy: Supervised,
  { name, app, operator, webhooks }: Required<PodOptions>,
  kubeconfig: string,
): Promise<Supervised | undefined> {
  await setPodReady(client, namespace, name, webhooks?.address);
  const { healthUrl } = proxyReady(proxy.child);
  await eventually(async () => (await fetch(`${healthUrl}/readyz`)).ok, { withinMs: 20_000 }).catch((cause) => {
    throw new Error(`proxy of ${name} is not ready\n${proxy.child.output()}\nmanager:\n${managerOutput()}`, { cause });
  });
  if (operator === false) return undefined;
  const flags = operator === true ? [] : operator;
  return supervise({ launch: () => startOperator(kubeconfig, namespace, app, name, verbose, flags), restarts });
}

/** The settings of the proxy's container after injection. */
function webhookEnv({ address }: PodWebhooks) {
  return [
    { name: WEBHOOK_LISTEN_ENV, value: `${address}:${WEBHOOK_PORT}` },
    { name: WEBHOOK_PORT_ENV, value: String(WEBHOOK_SERVER.port) },
    { name: WEBHOOK_CERT_DIR_ENV, value: WEBHOOK_CERT_MOUNT },
  ];
}

function webhookFlags({ address, port, certDir }: PodWebhooks): Record<string, string> {
  return { "webhook-listen": `${address}:${WEBHOOK_PORT}`, "webhook-port": String(port), "webhook-cert-dir": certDir };
}

/** The Go operator as the pod `name`, with `app` as its lock. */
export async function startOperator(
  kubeconfig: string,
  namespace: string,
  app: string,
  name: string,
  verbose: boolean,
  flags: readonly string[] = [],
): Promise<Child> {
  return startChild({
    name: `operator ${name}`,
    command: await goProgram("test/operators/go-foo"),
    args: ["--leader-election-id", app, "--lease-duration", "4s", "--renew-deadline", "3s", "--retry-period", "500ms", ...flags],
    env: { KUBECONFIG: kubeconfig, POD_NAME: name, POD_NAMESPACE: namespace },
    readyLine: false,
    verbose,
  });
}
