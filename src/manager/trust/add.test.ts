import { beforeEach, describe, expect, it } from "vitest";
import { createFakeKubeClient, type FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { CONFIG_MAPS, PODS } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import { createStore } from "../../runtime/store.ts";
import { createTrustReconciler } from "./add.ts";

const { signal } = new AbortController();
const request = { namespace: "shop", name: "ctrlmesh-ca" };
const app: VirtualApp = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { namespace: "shop", name: "app" },
  spec: { selector: { matchLabels: { app: "op" } }, configuration: { controller: { leaderElectionName: "lock" } } },
};
let client: FakeKubeClient;
let apps: VirtualApp[];
let trustPem: string;
const read = () => client.read(CONFIG_MAPS, request);
const verbs = () => client.calls.map(({ verb }) => verb);

async function reconcile() {
  const store = createStore<VirtualApp>(() => undefined);
  store.replace(apps);
  client.calls.length = 0;
  const identity = { trustPem };
  const configMaps = { get: (name: string, namespace = "") => client.read(CONFIG_MAPS, { namespace, name }) };
  return createTrustReconciler({ client, identity, apps: store, configMaps }).reconcile(request, signal);
}

beforeEach(() => {
  client = createFakeKubeClient();
  apps = [app];
  trustPem = "MESH\n";
  client.put(CONFIG_MAPS, { metadata: { namespace: "shop", name: "kube-root-ca.crt" }, data: { "ca.crt": "CLUSTER" } });
});

describe("the ConfigMap ctrlmesh-ca of a namespace", () => {
  it("contains the mesh's CAs, the mesh's and the cluster's CAs together, and a kubeconfig for the proxy", async () => {
    expect(await reconcile()).toEqual({ requeueAfterMs: 300_000 });
    expect(read()?.data).toMatchObject({ "mesh.crt": "MESH\n", "ca.crt": "MESH\nCLUSTER\n" });
    expect(read()?.data?.kubeconfig).toContain("server: https://127.0.0.1:5443\n");
  });
  it("is written only if it differs, and repaired if somebody changed it", async () => {
    await reconcile();
    await reconcile();
    expect(verbs()).toEqual(["get"]);
    trustPem = "MESH\nNEXT\n";
    await reconcile();
    expect(read()?.data?.["mesh.crt"]).toBe("MESH\nNEXT\n");
    client.put(CONFIG_MAPS, { ...read(), metadata: request, data: { mine: "x" } });
    await reconcile();
    expect(Object.keys(read()?.data ?? {}).sort()).toEqual(["ca.crt", "kubeconfig", "mesh.crt", "mine"]);
  });
  it("follows the cluster's CA, and waits for it if it is missing", async () => {
    client.put(CONFIG_MAPS, { metadata: { namespace: "shop", name: "kube-root-ca.crt" }, data: { "ca.crt": "OTHER\n" } });
    await reconcile();
    expect(read()?.data?.["ca.crt"]).toBe("MESH\nOTHER\n");
    client.put(CONFIG_MAPS, { metadata: { namespace: "shop", name: "kube-root-ca.crt" }, data: {} });
    await expect(reconcile()).rejects.toThrow(/kube-root-ca\.crt: it has no ca\.crt/);
    client.remove(CONFIG_MAPS, { namespace: "shop", name: "kube-root-ca.crt" });
    await expect(reconcile()).rejects.toThrow("not found");
  });
  it("is removed when the last VirtualApp and the last pod with a proxy are gone", async () => {
    await reconcile();
    apps = [];
    const pod = client.put(PODS, { metadata: { namespace: "shop", name: "p", labels: { [INJECTED_LABEL]: "app" } } });
    trustPem = "MESH\nNEXT\n";
    expect(await reconcile()).toEqual({ requeueAfterMs: 60_000 });
    expect(read()?.data?.["mesh.crt"]).toBe("MESH\nNEXT\n"); // its proxy still follows the CAs
    client.remove(PODS, { namespace: "shop", name: pod.metadata.name ?? "" });
    expect(await reconcile()).toEqual({});
    expect(read()).toBeUndefined();
    expect(await reconcile()).toEqual({});
  });
  it("is written for pods that outlive their app although somebody changed it meanwhile: the Conflict is tried again", async () => {
    await reconcile();
    apps = [];
    client.put(PODS, { metadata: { namespace: "shop", name: "p", labels: { [INJECTED_LABEL]: "app" } } });
    trustPem = "MESH\nNEXT\n";
    client.before = ({ verb }) => {
      if (verb === "patch") throw new StatusError("Conflict", "it has changed");
    };
    await expect(reconcile()).rejects.toThrow("it has changed");
  });
  it("is not removed if somebody else created it", async () => {
    apps = [];
    client.put(CONFIG_MAPS, { metadata: request, data: {} });
    await reconcile();
    expect(read()).toBeDefined();
  });
  it("is not written again, and causes no error, in a namespace that is being deleted", async () => {
    client.before = ({ verb }) => {
      const causes = [{ reason: "NamespaceTerminating" }];
      if (verb === "patch") throw new StatusError("Forbidden", "it is being terminated", { causes });
    };
    expect(await reconcile()).toEqual({});
  });
  it("is not published before there is a mesh CA", async () => {
    trustPem = "";
    expect(await reconcile()).toEqual({});
    expect(verbs()).toEqual([]);
  });
});
