// The namespaces of another cluster, each with one writer: two real control planes. The pods have one token for the other cluster,
// which outlives every pod. Its audit log decides.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProxyAgent, request } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { MESH_CLUSTERS, OWNERSHIP_SLICES } from "../../src/api/resources.ts";
import { createCa } from "../../src/base/certificates.ts";
import { EVENTS } from "../../src/kube/client/resources.ts";
import { clusterReady, conditionsOf } from "../support/cluster-conditions.ts";
import { turnsOf } from "../support/cluster-writer.ts";
import { ctrlmesh, forwardingKubectl, PATIENT } from "../support/ctrlmesh.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { createDividedCluster, type DividedCluster } from "../support/divided-cluster.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { type NamespaceWriter, startNamespaceWriter, writesIn } from "../support/namespace-writer.ts";
import { createProbe } from "../support/probe.ts";
import { describeWithKube, itNightly, itWithProgram } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const SUBSETS = { "foo-0": "", "foo-1": "", "canary-0": "v2" };
const DRAIN_SECONDS = 2;
const NAMESPACES = ["team-a", "team-b", "team-c"];
const DAY_MS = 86_400_000;
const BASE = "/_ctrlmesh/clusters/eu";

describeWithKube("the namespaces of another cluster", () => {
  let home: Kube;
  let eu: Kube;
  let mesh: Mesh;
  let cluster: DividedCluster;
  const pods = new Map<string, MeshPod>();
  const writers = new Map<string, NamespaceWriter>();
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-namespaces-"));
  const last = (pod: string) => writers.get(pod)?.last;
  const podOf = (name: string): MeshPod => {
    const pod = pods.get(name);
    if (pod === undefined) throw new Error(`there is no pod ${name}`);
    return pod;
  };
  const addPod = async (name: string, version: string) => {
    const pod = await mesh.addPod({ name, labels: { version }, egress: true });
    pods.set(name, pod);
    writers.set(name, await startNamespaceWriter(pod, { name: "eu", kube: eu }, NAMESPACES));
  };
  const appWith = (...matches: readonly object[]): string => {
    const app = parse(demoVirtualApp());
    app.spec.route.subRules[0].match.push(...matches);
    return stringify(app);
  };
  const divide = (...matches: readonly object[]) => mesh.apply(appWith(...matches));
  /** By namespace of the cluster, as the OwnershipSlices say it. */
  const publishedOwners = async (): Promise<Readonly<Record<string, string>>> => {
    const { items } = await mesh.client.list(OWNERSHIP_SLICES, { namespace: NAMESPACE });
    const entries = items.flatMap(({ ownership }) => ownership);
    return Object.fromEntries(
      entries.flatMap(({ state, owners = [], insideClusters = [] }) =>
        insideClusters.flatMap(({ cluster: name, namespaces = [] }) =>
          namespaces.map((each) => [`${name}/${each}`, `${owners.map(({ subset }) => subset).join()} ${state}`]),
        ),
      ),
    );
  };
  const statusOf = async () => (await mesh.client.get(MESH_CLUSTERS, { namespace: NAMESPACE, name: "eu" })).status;
  /** Since when the slices name the owner of a namespace of the cluster. */
  const sinceOf = async (namespace: string): Promise<string | undefined> => {
    const { items } = await mesh.client.list(OWNERSHIP_SLICES, { namespace: NAMESPACE });
    const entries = items.flatMap(({ ownership }) => ownership);
    return entries.find(({ insideClusters = [] }) => insideClusters.some(({ namespaces = [] }) => namespaces.includes(namespace)))
      ?.since;
  };
  const namesSeenBy = async (name: string, path: string): Promise<string[]> => {
    const { proxyUrl: url, proxyCaPem: caPem } = podOf(name);
    const probe = createProbe({ url, caPem, token: eu.token });
    const { body } = await probe.get(`${BASE}${path}`);
    await probe.close();
    const { items = [] } = JSON.parse(body.toString());
    return items.flatMap(({ metadata }: { metadata: { name: string; namespace: string } }) =>
      metadata.name === "shared" ? metadata.namespace : [],
    );
  };

  beforeAll(async () => {
    [home, eu] = await Promise.all([startKube(), startKube()]);
    cluster = createDividedCluster("eu", eu);
    for (const name of NAMESPACES) {
      await cluster.createNamespace(name, name === "team-a" ? { tier: "canary" } : {});
      await cluster.createConfigMap(name);
    }
    mesh = await startMesh({ kube: home });
    await cluster.join(mesh, DRAIN_SECONDS);
    await divide({ clusters: ["eu"], namespaceSelector: { matchLabels: { tier: "canary" } } });
    await addPod("foo-0", "v1");
    await addPod("canary-0", "v2");
  });
  afterAll(async () => {
    for (const writer of writers.values()) await writer.stop();
    await cluster?.close();
    await mesh?.stop();
    for (const kube of [home, eu]) await kube?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("have one writer each, and the other pods are refused and do not see their objects", async () => {
    await clusterReady(mesh, "eu");
    await eventually(() => {
      expect(last("canary-0")).toEqual({ "team-a": "200", "team-b": "403", "team-c": "403" });
      expect(last("foo-0")).toEqual({ "team-a": "403", "team-b": "200", "team-c": "200" });
    }, 30_000);
    expect(await namesSeenBy("canary-0", "/api/v1/configmaps")).toEqual(["team-a"]);
    expect(await namesSeenBy("foo-0", "/api/v1/configmaps")).toEqual(["team-b", "team-c"]);
    expect(await conditionsOf(mesh, "eu")).toMatchObject({
      NamespacesWatched: expect.stringMatching(/^True/),
      Enforced: "True OneOwner",
    });
  });

  it("have a condition, an Event and a time for a certificate of the manager that ends soon, until the Secret has none", async () => {
    const now = Date.now() - 360 * DAY_MS;
    const { certPem, keyPem } = createCa({ commonName: "ctrlmesh", now, days: 365 });
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const before = (await statusOf())?.earliestExpiry;
    await cluster.giveAccess(mesh, { "client-certificate-data": base64(certPem), "client-key-data": base64(keyPem) });
    await cluster.readSecretNow(mesh);
    await eventually(async () => expect((await conditionsOf(mesh, "eu")).CredentialsValid).toBe("False ExpiringSoon"), {
      withinMs: 40_000,
    });
    expect(await conditionsOf(mesh, "eu")).toMatchObject({ Ready: "True OneOwner", NamespacesWatched: "True Listed" });
    await eventually(async () => {
      const { items } = await mesh.client.list(EVENTS, { namespace: NAMESPACE });
      expect(items.map(({ reason, involvedObject }) => `${reason} ${involvedObject?.name}`)).toContain(
        "CredentialsExpiringSoon eu",
      );
    }, 10_000);
    await cluster.giveAccess(mesh);
    await cluster.readSecretNow(mesh);
    await eventually(async () => expect((await conditionsOf(mesh, "eu")).CredentialsValid).toBe("True Valid"), {
      withinMs: 40_000,
    });
    expect(before).toMatchObject({ of: "KubeconfigToken" });
    expect((await statusOf())?.earliestExpiry).toEqual(before);
  });

  it("cannot be reached by a connection around the proxy's path", async () => {
    const agent = new ProxyAgent({ uri: podOf("canary-0").egressUrl, requestTls: { ca: eu.caPem }, proxyTunnel: true });
    await expect(request(`${eu.server}/version`, { dispatcher: agent })).rejects.toThrow(/503|403/);
    await agent.destroy();
  });

  itWithProgram("kubectl", "are served to kubectl by a kubeconfig that ctrlmesh derives", async () => {
    const file = join(folder, "eu.yaml");
    writeFileSync(file, cluster.adminKubeconfig());
    const derived = await ctrlmesh(home.kubeconfig, ["kubeconfig", "eu", "-n", NAMESPACE, "-f", file]);
    expect(derived.code).toBe(0);
    // The test's proxies have other ports, and no service-account volume.
    const { proxyUrl, proxyCaPem } = podOf("canary-0");
    const ca = join(folder, "ca.crt");
    writeFileSync(ca, proxyCaPem);
    const mine = derived.stdout
      .replace("https://127.0.0.1:5443", proxyUrl)
      .replace("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", ca);
    const kubeconfig = join(folder, "derived.yaml");
    writeFileSync(kubeconfig, mine);
    const run = (...args: string[]) => kubectl(kubeconfig, args);
    expect(await run("get", "configmaps", "-A", "-o", "name", "--field-selector", "metadata.name=shared")).toContain("shared");
    const manifest = join(folder, "cm.yaml");
    writeFileSync(manifest, stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "new", namespace: "team-a" } }));
    await run("apply", "--server-side", "-f", manifest);
    await expect(run("delete", "configmap", "shared", "-n", "team-b")).rejects.toThrow("team-b");
    await run("delete", "-f", manifest);
  });

  it("move by their labels there without two writers, and informers see their objects go and come", async () => {
    const sinceMs = Date.now();
    const watchOf = async (name: string) => {
      const { proxyUrl: url, proxyCaPem: caPem } = podOf(name);
      const probe = createProbe({ url, caPem, token: eu.token });
      // As informers do.
      const { body } = await probe.get(`${BASE}/api/v1/configmaps`);
      const { resourceVersion } = JSON.parse(body.toString()).metadata;
      const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`;
      const stream = await probe.stream(`${BASE}/api/v1/configmaps?${query}`);
      return {
        saw: (type: string, namespace: string) =>
          stream
            .bytes()
            .toString()
            .split("\n")
            .some((line) => line.includes(`"type":"${type}"`) && line.includes(`"namespace":"${namespace}"`)),
        close: async () => {
          stream.close();
          await probe.close();
        },
      };
    };
    const [loser, owner] = [await watchOf("foo-0"), await watchOf("canary-0")];
    await cluster.labelNamespace("team-b", { tier: "canary" });
    await eventually(() => {
      expect(last("canary-0")).toEqual({ "team-a": "200", "team-b": "200", "team-c": "403" });
      expect(last("foo-0")).toEqual({ "team-a": "403", "team-b": "403", "team-c": "200" });
    }, 30_000);
    await eventually(() => expect([loser.saw("DELETED", "team-b"), owner.saw("ADDED", "team-b")]).toEqual([true, true]), 10_000);
    await Promise.all([loser.close(), owner.close()]);
    expect(turnsOf(writesIn(eu, "team-b", sinceMs), SUBSETS)).toEqual({ turns: ["", "v2"], overlaps: [] });
    expect(turnsOf(writesIn(eu, "team-a", sinceMs), SUBSETS).turns).toEqual(["v2"]);
    expect(turnsOf(writesIn(eu, "team-c", sinceMs), SUBSETS).turns).toEqual([""]);
    await clusterReady(mesh, "eu");
  });

  it("are published with their owners, and again with the next ones when one moves", async () => {
    await eventually(
      async () =>
        expect(await publishedOwners()).toMatchObject({
          "eu/team-a": "v2 Owned",
          "eu/team-b": "v2 Owned",
          "eu/team-c": "default Owned",
          "eu/kube-system": "default Owned",
        }),
      10_000,
    );
    const { items } = await mesh.client.list(OWNERSHIP_SLICES, { namespace: NAMESPACE });
    const atHome = items.flatMap(({ ownership }) => ownership).flatMap(({ namespaces = [] }) => namespaces);
    expect(atHome.filter((name) => NAMESPACES.includes(name))).toEqual([]);
  });

  itWithProgram("kubectl", "move as ctrlmesh plan says, which needs no access to the cluster", async () => {
    /** Plans the edit, applies it, and compares. */
    const planAndApply = async (matches: readonly object[], flags: readonly string[] = []) => {
      const before = await publishedOwners();
      const file = join(folder, "edit.yaml");
      writeFileSync(file, appWith(...matches));
      const { code, stdout, stderr } = await ctrlmesh(home.kubeconfig, [
        ...["plan", "-f", file, "-n", NAMESPACE, "-o", "json", PATIENT],
        ...flags,
      ]);
      expect([code, stderr]).toEqual([2, expect.any(String)]);
      const [planned] = JSON.parse(stdout).apps as {
        insideMoves: { cluster: string; from: string; to: string; namespaces: string[] }[];
        insideUnknown: { cluster: string; namespaces: string[] }[];
      }[];
      const moves = planned?.insideMoves ?? [];
      const expected = Object.fromEntries(
        moves.flatMap(({ cluster: name, from, to, namespaces }) =>
          namespaces.map((each) => {
            expect(before[`${name}/${each}`]).toBe(`${from} Owned`);
            return [`${name}/${each}`, `${to} Owned`];
          }),
        ),
      );
      await mesh.apply(appWith(...matches));
      const unknown = (planned?.insideUnknown ?? []).flatMap(({ namespaces }) => namespaces);
      const known = (owners: Readonly<Record<string, string>>) =>
        Object.fromEntries(Object.entries(owners).filter(([place]) => !unknown.includes(place.slice("eu/".length))));
      await eventually(async () => expect(known(await publishedOwners())).toEqual(known({ ...before, ...expected })), 30_000);
      return { moved: expected, unknown };
    };
    const canary = { namespaceSelector: { matchLabels: { tier: "canary" } } };
    expect(await planAndApply([{ clusters: ["eu"], namespaceRegex: "^team-[bc]$" }])).toEqual({
      moved: { "eu/team-a": "default Owned", "eu/team-c": "v2 Owned" },
      unknown: [],
    });
    const namespaces = join(folder, "namespaces.json");
    writeFileSync(namespaces, await cluster.namespaceList());
    const edit = join(folder, "canary.yaml");
    writeFileSync(edit, appWith({ clusters: ["eu"], ...canary }));
    const blind = await ctrlmesh(home.kubeconfig, ["plan", "-n", NAMESPACE, "-f", edit, PATIENT]);
    expect(blind.stdout).toContain("depends on their labels, which are not known here");
    expect(await planAndApply([{ clusters: ["eu"], ...canary }], ["--inside", `eu=${namespaces}`])).toEqual({
      moved: { "eu/team-a": "v2 Owned", "eu/team-c": "default Owned" },
      unknown: [],
    });
    await clusterReady(mesh, "eu");
  });

  itWithProgram(
    "kubectl",
    "are the same in the sidecars as in what is published, and shown by owners, status and explain",
    async () => {
      const wrapped = mkdtempSync(join(tmpdir(), "ctrlmesh-forward-"));
      forwardingKubectl(wrapped, [...pods.values()]);
      const run = (...args: string[]) =>
        ctrlmesh(home.kubeconfig, [...args, "-n", NAMESPACE, PATIENT], { PATH: `${wrapped}:${process.env.PATH}` });
      for (const pod of pods.keys())
        expect(await run("diff", pod)).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing differs in ") });
      const owners = await run("owners");
      expect(owners.stdout).toMatch(/^foo-system\/foo-operator +eu\/team-a +v2 +Owned/m);
      expect(owners.stdout).toMatch(/^foo-system\/foo-operator +eu\/\(cluster scope\) +default +Owned/m);
      expect((await run("status")).stdout).toMatch(
        /1 other cluster, divided by namespace; of \d+ namespaces there: default \d+, v2 2/,
      );
      expect((await run("explain", "owner", "meshcluster/eu/team-a")).stdout).toMatch(/foo-0 +default +\d+ +subset "v2"/);
      rmSync(wrapped, { recursive: true });
    },
  );

  itWithProgram("kubectl", "are frozen alone, and neither their namesake at home nor the others are", async () => {
    await mesh.createNamespace("team-b");
    const probeOf = (pod: string, { token }: Kube) => {
      const { proxyUrl: url, proxyCaPem: caPem } = podOf(pod);
      return createProbe({ url, caPem, token });
    };
    const [abroad, nextDoor, atHome] = [probeOf("canary-0", eu), probeOf("foo-0", eu), probeOf("foo-0", home)];
    const create = async (probe: typeof abroad, path: string) => {
      const { status, body } = await probe.send("POST", `${path}/configmaps`, { metadata: { generateName: "f-" } });
      return { status, message: status === 201 ? "" : JSON.parse(body.toString()).message };
    };
    const ofApp = ["--app", "foo-operator", "-n", NAMESPACE, "--cluster", "eu"];
    const wait = () => ctrlmesh(home.kubeconfig, ["wait", "foo-operator", "-n", NAMESPACE, "--timeout", "30s"]);
    expect(await ctrlmesh(home.kubeconfig, ["freeze", "team-z", ...ofApp])).toMatchObject({ code: 1 });
    expect(await ctrlmesh(home.kubeconfig, ["freeze", "team-b", ...ofApp, "--reason", "restore"])).toMatchObject({ code: 0 });
    expect(await wait()).toMatchObject({ code: 0 });
    const frozenAtMs = Date.now();
    expect(await create(abroad, `${BASE}/api/v1/namespaces/team-b`)).toEqual({
      status: 403,
      message: expect.stringContaining(
        `namespace "team-b" of cluster "eu" is frozen: restore; to end that: ctrlmesh thaw team-b --app foo-operator -n ${NAMESPACE} --cluster eu`,
      ),
    });
    expect((await create(nextDoor, `${BASE}/api/v1/namespaces/team-c`)).status).toBe(201);
    expect((await create(atHome, "/api/v1/namespaces/team-b")).status).toBe(201);
    await eventually(async () => expect(await publishedOwners()).toMatchObject({ "eu/team-b": "v2 Frozen" }), 10_000);
    expect((await ctrlmesh(home.kubeconfig, ["status", "foo-operator", "-n", NAMESPACE])).stdout).toContain(
      "  frozen: namespace team-b of cluster eu: restore\n",
    );
    expect(writesIn(eu, "team-b", frozenAtMs)).toEqual([]);
    expect(await ctrlmesh(home.kubeconfig, ["thaw", "team-b", ...ofApp])).toMatchObject({ code: 0 });
    expect(await wait()).toMatchObject({ code: 0 });
    expect((await create(abroad, `${BASE}/api/v1/namespaces/team-b`)).status).toBe(201);
    for (const probe of [abroad, nextDoor, atHome]) await probe.close();
  });

  it("get an owner when they are created, and keep it while the manager is away", async () => {
    await cluster.createNamespace("team-new", { tier: "canary" });
    const { proxyUrl: url, proxyCaPem: caPem } = podOf("canary-0");
    const probe = createProbe({ url, caPem, token: eu.token });
    const create = () =>
      probe.send("POST", `${BASE}/api/v1/namespaces/team-new/configmaps`, { metadata: { generateName: "c-" } });
    await eventually(async () => expect((await create()).status).toBe(201), 10_000);
    const since = await sinceOf("team-a");
    await mesh.killManager();
    const sinceMs = Date.now();
    await cluster.labelNamespace("team-c", { tier: "canary" });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect((await create()).status).toBe(201);
    expect(turnsOf(writesIn(eu, "team-c", sinceMs), SUBSETS).turns).toEqual([""]);
    await mesh.startManager();
    await eventually(() => expect(last("canary-0")).toMatchObject({ "team-c": "200" }), { withinMs: 60_000 });
    expect(turnsOf(writesIn(eu, "team-c", sinceMs), SUBSETS)).toEqual({ turns: ["", "v2"], overlaps: [] });
    await eventually(async () => expect(await publishedOwners()).toMatchObject({ "eu/team-c": "v2 Owned" }), 60_000);
    expect([since, since]).toEqual([expect.any(String), await sinceOf("team-a")]); // a new leader begins with what is published
    const deletions = home
      .audit()
      .filter(({ verb, objectRef }) => verb === "delete" && objectRef?.resource === "ownershipslices");
    expect(deletions).toEqual([]);
    await cluster.labelNamespace("team-c", { tier: null });
    await eventually(() => expect(last("foo-0")).toMatchObject({ "team-c": "200" }), { withinMs: 60_000 });
    await probe.close();
  });

  // clusters.test.ts shows the same of whole clusters, whose owners the manager removes in the same way.
  itNightly("have one writer when their owner is removed by force and its processes still reach the cluster", async () => {
    const sinceMs = Date.now();
    await podOf("canary-0").deleteObject();
    await divide({ clusters: ["none"] });
    await eventually(() => expect(last("foo-0")).toEqual({ "team-a": "200", "team-b": "200", "team-c": "200" }), {
      withinMs: 60_000,
    });
    expect(last("canary-0")?.["team-a"]).toMatch(/503|403/);
    for (const namespace of ["team-a", "team-b"])
      expect(turnsOf(writesIn(eu, namespace, sinceMs), SUBSETS)).toEqual({ turns: ["v2", ""], overlaps: [] });
  });
});
