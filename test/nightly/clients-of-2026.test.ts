// Forms that clients of 2026 use, on an API server with the feature gates for them: CBOR, parameters of Accept, and LeaseCandidates.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { startClientProgram } from "../support/client-program.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const CBOR = "application/cbor";
const CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/foo-system/leasecandidates";
/** The environment by which client-go accepts and sends CBOR. */
const CBOR_CLIENT = { KUBE_FEATURE_ClientsAllowCBOR: "true", KUBE_FEATURE_ClientsPreferCBOR: "true" };

/** A ConfigMap in CBOR: maps and strings of less than 24 bytes, after the tag that Kubernetes begins a document with. */
function cborConfigMap(name: string): Uint8Array {
  const text = (value: string) => [0x60 + value.length, ...Buffer.from(value)];
  const map = (entries: Readonly<Record<string, number[]>>) => [
    0xa0 + Object.keys(entries).length,
    ...Object.entries(entries).flatMap(([key, value]) => [...text(key), ...value]),
  ];
  const object = { apiVersion: text("v1"), kind: text("ConfigMap"), metadata: map({ name: text(name) }) };
  return Uint8Array.from([0xd9, 0xd9, 0xf7, ...map(object)]);
}

const now = () => new Date().toISOString().replace("Z", "000Z");
const candidate = (name: string) => ({
  apiVersion: "coordination.k8s.io/v1beta1",
  kind: "LeaseCandidate",
  metadata: { name },
  spec: {
    leaseName: "foo-operator",
    binaryVersion: "1.0.0",
    emulationVersion: "1.0.0",
    strategy: "OldestEmulationVersion",
    renewTime: now(),
  },
});

describeWithKube("an API server with CBOR and coordinated leader election", () => {
  let kube: Kube;
  let mesh: Mesh;
  let direct: Probe;
  const pods = {} as Record<"default" | "canary", MeshPod>;
  const probes = {} as Record<"default" | "canary", Probe>;

  beforeAll(async () => {
    kube = await startKube({
      featureGates: "CBORServingAndStorage=true,CoordinatedLeaderElection=true",
      apiServerArgs: ["--runtime-config=coordination.k8s.io/v1beta1=true"],
    });
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "canary-eu"]) {
      await mesh.createNamespace(name);
      await mesh.createFoo(name, "one", `OF-${name}`);
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: name, name: "one" }, data: { of: `OF-${name}` } });
    }
    await mesh.apply(demoVirtualApp({ onLoss: "InPlace" }));
    pods.default = await mesh.addPod({ name: "foo-0" });
    pods.canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    for (const side of ["default", "canary"] as const)
      probes[side] = createProbe({ url: pods[side].proxyUrl, caPem: pods[side].proxyCaPem, token: kube.token });
    direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
  }, 600_000);
  afterAll(async () => {
    await Promise.all([direct, probes.default, probes.canary].map((probe) => probe?.close()));
    await mesh?.stop();
    await kube?.stop();
  });

  it.each(["/api/v1/configmaps", "/apis/demo.ctrlmesh.io/v1/foos"])(
    "a narrowed list or watch of %s is JSON for a client that prefers CBOR, without foreign objects",
    async (path) => {
      const accept = `${CBOR},application/json;q=0.9`;
      expect((await direct.get(path, { accept })).headers["content-type"]).toBe(CBOR);
      for (const form of [accept, CBOR]) {
        const { status, headers, body } = await probes.canary.get(path, { accept: form });
        expect([status, headers["content-type"]]).toEqual([200, "application/json"]);
        expect(body.toString()).toContain("OF-canary-eu");
        expect(body.toString()).not.toContain("OF-team-a");
      }
      const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
      const stream = await probes.canary.stream(`${path}?watch=1&${initial}`, {
        accept: "application/cbor-seq,application/cbor",
      });
      await eventually(() => expect(stream.bytes().toString()).toContain("initial-events-end"));
      expect([stream.status, stream.contentType]).toEqual([200, "application/json"]);
      expect(stream.bytes().toString()).toContain("OF-canary-eu");
      expect(stream.bytes().toString()).not.toContain("OF-team-a");
      stream.close();
    },
  );

  it("one object, a whole namespace and writes pass in CBOR, and foreign ones are refused", async () => {
    const accept = CBOR;
    const own = "/api/v1/namespaces/canary-eu/configmaps";
    const foreign = "/api/v1/namespaces/team-a/configmaps";
    for (const path of [own, `${own}/one`]) {
      const { status, headers, body } = await probes.canary.get(path, { accept });
      expect([path, status, headers["content-type"]]).toEqual([path, 200, CBOR]);
      expect(body.toString("latin1")).toContain("OF-canary-eu");
    }
    const empty = await probes.canary.get(foreign, { accept });
    expect([empty.status, empty.headers["content-type"], JSON.parse(empty.body.toString()).items]).toEqual([
      200,
      "application/json",
      [],
    ]);
    const headers = { accept, "content-type": CBOR };
    expect((await probes.canary.send("POST", own, cborConfigMap("in-cbor"), headers)).status).toBe(201);
    const refused = await probes.canary.send("POST", foreign, cborConfigMap("in-cbor"), headers);
    expect([refused.status, refused.headers["content-type"]]).toEqual([403, "application/json"]);
  });

  it("client-go with CBOR has the view of its subset only", async () => {
    const program = await startClientProgram({
      name: "cbor",
      command: await goProgram("test/operators/go-retry"),
      args: ["--with=informers", "--informers=5", "--informer-namespace=canary-eu"],
      env: { KUBECONFIG: pods.canary.kubeconfig, ...CBOR_CLIENT },
    });
    try {
      await mesh.createFoo("canary-eu", "later", "x");
      await mesh.createFoo("team-a", "later", "x");
      await eventually(() => expect(program.view("informer-1")).toEqual(["canary-eu/later", "canary-eu/one"]), 20_000);
      expect(program.view("informer-0")).toContain("canary-eu/one");
      expect(program.sightings.filter(({ key }) => key.startsWith("team-a"))).toEqual([]);
    } finally {
      await program.stop();
    }
  });

  it.each([
    "application/json;drop=metadata.managedFields",
    "application/json;as=Table;v=v1;g=meta.k8s.io;drop=metadata.managedFields,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io;drop=metadata.managedFields,application/json",
    "application/vnd.kubernetes.protobuf;drop=metadata.managedFields,application/json",
  ])("parameters of Accept reach the API server: %s", async (accept) => {
    const path = "/api/v1/configmaps";
    const [mine, all] = await Promise.all([probes.canary.get(path, { accept }), direct.get(path, { accept })]);
    expect([mine.status, mine.headers["content-type"]]).toEqual([all.status, all.headers["content-type"]]);
    expect(mine.body.includes("managedFields")).toBe(all.body.includes("managedFields"));
    expect(mine.body.includes("canary-eu")).toBe(all.body.includes("canary-eu"));
    expect(mine.body.includes("OF-team-a")).toBe(false);
  });

  it("a LeaseCandidate of the default subset can be elected, and one of the canary is refused with the reason", async () => {
    const refused = await probes.canary.send("POST", CANDIDATES, candidate("foo-canary-0"));
    expect([refused.status, refused.body.toString()]).toEqual([403, expect.stringContaining("elect without LeaseCandidates")]);
    expect((await probes.default.send("POST", CANDIDATES, candidate("foo-0"))).status).toBe(201);
    const lease = "/apis/coordination.k8s.io/v1/namespaces/foo-system/leases/foo-operator";
    await eventually(async () => {
      // The control plane asks who is still there.
      const mine = JSON.parse((await probes.default.get(`${CANDIDATES}/foo-0`)).body.toString());
      await probes.default.send("PUT", `${CANDIDATES}/foo-0`, { ...mine, spec: { ...mine.spec, renewTime: now() } });
      const { status, body } = await direct.get(lease);
      expect([status, JSON.parse(body.toString()).spec?.holderIdentity]).toEqual([200, "foo-0"]);
    }, 30_000);
  });
});
