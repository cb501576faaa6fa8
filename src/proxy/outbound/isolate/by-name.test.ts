// Cluster-scoped objects that shards own by name, through the whole layer: single objects, creates, lists,
// and watches whose shard gains or loses buckets.
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { type CallOptions, callOf, fakeUpstream, jsonReply, namesOf } from "../../../../test/support/layer-call.ts";
import { group, sharded, snapshot, subset, table } from "../../../../test/support/route-table.ts";
import { recordingSink, type ScriptedSource, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { BUCKETS } from "../../../kube/place.ts";
import { StatusError } from "../../../kube/status.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "./isolate.ts";

const FOOS = "/apis/demo.io/v1/clusterfoos";
// Names with the hashes 1, 2, 3 and 17.
const NAMES = ["a", "b", "c", "q"];
const foo = (name: string, version = 5) => ({ metadata: { name, resourceVersion: String(version) } });
const head = (version: number) => ({
  apiVersion: "demo.io/v1",
  kind: "ClusterFooList",
  metadata: { resourceVersion: String(version) },
});
const event = (type: string, name: string, version = 5) =>
  `${JSON.stringify({ type, object: { kind: "ClusterFoo", apiVersion: "demo.io/v1", ...foo(name, version) } })}\n`;

/** s2 owns these hashes, s1 all others and the cluster scope; undefined: s1 owns all. */
function tableOf(ofS2: readonly number[] | undefined) {
  const buckets = ofS2 === undefined ? [] : BUCKETS.map((place, hash) => [place, [ofS2.includes(hash) ? 2 : 1]] as const);
  const rules = [sharded(group("demo.io", "clusterfoos")), subset("s1"), subset("s2")];
  return table(rules, { "": [1], ...Object.fromEntries(buckets) });
}

async function setup(ofS2: readonly number[] | undefined, as = "s2") {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (hashes: readonly number[] | undefined) =>
    session.enforce(snapshot(tableOf(hashes), { subset: as, version, digest: `d${version++}` }));
  enforce(ofS2);
  const sources: ScriptedSource[] = [];
  const asked: string[] = [];
  const upstream = fakeUpstream(({ method, info, target, body }) => {
    if (info.query.has("limit")) return jsonReply({ ...head(1000), items: [] });
    asked.push(`${method} ${target.slice(FOOS.length)}${body instanceof Uint8Array ? ` ${Buffer.from(body)}` : ""}`);
    if (info.query.get("watch") === "1") {
      const source = scriptedSource();
      sources.push(source);
      return { status: 200, headers: { "content-type": "application/json" }, body: source };
    }
    return jsonReply({ ...head(Number(info.query.get("resourceVersion") ?? 10)), items: NAMES.map((name) => foo(name)) });
  });
  const layer = isolate(isolateDeps({ session, clock, discovery: { scopeOf: async () => "cluster" } }));
  const send = (method: string, path: string, options?: CallOptions) => layer(upstream)(callOf(method, FOOS + path, options));
  const code = (method: string, path: string, options?: CallOptions) =>
    send(method, path, options).then(
      ({ status }) => status,
      (error: unknown) => (error instanceof StatusError ? error.status.code : error),
    );
  const watch = async () => {
    const { body } = await send("GET", "?watch=1&resourceVersion=10");
    if (body === null || body instanceof Uint8Array) throw new Error("no stream");
    const sink = recordingSink();
    body.open(sink);
    return sink;
  };
  return { clock, enforce, send, code, watch, asked, sources };
}

const creation = (metadata: object, type = "application/json"): CallOptions => ({
  headers: { "content-type": type },
  body: JSON.stringify({ apiVersion: "demo.io/v1", kind: "ClusterFoo", metadata }),
});

describe("a single object", () => {
  it("belongs to the shard of its name's hash, by every verb, and is never deleted in a collection", async () => {
    const { code } = await setup([17]);
    for (const [method, path] of [
      ["GET", "/q"],
      ["PUT", "/q"],
      ["PATCH", "/q/status"],
      ["DELETE", "/q"],
    ] as const) {
      expect([method, await code(method, path), await code(method, path.replace("q", "a"))]).toEqual([method, 200, 403]);
    }
    expect([await code("DELETE", ""), await (await setup([17], "s1")).code("DELETE", "")]).toEqual([403, 403]);
  });

  it("is created by the shard of the name in the body, and the body reaches the API server as it is", async () => {
    const { code, asked } = await setup([17]);
    const own = creation({ name: "q" });
    expect([await code("POST", "", own), await code("POST", "", creation({ name: "a" }))]).toEqual([200, 403]);
    expect(asked).toEqual([`POST  ${own.body}`]);
    expect(await code("POST", "", creation({ name: "q" }, "application/yaml"))).toBe(415);
    expect(await code("POST", "", { ...own, body: '{"metadata":{"name":1}}' })).toBe(400);
  });

  it("is created by the home shard if the API server makes its name", async () => {
    const generated = creation({ generateName: "q-" });
    expect(await (await setup([17])).code("POST", "", generated)).toBe(403);
    expect(await (await setup([17], "s1")).code("POST", "", generated)).toBe(200);
  });

  it("is created unread by the home shard that owns all", async () => {
    const { code } = await setup(undefined, "s1");
    expect(await code("POST", "", creation({ name: "q" }, "application/yaml"))).toBe(200);
    expect(await code("DELETE", "")).toBe(200);
  });

  it("is decided anew by its name if the table changes while its body is read", async () => {
    const { clock, enforce, code } = await setup([], "s1");
    const reply = code("POST", "", creation({ name: "q" }));
    enforce([17]);
    await clock.advance(1_000);
    expect(await reply).toBe(403);
  });
});

describe("a collection", () => {
  it("is listed and watched by name", async () => {
    const { send, watch, sources } = await setup([1, 17]);
    expect(await namesOf(await send("GET", ""))).toEqual(["a", "q"]);
    const sink = await watch();
    sources[0]?.write(event("ADDED", "a", 11) + event("MODIFIED", "b", 12) + event("DELETED", "q", 13));
    expect(sink.text).toBe(event("ADDED", "a", 11) + event("DELETED", "q", 13));
  });

  it("is continued with one list when buckets move, which shows what was gained and what was lost", async () => {
    const { clock, send, watch, sources, asked, enforce } = await setup([1, 17]);
    await send("GET", "");
    const sink = await watch();
    sources[0]?.write(event("MODIFIED", "a", 12));
    enforce([1, 2, 3]);
    await clock.advance(2_000);
    expect(asked.slice(2)).toEqual(["GET ?resourceVersion=12&resourceVersionMatch=Exact", "GET ?watch=1&resourceVersion=12"]);
    const [first, ...told] = sink.text.split("\n").filter((line) => line !== "");
    expect(`${first}\n`).toBe(event("MODIFIED", "a", 12));
    expect(told.map((line) => `${line}\n`).sort()).toEqual([event("ADDED", "b"), event("ADDED", "c"), event("DELETED", "q")]);
    sources[1]?.write(event("MODIFIED", "b", 13) + event("MODIFIED", "q", 14));
    expect(sink.text.endsWith(event("MODIFIED", "b", 13))).toBe(true);
  });

  it("is continued in the same way when the family begins to own by name", async () => {
    const { clock, send, watch, enforce } = await setup(undefined);
    await send("GET", "");
    const sink = await watch();
    enforce([2]);
    await clock.advance(2_000);
    expect(sink.text).toBe(event("ADDED", "b"));
  });
});
