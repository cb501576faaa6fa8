// The operator's pods: for each a pod object, a token bound to it, a proxy, and an operator that reaches the API server only through that
// proxy. In a cluster the scheduler, the kubelet and the injection webhook do this.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { PODS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { eventually } from "../../test/support/eventually.ts";
import { identityFlags } from "../../test/support/mesh/identity-files.ts";
import type { Setting } from "./act.ts";
import { SERVICE_ACCOUNTS } from "./manifests.ts";
import type { PodWebhooks } from "./pod-webhooks.ts";
import type { ApiServer, Processes, ProxyReady } from "./processes.ts";

/** A pod that the demo will start. */
export interface PodPlan {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The subset or shard that the pod belongs to, by the act's own knowledge. */
  readonly subset: string;
  /** Its proxy also takes requests to other servers, which the demo has on the loopback. */
  readonly hasEgress?: boolean;
}

const EGRESS_FLAGS = { "egress-listen": "127.0.0.1:0", "egress-private-addresses": "127.0.0.0/8" };

export interface DemoPod extends PodPlan {
  readonly token: string;
  readonly proxy: ProxyReady;
  /** A kubeconfig with the identity of this pod and the address of its proxy. */
  readonly kubeconfig: string;
  /** The pod's IP, if it serves webhooks. */
  readonly address: string | undefined;
}

export interface PodContext {
  readonly setting: Setting;
  readonly client: KubeClient;
  readonly processes: Processes;
  readonly apiServer: ApiServer;
  /** host:port of the manager. */
  readonly manager: string;
  readonly dir: string;
  /** Undefined if the operator has no webhook. */
  readonly webhooks: PodWebhooks | undefined;
}

/** The label that the manager's admission webhook writes on injected pods. */
const INJECTED_LABEL = "ctrlmesh.kruise.io/virtual-app-injected";
const SERVICE_ACCOUNT = "foo-operator";
const NODE = "demo";
const READY_MS = 60_000;

/** The service account of the operator's pods. */
export async function createServiceAccount(client: KubeClient, namespace: string): Promise<void> {
  await client.create(SERVICE_ACCOUNTS, { metadata: { namespace, name: SERVICE_ACCOUNT } });
}

/** Starts a pod and reports it Ready. */
export async function startPod(plan: PodPlan, context: PodContext): Promise<DemoPod> {
  const { setting, client, processes, apiServer, manager, webhooks } = context;
  const { namespace, appName, lockName } = setting;
  const { name } = plan;
  const labels = { [INJECTED_LABEL]: appName, ...plan.labels };
  const webhook = await webhooks?.ofPod();
  const operator = { name: "operator", image: "example.invalid/foo-operator" };
  const sidecar = { name: "ctrlmesh-proxy", image: "example.invalid/ctrlmesh-proxy" };
  const containers = [operator, sidecar];
  const spec = { nodeName: NODE, serviceAccountName: SERVICE_ACCOUNT, containers, ...webhook?.injected(operator) };
  const { metadata } = await client.create(PODS, { metadata: { namespace, name, labels }, spec });
  const uid = metadata.uid ?? "";
  const token = await createToken(client, { namespace, name, uid });

  const dataDir = join(context.dir, name);
  mkdirSync(dataDir);
  const pod = { namespace, name, uid };
  const flags = {
    ...(plan.hasEgress ? EGRESS_FLAGS : {}),
    ...(webhook === undefined ? {} : { ...webhook.proxyFlags, ...(await identityFlags(client, pod, dataDir)) }),
  };
  const proxy = await processes.proxy({ apiServer, manager, pod, dataDir, flags });
  await eventually(async () => (await fetch(`${proxy.healthUrl}/readyz`)).ok, READY_MS);
  const kubeconfig = writeKubeconfig(join(dataDir, "kubeconfig"), proxy, token);
  await processes.operator({ pod, kubeconfig, lockName, flags: webhook?.operatorFlags ?? {} });
  if (webhook !== undefined) await eventually(() => webhook.isServing(), READY_MS);

  const address = webhook?.address;
  const addresses = address === undefined ? {} : { podIP: address, podIPs: [{ ip: address }] };
  const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }], ...addresses };
  await client.patch(PODS, { namespace, name }, { type: "merge", body: { status } }, { subresource: "status" });
  return { ...plan, token, proxy, kubeconfig, address };
}

/** Marks the pod as terminating, ends its processes, and removes its files and its object, as a kubelet does. */
export async function endPod(name: string, { setting, client, processes, dir }: PodContext): Promise<void> {
  const ref = { namespace: setting.namespace, name };
  await client.delete(PODS, ref);
  await processes.endPod(name);
  rmSync(join(dir, name), { recursive: true });
  await client.delete(PODS, ref, { gracePeriodSeconds: 0 });
}

// Bound to the pod, as a kubelet's tokens are, so that the audit log names the pod.
async function createToken(client: KubeClient, { namespace, name, uid }: Readonly<Record<"namespace" | "name" | "uid", string>>) {
  const body = { spec: { expirationSeconds: 3600, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid } } };
  const answer = await client.createSubresource(SERVICE_ACCOUNTS, { namespace, name: SERVICE_ACCOUNT }, "token", body);
  return (answer as { readonly status: { readonly token: string } }).status.token;
}

function writeKubeconfig(path: string, { url, ca }: ProxyReady, token: string): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "pod",
    clusters: [{ name: "through-the-proxy", cluster: { server: url, "certificate-authority": ca } }],
    users: [{ name: "pod", user: { token } }],
    contexts: [{ name: "pod", context: { cluster: "through-the-proxy", user: "pod" } }],
  };
  writeFileSync(path, stringify(config), { mode: 0o600 });
  return path;
}
