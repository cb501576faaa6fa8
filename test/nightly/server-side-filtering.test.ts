// Server-side filtering by the real API server, with the feature gate ShardedListAndWatch, and after the gate is removed under a running
// proxy. Lists, pages and watches of every encoding always have exactly the subset's own objects, and fewer bytes where the API server
// filters. The proxy's metrics show the plan of each request.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { appOfSubsets } from "../support/app-of-subsets.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { describeWithKube } from "../support/requirements.ts";

const JSON_TYPE = "application/json";
const PROTOBUF = "application/vnd.kubernetes.protobuf";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL = `${PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`;
const CONFIG_MAP_LIST = "/api/v1/configmaps";
const FOO_LIST = "/apis/demo.ctrlmesh.io/v1/foos";
const OWN = Array.from({ length: 20 }, (_, index) => `blue-${String(index).padStart(2, "0")}`);
const OTHERS = Array.from({ length: 20 }, (_, index) => `team-${String(index).padStart(2, "0")}`);

const APP = appOfSubsets({
  blue: { labels: { slice: "blue" }, match: { namespaceRegex: "^blue-" } },
  single: { labels: { slice: "single" }, match: { namespaceRegex: "^single$" } },
});

interface Listed {
  readonly items: readonly { readonly metadata: { readonly namespace: string; readonly name: string } }[];
  readonly metadata: { readonly continue?: string };
}

describeWithKube("server-side filtering", () => {
  let kube: Kube;
  let mesh: Mesh;
  let blue: MeshPod;
  let single: MeshPod;
  const probes = {} as Record<"direct" | "blue" | "single", Probe>;

  // Only objects of the namespace contain its mark.
  const mark = (namespace: string) => `MARK-${namespace}-X`;
  const createConfigMap = (namespace: string, name: string) =>
    mesh.client.create(CONFIG_MAPS, {
      metadata: { namespace, name, annotations: { mark: mark(namespace) } },
      data: { x: "y".repeat(500) },
    });
  const list = async (side: keyof typeof probes, path: string, accept = JSON_TYPE) => {
    const { status, body } = await probes[side].get(path, { accept });
    expect(status, body.toString("latin1").slice(0, 300)).toBe(200);
    return body;
  };
  const names = (body: Buffer) =>
    (JSON.parse(body.toString()) as Listed).items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  const isBlue = (name: string) => name.startsWith("blue-");
  const servedBy = async (pod: MeshPod, plan: string) => {
    const metrics = await readMetrics(pod.healthUrl);
    return {
      requests: metrics.sum("ctrlmesh_proxy_pushdown_total", { plan }),
      read: metrics.sum("ctrlmesh_proxy_pushdown_bytes_total", { plan, side: "read" }),
      dropped: metrics.sum("ctrlmesh_proxy_filtered_objects_total", { plan }),
    };
  };
  const during = async (pod: MeshPod, plan: string, run: () => Promise<unknown>) => {
    const before = await servedBy(pod, plan);
    await run();
    const after = await servedBy(pod, plan);
    return {
      requests: after.requests - before.requests,
      read: after.read - before.read,
      dropped: after.dropped - before.dropped,
    };
  };
  const pages = async (side: keyof typeof probes, path: string, limit: number) => {
    const found: string[] = [];
    for (let token: string | undefined = ""; token !== undefined; ) {
      const body = await list(side, `${path}?limit=${limit}${token === "" ? "" : `&continue=${encodeURIComponent(token)}`}`);
      found.push(...names(body));
      token = (JSON.parse(body.toString()) as Listed).metadata.continue || undefined;
    }
    return found;
  };

  beforeAll(async () => {
    kube = await startKube({ featureGates: "ShardedListAndWatch=true" });
    mesh = await startMesh({ kube });
    const fill = async (name: string) => {
      await mesh.createNamespace(name);
      for (const one of ["a", "b", "c"]) await createConfigMap(name, one);
      await mesh.createFoo(name, "foo", mark(name));
    };
    await Promise.all([...OWN, ...OTHERS, "single"].map(fill));
    await mesh.apply(APP);
    blue = await mesh.addPod({ name: "foo-blue-0", labels: { slice: "blue" } });
    single = await mesh.addPod({ name: "foo-single-0", labels: { slice: "single" } });
    probes.direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
    probes.blue = createProbe({ url: blue.proxyUrl, caPem: blue.proxyCaPem, token: kube.token });
    probes.single = createProbe({ url: single.proxyUrl, caPem: single.proxyCaPem, token: kube.token });
  });
  afterAll(async () => {
    for (const probe of Object.values(probes)) await probe.close();
    await mesh?.stop();
    await kube?.stop();
  });

  // These tests run with every plan: the operator's objects must not depend on where they are filtered.
  const testExactSlices = () => {
    it("lists have only the subset's own objects, as JSON, protobuf, Table and metadata, of built-in and custom kinds", async () => {
      for (const path of [CONFIG_MAP_LIST, FOO_LIST]) {
        const direct = names(await list("direct", path));
        expect(names(await list("blue", path)).sort()).toEqual(direct.filter(isBlue).sort());
        expect(names(await list("single", path)).sort()).toEqual(direct.filter((name) => name.startsWith("single/")).sort());
        for (const accept of [PROTOBUF, TABLE, PARTIAL]) {
          if (path === FOO_LIST && accept === PROTOBUF) continue; // custom resources have no protobuf
          const seen = (await list("blue", path, accept)).toString("latin1");
          for (const name of OWN) expect(seen.includes(name), `${name} as ${accept}`).toBe(true);
          for (const name of OTHERS) expect(seen.includes(name), `${name} as ${accept}`).toBe(false);
        }
      }
    });

    it("pages together have all of the subset's own objects", async () => {
      const direct = names(await list("direct", CONFIG_MAP_LIST));
      expect((await pages("blue", CONFIG_MAP_LIST, 7)).sort()).toEqual(direct.filter(isBlue).sort());
      expect(await pages("single", CONFIG_MAP_LIST, 2)).toEqual(direct.filter((name) => name.startsWith("single/")));
    });

    it("watches have only the subset's own events, and go on when namespaces are created", async () => {
      const added = `blue-${Math.floor(performance.now())}`;
      const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
      const streams = await Promise.all(
        [JSON_TYPE, PROTOBUF].map((accept) => probes.blue.stream(`${CONFIG_MAP_LIST}?${query}`, { accept })),
      );
      for (const stream of streams)
        await eventually(() => expect(stream.bytes().includes("k8s.io/initial-events-end")).toBe(true));
      await mesh.createNamespace(added);
      await createConfigMap(added, "fresh");
      await createConfigMap("blue-07", `late-${added}`);
      await createConfigMap("team-07", `late-${added}`);
      await createConfigMap("blue-08", `late-${added}`);
      for (const stream of streams) {
        await eventually(() => {
          for (const name of [...OWN, added])
            expect(stream.bytes().includes(mark(name)), `${name}, ended ${stream.ended()}`).toBe(true);
          expect(stream.bytes().toString("latin1").split(`late-${added}`).length).toBeGreaterThan(2);
        });
        expect(stream.bytes().includes("MARK-team-")).toBe(false);
        expect(stream.ended()).toBe(false);
      }
    });
  };

  describe("by a server with shard selectors", () => {
    testExactSlices();

    it("removes all objects of other subsets, so that proxy-side filtering drops none", async () => {
      for (const accept of [JSON_TYPE, PROTOBUF]) {
        const direct = await list("direct", CONFIG_MAP_LIST, accept);
        const { requests, read, dropped } = await during(blue, "shards", () => list("blue", CONFIG_MAP_LIST, accept));
        expect([requests, dropped]).toEqual([1, 0]);
        expect(read).toBeLessThan(0.6 * direct.length + 8_000); // the answer repeats the selector
      }
      const custom = await during(blue, "shards", () => list("blue", FOO_LIST));
      expect([custom.requests, custom.dropped]).toEqual([1, 0]);
      const one = await during(single, "one-namespace", () => list("single", CONFIG_MAP_LIST));
      expect([one.requests, one.dropped]).toEqual([1, 0]);
    });

    it("tells of a shard selector only a client that sent one", async () => {
      for (const path of [CONFIG_MAP_LIST, FOO_LIST]) {
        for (const accept of [JSON_TYPE, PROTOBUF, PARTIAL, TABLE]) {
          if (path === FOO_LIST && accept === PROTOBUF) continue; // custom resources have no protobuf
          const asked = await during(blue, "shards", async () => {
            const seen = (await list("blue", path, accept)).toString("latin1");
            expect(seen.includes("shardRange"), `${path} as ${accept}`).toBe(false);
            expect(seen.includes("shardInfo"), `${path} as ${accept}`).toBe(false);
          });
          expect(asked.requests, `${path} as ${accept}`).toBe(1);
          // The API server itself leaves it out of Tables, of metadata, and of custom resources.
          const byUid = encodeURIComponent("shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')");
          const [own, direct] = await Promise.all(
            (["blue", "direct"] as const).map((side) => list(side, `${path}?shardSelector=${byUid}`, accept)),
          );
          const isTold = (body: Buffer | undefined) => body?.includes("object.metadata.uid");
          expect(isTold(own), `${path} as ${accept}`).toBe(isTold(direct));
          if (path === CONFIG_MAP_LIST && accept === JSON_TYPE) expect(isTold(direct)).toBe(true);
        }
      }
    });
  });

  describe("by a server that restarts without shard selectors under a running proxy", () => {
    beforeAll(async () => {
      await kube.crash();
      await kube.restart({ featureGates: "" });
      for (const path of [CONFIG_MAP_LIST, FOO_LIST])
        await eventually(async () => expect((await probes.direct.get(path)).status).toBe(200), 30_000);
      // A manager that has lost its lease ends. The new manager assigns new namespaces to their subsets.
      await mesh.killManager();
      await mesh.startManager();
      await mesh.createNamespace("blue-back");
      await createConfigMap("blue-back", "x");
      const one = "/api/v1/namespaces/blue-back/configmaps/x";
      await eventually(async () => expect((await probes.blue.get(one)).status).toBe(200), 60_000);
    });

    testExactSlices();

    it("stops when the proxy notices, and proxy-side filtering drops the objects of other subsets", async () => {
      for (const path of [CONFIG_MAP_LIST, FOO_LIST]) {
        const { requests, dropped } = await during(blue, "none", () => list("blue", path));
        expect(requests).toBe(1);
        expect(dropped).toBeGreaterThanOrEqual(OTHERS.length);
      }
      expect((await during(single, "one-namespace", () => list("single", CONFIG_MAP_LIST))).dropped).toBe(0);
    });
  });
});
