// Who needs the manager while it is under siege: the API server with its reviews, sidecars that register and renew their certificates, a kubelet and a
// Prometheus at its health listener.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { credentials } from "@grpc/grpc-js";
import { eventually } from "../../support/eventually.ts";
import { certify, openProxy } from "../../support/scripted-proxy.ts";
import { claimsOf } from "../../support/updates.ts";
import type { FakePod } from "../attack.ts";
import { HOME } from "../cluster-objects.ts";
import { review } from "../requests.ts";
import type { World } from "../world.ts";
import { createHttpsClient } from "./https.ts";
import type { HonestClient } from "./pace.ts";

const SERVER_NAME = "ctrlmesh-manager.ctrlmesh-system.svc";
const JSON_TYPE = { "content-type": "application/json" };
const VIRTUAL_APPS = { group: "ctrlmesh.kruise.io", version: "v1alpha1", resource: "virtualapps" };

export function managerClients(world: World): HonestClient[] {
  const { honestPods } = world;
  const { webhook, mesh, health } = world.manager;
  const api = createHttpsClient({ ...webhook, caPem: world.meshCaPem, serverName: SERVER_NAME });
  const post = async (path: string, body: string, number: number, signal: AbortSignal) => {
    // An API server that has just started, or another one of three, has no connection yet.
    const text = await api.ask({ method: "POST", path, body, headers: JSON_TYPE, signal, isNew: number % 4 === 0 });
    const { response } = JSON.parse(text) as { response?: { allowed?: boolean } };
    if (response?.allowed !== true) throw new Error(`refused: ${text.slice(80, 400)}`);
  };
  const podOf = (number: number) => honestPods[number % honestPods.length] as FakePod;
  const endpoint = `${mesh.host}:${mesh.port}`;
  const common = { credentials: credentials.createSsl(Buffer.from(world.meshCaPem)), serverName: SERVER_NAME };
  const accessOf = (number: number) => ({ ...common, token: podOf(number).token });
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const der = publicKey.export({ type: "spki", format: "der" });
  return [
    {
      name: "inject review",
      everyMs: 200,
      close: () => api.close(),
      call: (number, signal) => post(`/inject/${HOME}/foo-operator`, injection(), number, signal),
    },
    {
      name: "validate review",
      everyMs: 400,
      call: (number, signal) => post("/validate", newApp(), number, signal),
    },
    {
      name: "registration",
      everyMs: 1_000,
      call: (number, signal) => register(endpoint, accessOf(number), podOf(number), signal),
    },
    {
      name: "certificate",
      everyMs: 2_000,
      call: (number, signal) => within(signal, certify(endpoint, der, accessOf(number))),
    },
    {
      name: "manager's probe",
      everyMs: 500,
      async call(_number, signal) {
        const { status } = await fetch(`http://${health.host}:${health.port}/healthz`, { signal });
        if (status !== 200) throw new Error(String(status));
      },
    },
  ];
}

async function register(endpoint: string, access: object, pod: FakePod, signal: AbortSignal): Promise<void> {
  const proxy = openProxy(endpoint, access);
  const { namespace, name, uid } = pod;
  const facts = { proxyVersion: "siege", capabilities: ["type:routes"], streamNumber: Date.now(), epoch: 0, route: claimsOf() };
  proxy.send({ registration: { pod: { namespace, name, uid }, ...facts } });
  try {
    await eventually(
      () => {
        if (proxy.ended !== undefined) throw new Error(proxy.ended.details);
        signal.throwIfAborted();
        return proxy.received.some((message) => "update" in message);
      },
      { withinMs: 10_000, everyMs: 5 },
    );
  } finally {
    proxy.close();
  }
}

async function within(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  const late = new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  await Promise.race([work, late]);
}

/** A pod of the operator, as its workload creates it. */
function injection(): string {
  const mounts = [
    { name: "certs", mountPath: "/certs" },
    { name: "token", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true },
  ];
  const volumes = [
    { name: "certs", emptyDir: {} },
    { name: "token", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
  ];
  const containers = [{ name: "operator", image: "example.invalid/foo-operator", volumeMounts: mounts }];
  const metadata = { generateName: "foo-operator-", labels: { component: "foo-operator" } };
  const object = { apiVersion: "v1", kind: "Pod", metadata, spec: { serviceAccountName: "foo-operator", containers, volumes } };
  return review({ namespace: HOME, object, name: randomUUID() });
}

/** A user creates an app. */
function newApp(): string {
  const object = {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { namespace: HOME, name: "another" },
    spec: {
      selector: { matchLabels: { component: "another" } },
      configuration: { controller: { leaderElectionName: "another" } },
    },
  };
  return review({ resource: VIRTUAL_APPS, namespace: HOME, name: "another", object });
}
