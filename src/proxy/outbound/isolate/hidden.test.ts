// Objects by which the operator finds clusters, through the whole layer: a pod sees and changes those of its subset's clusters only.
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { type CallOptions, callOf, fakeUpstream, jsonReply, namesOf } from "../../../../test/support/layer-call.ts";
import { group, snapshot, subset, table } from "../../../../test/support/route-table.ts";
import { recordingSink, type ScriptedSource, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { StatusError } from "../../../kube/status.ts";
import type { ClusterRoute } from "../../../mesh/ownership/clusters.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "./isolate.ts";

const ALL = "/api/v1/secrets";
const HERE = "/api/v1/namespaces/fleet/secrets";
const ELSEWHERE = "/api/v1/namespaces/other/secrets";
const PROFILES = "/apis/multicluster.x-k8s.io/v1alpha1/clusterprofiles";

const secret = (namespace: string, name: string, version = 5) => ({
  metadata: { namespace, name, resourceVersion: String(version) },
});
const SECRETS = [secret("fleet", "eu"), secret("fleet", "us"), secret("fleet", "plain"), secret("other", "eu")];
const event = (type: string, name: string, version: number) =>
  `${JSON.stringify({ type, object: { kind: "Secret", apiVersion: "v1", ...secret("fleet", name, version) } })}\n`;

function cluster(name: string, owner: string, isFenced?: true): ClusterRoute {
  const objects = [
    { group: "", resource: "secrets", name },
    { group: "multicluster.x-k8s.io", resource: "clusterprofiles", name },
  ];
  return { name, servers: [`${name}:443`], drainMs: 60_000, objects, owner, isFenced };
}

/** All namespaces belong to the subset blue, and every subset sees the profiles. */
const TABLE = table(
  [subset("blue")],
  { fleet: [0], other: [0] },
  { sharedResources: [group("multicluster.x-k8s.io", "clusterprofiles")] },
);

/** The routes of the subset blue. */
async function setUp(...clusters: readonly ClusterRoute[]) {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (...now: readonly ClusterRoute[]) => {
    const routes = { app: { namespace: "fleet", name: "app" }, subset: "blue", clusters: now };
    session.enforce(snapshot(TABLE, { ...routes, version, digest: `d${version++}` }));
  };
  enforce(...clusters);
  const sources: ScriptedSource[] = [];
  const upstream = fakeUpstream(({ info, target }) => {
    const head = { apiVersion: "v1", kind: "SecretList", metadata: { resourceVersion: "10" } };
    if (info.query.has("limit")) return jsonReply({ ...head, metadata: { resourceVersion: "1000" }, items: [] });
    if (info.query.get("watch") === "1") {
      const source = scriptedSource();
      sources.push(source);
      return { status: 200, headers: { "content-type": "application/json" }, body: source };
    }
    const items = SECRETS.filter(
      ({ metadata }) => target.startsWith(ALL) || target.includes(`/namespaces/${metadata.namespace}/`),
    );
    return jsonReply({ ...head, items });
  });
  const layer = isolate(isolateDeps({ session, clock }));
  const send = (method: string, path: string, options?: CallOptions) => layer(upstream)(callOf(method, path, options));
  const code = (method: string, path: string, options?: CallOptions) =>
    send(method, path, options).then(
      ({ status }) => status,
      (error: unknown) => (error instanceof StatusError ? error.status.code : error),
    );
  const list = async (path: string) => namesOf(await send("GET", path));
  const watch = async (path: string) => {
    const { body } = await send("GET", `${path}?watch=1&resourceVersion=10`);
    if (body === null || body instanceof Uint8Array) throw new Error("no stream");
    const sink = recordingSink();
    body.open(sink);
    return sink;
  };
  return { clock, session, enforce, send, code, list, watch, sources };
}

const [OWN, FOREIGN, COMING] = [cluster("eu", "blue"), cluster("eu", "green"), cluster("eu", "blue", true)];
const creation = (name: string): CallOptions => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { namespace: "fleet", name } }),
});

describe("the object of a cluster", () => {
  it("is seen and changed by pods of the cluster's owner only; a pod that will get the cluster has to wait", async () => {
    for (const [routes, expected] of [
      [OWN, 200],
      [FOREIGN, 403],
      [COMING, 503],
    ] as const) {
      const { code } = await setUp(routes);
      for (const method of ["GET", "PUT", "PATCH", "DELETE"]) expect(await code(method, `${HERE}/eu`)).toBe(expected);
      expect(await code("POST", HERE, creation("eu"))).toBe(expected);
      expect(await code("PATCH", `${PROFILES}/eu/status`)).toBe(expected);
    }
  });

  it("hides no other object: of another name, in another namespace, or of another resource", async () => {
    const { code } = await setUp(FOREIGN);
    for (const path of [`${HERE}/plain`, `${ELSEWHERE}/eu`, "/api/v1/namespaces/fleet/configmaps/eu"])
      expect([path, await code("GET", path), await code("PUT", path)]).toEqual([path, 200, 200]);
    expect(await code("POST", HERE, creation("plain"))).toBe(200);
  });

  it("keeps collections from being deleted that contain it", async () => {
    const { code } = await setUp(FOREIGN);
    expect([await code("DELETE", HERE), await code("DELETE", ALL), await code("DELETE", ELSEWHERE)]).toEqual([403, 403, 200]);
    expect(await (await setUp(OWN)).code("DELETE", HERE)).toBe(200);
  });

  it("is named in the refusal, with the cluster and its owner", async () => {
    const { send } = await setUp(FOREIGN);
    await expect(send("PUT", `${HERE}/eu`)).rejects.toThrow(
      /^ctrlmesh: update secrets "eu": the object is for cluster "eu", which belongs to subset "green"/,
    );
  });

  it("holds back the acknowledgement of routes while a write to it is in flight", async () => {
    const { session, enforce } = await setUp(OWN);
    const info = { group: "", resource: "secrets", namespace: "fleet" };
    const [ofObject, ofOther, ofUnknown] = ["eu", "plain", ""].map((name) => session.beginWrite("fleet", { ...info, name }));
    enforce(FOREIGN);
    session.whenDrained(() => {});
    expect(session.drainingWrites).toBe(2);
    ofObject?.();
    ofUnknown?.();
    expect(session.drainingWrites).toBe(0);
    ofOther?.();
  });
});

describe("a collection", () => {
  it("is listed without the objects of clusters that the subset does not own", async () => {
    const { list } = await setUp(FOREIGN, cluster("us", "blue"));
    expect([await list(HERE), await list(ALL), await list(ELSEWHERE)]).toEqual([["us", "plain"], ["us", "plain", "eu"], ["eu"]]);
  });

  it("is watched without them", async () => {
    const { watch, sources } = await setUp(FOREIGN);
    for (const path of [HERE, ALL]) {
      const sink = await watch(path);
      sources.at(-1)?.write(event("ADDED", "eu", 11) + event("MODIFIED", "us", 12) + event("DELETED", "eu", 13));
      expect(sink.text).toBe(event("MODIFIED", "us", 12));
    }
  });

  it("is listed again when the subset gets or loses a cluster, by a live watch and by one that continues later", async () => {
    for (const [before, after] of [
      [COMING, OWN],
      [OWN, FOREIGN],
    ] as const) {
      const { clock, enforce, watch, sources, list, send } = await setUp(before);
      await list(HERE);
      const sink = await watch(HERE);
      sources[0]?.write(event("MODIFIED", "us", 12));
      enforce(after);
      await clock.advance(10_000);
      expect(sink.text).toContain(event("MODIFIED", "us", 12));
      expect([sink.text.includes('"code":410'), sink.state]).toEqual([true, "ended"]);
      const { body } = await send("GET", `${HERE}?watch=1&resourceVersion=12`);
      expect(Buffer.from(body as Uint8Array).toString()).toContain('"code":410');
    }
  });

  it("stays watched when a cluster moves between other subsets", async () => {
    const { clock, enforce, watch, sources } = await setUp(FOREIGN);
    const sink = await watch(HERE);
    enforce(cluster("eu", "red"));
    await clock.advance(10_000);
    sources[0]?.write(event("MODIFIED", "us", 12));
    expect(sink.text).toBe(event("MODIFIED", "us", 12));
  });
});
