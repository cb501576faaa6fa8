// Managers as processes with webhooks. Clients create pods while a manager is killed, a second replica starts, and a replica stops.
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { PODS, type Pod } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { prepareCluster, ROOT } from "../support/mesh/cluster.ts";
import { describeWithKube } from "../support/requirements.ts";
import { type Service, startService } from "../support/service.ts";

const OPS = "foo-system";
const SELECTED = { component: "foo-operator" };

describeWithKube("the webhooks of managers that start and end", () => {
  let kube: Kube;
  let client: KubeClient;
  let service: Service;
  const managers = new Set<Child>();
  let count = 0;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    await prepareCluster(kube, OPS);
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace: OPS, name: "foo-operator" } };
    await kubectl(kube.kubeconfig, ["apply", "-f", "-"], stringify(account));
    client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "test" });
    // Like a real Service, this one sends no new connection to a manager that is ending.
    service = await startService({ backends: () => [...managers].map(({ ready }) => String(ready.webhooks)) });
    await addManager();
    await kubectl(kube.kubeconfig, ["apply", "-f", "-"], demoVirtualApp());
    const wait = ["wait", "vapp/foo-operator", "-n", OPS, "--for=condition=InjectionReady", "--timeout=30s"];
    await kubectl(kube.kubeconfig, wait);
  });
  afterAll(async () => {
    await Promise.all([...managers].map((manager) => manager.stop()));
    await service?.close();
    await client?.close();
    await kube?.stop();
  });

  async function addManager(): Promise<Child> {
    const options: Readonly<Record<string, string>> = {
      kubeconfig: kube.kubeconfig,
      "pod-name": `ctrlmesh-manager-${managers.size}`,
      "grpc-listen": "127.0.0.1:0",
      "health-listen": "127.0.0.1:0",
      "lease-duration-ms": "3000",
      identity: "mesh",
      "server-names": "127.0.0.1",
      "webhook-listen": "127.0.0.1:0",
      "webhook-url": `https://${service.address}`,
      "proxy-image": "ctrlmesh/proxy:test",
    };
    const args = Object.entries(options).flatMap(([flag, value]) => [`--${flag}`, value]);
    const child = await startChild({
      name: "manager",
      command: process.execPath,
      args: [join(ROOT, "src/manager/main.ts"), "--print-ready", ...args],
    });
    managers.add(child);
    await eventually(async () => (await fetch(`${String(child.ready.health)}/readyz`)).ok);
    return child;
  }
  const createPod = (labels: Record<string, string>) =>
    client.create(PODS, {
      metadata: { namespace: OPS, name: `pod-${++count}`, labels },
      spec: { serviceAccountName: "foo-operator", containers: [{ name: "operator", image: "example.invalid/foo" }] },
    } as Pod);
  const isInjected = ({ metadata }: Pod) => metadata.labels?.[INJECTED_LABEL] === "foo-operator";

  it("inject pods as soon as the condition InjectionReady is True", async () => {
    expect(isInjected(await createPod(SELECTED))).toBe(true);
  });

  it("make the API server refuse only the app's pods after the manager is killed, and inject again with a new manager", async () => {
    const [killed] = [...managers];
    killed?.kill("SIGKILL");
    await killed?.ended;
    managers.clear();
    const error: unknown = await createPod(SELECTED).catch((reason: unknown) => reason);
    expect(isStatus(error, "InternalError")).toBe(true);
    expect(isInjected(await createPod({ component: "else" }))).toBe(false);
    await addManager();
    expect(isInjected(await createPod(SELECTED))).toBe(true);
  });

  it("inject every pod while a second replica starts and the first one stops", async () => {
    const [first] = [...managers];
    await addManager();
    let done = false;
    let created = 0;
    const clients = [0, 1].map(async () => {
      while (!done) {
        expect(isInjected(await createPod(SELECTED))).toBe(true);
        created++;
      }
    });
    const all = Promise.all(clients);
    const more = async (pods: number) => {
      const before = created;
      await eventually(() => created > before + pods);
    };
    await more(10);
    const stopped = first?.stop();
    await more(10); // the stopping manager still accepts connections
    managers.delete(first as Child);
    expect(await stopped).toBe(0);
    await more(10);
    done = true;
    await all;
  });
});
