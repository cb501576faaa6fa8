// A list of 4,000 ConfigMaps through the proxy of a subset that owns one namespace of ten. The list has exactly the subset's items, in
// both encodings, and the proxy's memory does not grow with the list. `npm run bench` measures times.
import { afterAll, beforeAll, expect, it } from "vitest";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { createManyConfigMaps } from "../support/many-config-maps.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { memoryOf } from "../support/process-memory.ts";
import { describeWithKube } from "../support/requirements.ts";

const COUNT = 4_000;
const NAMESPACES = ["canary-0", ...Array.from({ length: 9 }, (_, index) => `team-${index}`)];

describeWithKube("a list of 4,000 ConfigMaps", () => {
  let kube: Kube;
  let mesh: Mesh;
  let canary: MeshPod;
  const probes = {} as Record<"canary" | "default" | "direct", Probe>;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of NAMESPACES) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    await createManyConfigMaps(mesh.client, { count: COUNT, namespaces: NAMESPACES });
    const other = await mesh.addPod({ name: "foo-0" });
    canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    probes.default = createProbe({ url: other.proxyUrl, caPem: other.proxyCaPem, token: kube.token });
    probes.canary = createProbe({ url: canary.proxyUrl, caPem: canary.proxyCaPem, token: kube.token });
    probes.direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
  });
  afterAll(async () => {
    for (const probe of Object.values(probes)) await probe.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const list = async (side: keyof typeof probes, accept: string, query = "") => {
    const { status, body } = await probes[side].get(`/api/v1/configmaps${query}`, { accept });
    expect(status).toBe(200);
    return body;
  };
  const names = (body: Buffer) =>
    (JSON.parse(body.toString()) as { items: { metadata: { namespace: string; name: string } }[] }).items.map(
      ({ metadata }) => `${metadata.namespace}/${metadata.name}`,
    );
  const count = (body: Buffer, text: string) => body.toString("latin1").split(text).length - 1;

  it("has each subset's own objects, and both subsets' lists together have all objects", async () => {
    const direct = names(await list("direct", "application/json"));
    const canaryNames = names(await list("canary", "application/json"));
    const defaultNames = names(await list("default", "application/json"));
    expect(canaryNames).toEqual(direct.filter((name) => name.startsWith("canary-0/")));
    expect(defaultNames).toEqual(direct.filter((name) => !name.startsWith("canary-0/")));
    expect(canaryNames).toHaveLength(COUNT / 10);
  });

  it("has the same objects as protobuf and in pages", async () => {
    const body = await list("canary", "application/vnd.kubernetes.protobuf");
    expect(count(body, "mark-of-canary-0")).toBe(COUNT / 10);
    expect(count(body, "mark-of-team")).toBe(0);
    const pages: string[] = [];
    let token = "";
    do {
      const page = await list("default", "application/json", `?limit=1200&continue=${encodeURIComponent(token)}`);
      pages.push(...names(page));
      token = (JSON.parse(page.toString()) as { metadata: { continue?: string } }).metadata.continue ?? "";
    } while (token !== "");
    expect(new Set(pages.filter((name) => name.includes("/cm-"))).size).toBe((COUNT / 10) * 9);
  });

  it("has the same objects with proxy-side filtering only", async () => {
    // Too many namespaces to exclude by name in the query, so the proxy alone filters.
    for (let index = 0; index < 20; index++) await mesh.createNamespace(`more-${index}`);
    await mesh.createNamespace("canary-1");
    await eventually(async () => {
      // With `pretty` the list is not replaced by lists of single namespaces.
      const body = await list("canary", "application/json", "?pretty=false");
      expect(names(body)).toHaveLength(COUNT / 10);
      expect(count(body, "mark-of-team")).toBe(0);
      const metrics = await (await fetch(`${canary.healthUrl}/metrics`)).text();
      expect(metrics.split("\n").filter((line) => /^ctrlmesh_proxy_pushdown_total\{plan="none"\} [1-9]/.test(line))).toHaveLength(
        1,
      );
    });
  });

  it("does not make the proxy's memory grow", async () => {
    const rounds = async (count: number) => {
      for (let round = 0; round < count; round++) {
        await list("canary", round % 2 === 0 ? "application/json" : "application/vnd.kubernetes.protobuf");
      }
    };
    await rounds(20);
    const before = memoryOf(canary.proxy.pid).rssMb;
    await rounds(60);
    const after = memoryOf(canary.proxy.pid);
    expect(after.rssMb - before).toBeLessThan(40); // 60 lists of about 4 MB each have passed
    expect(after.peakMb).toBeLessThan(250);
  });
});
