// The TypeScript example operator as a process on localkube: its writes, its leader election, and its recovery from failures.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FOOS, type Foo, readManifests } from "../../../examples/demo/manifests.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { CONFIG_MAPS, LEASES, NAMESPACES } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { createLocalKube, type LocalKube } from "../../localkube/localkube.ts";
import { type Child, startChild } from "../../support/child-process.ts";
import { eventually } from "../../support/eventually.ts";

const MAIN = fileURLToPath(new URL("../../../examples/operator/main.ts", import.meta.url));
const LEASE = { namespace: "a", name: "foo-operator" };
const FOO = { namespace: "a", name: "f" };
const closing: (() => unknown)[] = [];
let kube: LocalKube;
let client: KubeClient;
let kubeconfig: string;

beforeEach(async () => {
  kube = createLocalKube();
  await kube.start(new AbortController().signal);
  client = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "test" });
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-operator-"));
  kubeconfig = join(dir, "kubeconfig");
  writeFileSync(kubeconfig, kube.kubeconfigYaml);
  closing.push(
    () => kube.stop(),
    () => client.close(),
    () => rmSync(dir, { recursive: true }),
  );
  for (const { path, object } of readManifests("test/operators/go-foo/crd.yaml")) {
    await client.request({ method: "POST", path, body: object });
  }
  await client.create(NAMESPACES, { metadata: { name: "a" } });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function startOperator(podName: string, args: readonly string[] = []): Promise<Child> {
  const child = await startChild({
    name: podName,
    command: process.execPath,
    args: [MAIN, "--lease-duration-ms", "3000", "--renew-deadline-ms", "2000", "--retry-period-ms", "200", ...args],
    env: { KUBECONFIG: kubeconfig, POD_NAME: podName, POD_NAMESPACE: "a" },
    readyLine: false,
  });
  closing.push(() => child.stop());
  return child;
}

const createFoo = () =>
  client.create(FOOS, {
    apiVersion: "demo.ctrlmesh.io/v1",
    kind: "Foo",
    metadata: FOO,
    spec: { message: "hello" },
  } as Foo);
const setMessage = (message: string) => client.patch(FOOS, FOO, { type: "merge", body: { spec: { message } } });
const message = async () => (await client.get(CONFIG_MAPS, { namespace: "a", name: "f-data" })).data?.message;
const expectStatus = (status: Foo["status"]) =>
  eventually(async () => expect((await client.get(FOOS, FOO)).status).toEqual(status));
const expectLeader = (podName: string) =>
  eventually(async () => expect((await client.get(LEASES, LEASE)).spec?.holderIdentity).toMatch(`${podName}_`));
const operatorWrites = () =>
  kube.audit().filter((entry) => /^(create|update|patch|delete)$/.test(entry.verb) && !entry.userAgent.startsWith("test"));

test("a Foo gets its own ConfigMap and a status, and no further write follows", async () => {
  await startOperator("pod-0");
  const foo = await createFoo();
  await expectStatus({ reconciledBy: "pod-0", count: 1, observedGeneration: 1 });
  const { data, metadata } = await client.get(CONFIG_MAPS, { namespace: "a", name: "f-data" });
  expect(data).toEqual({ message: "hello" });
  expect(metadata.ownerReferences).toMatchObject([{ kind: "Foo", name: "f", uid: foo.metadata.uid, controller: true }]);

  await setMessage("again");
  await expectStatus({ reconciledBy: "pod-0", count: 2, observedGeneration: 2 });
  expect(await message()).toBe("again");
  // A write from an outdated cache may be refused as a conflict.
  const writes = operatorWrites().filter(({ resource, code }) => resource !== "leases" && code < 300);
  expect(writes.map(({ verb, resource, subresource }) => `${verb} ${resource}${subresource && `/${subresource}`}`)).toEqual([
    "create configmaps",
    "update foos/status",
    "update configmaps",
    "update foos/status",
  ]);
});

test("a changed or deleted ConfigMap is restored", async () => {
  await startOperator("pod-0");
  await createFoo();
  await expectStatus({ reconciledBy: "pod-0", count: 1, observedGeneration: 1 });
  await client.delete(CONFIG_MAPS, { namespace: "a", name: "f-data" });
  await eventually(async () => expect(await message()).toBe("hello"));
  await client.patch(CONFIG_MAPS, { namespace: "a", name: "f-data" }, { type: "merge", body: { data: { message: "x" } } });
  await eventually(async () => expect(await message()).toBe("hello"));
  expect((await client.get(FOOS, FOO)).status?.count).toBe(1);
});

test("only the leader reconciles, it releases its lease on SIGTERM, and the next leader counts each Foo once", async () => {
  const first = await startOperator("pod-0");
  await expectLeader("pod-0");
  await startOperator("pod-1");
  await createFoo();
  await expectStatus({ reconciledBy: "pod-0", count: 1, observedGeneration: 1 });
  expect(await first.stop()).toBe(0);
  expect(first.output()).toContain("released the lease");
  await expectLeader("pod-1");
  await expectStatus({ reconciledBy: "pod-1", count: 2, observedGeneration: 1 });
});

test("another pod leads after the lease of a killed leader has expired", async () => {
  const first = await startOperator("pod-0");
  await expectLeader("pod-0");
  await startOperator("pod-1");
  await createFoo();
  first.kill("SIGKILL");
  await expectLeader("pod-1");
  await expectStatus(expect.objectContaining({ reconciledBy: "pod-1", observedGeneration: 1 }));
});

test("the operator recovers from lost connections and an expired history", async () => {
  const operator = await startOperator("pod-0");
  await createFoo();
  await expectStatus({ reconciledBy: "pod-0", count: 1, observedGeneration: 1 });
  kube.dropConnections();
  await eventually(() => setMessage("two"));
  kube.compact();
  kube.dropConnections();
  await expectStatus({ reconciledBy: "pod-0", count: 2, observedGeneration: 2 });
  await eventually(async () => expect(await message()).toBe("two"));
  expect(operator.exited).toBe(false);
});

test("the operator ends with 64 after wrong usage, and names the wrong option", async () => {
  const child = await startOperator("pod-0", ["--leader-election-name", "x"]);
  await eventually(() => child.exited);
  expect(await child.stop()).toBe(64);
  expect(child.output()).toContain("'--leader-election-name'");
});

test("the operator's webhook needs an address and a certificate", async () => {
  const child = await startOperator("pod-0", ["--webhook-listen", "127.0.0.1:9443"]);
  await eventually(() => child.exited);
  expect(await child.stop()).toBe(64);
  expect(child.output()).toContain("--webhook-listen and --webhook-cert-dir belong together");
});
