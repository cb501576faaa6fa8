// What clients are shown, and what writers are told, while the pod retains places that it has just written to and lost: the real
// handler of routes, enforcer, last writes and isolate layer over a scripted API server.
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply, textOf } from "../../../../test/support/layer-call.ts";
import { startRouteHandler } from "../../../../test/support/route-handler.ts";
import { group, sharded, snapshot, subset, table } from "../../../../test/support/route-table.ts";
import { recordingSink, type ScriptedSource, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { deltaUpdate, wholeUpdate } from "../../../../test/support/updates.ts";
import { sleep } from "../../../base/clock.ts";
import { BUCKETS } from "../../../kube/place.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { countingLast } from "../../session/last-writes.ts";
import type { Session } from "../../session/session.ts";
import { isolate } from "./isolate.ts";

interface SetupOptions {
  readonly path: string;
  readonly kind: string;
  readonly scope: "cluster" | "namespaced";
  /** What lists contain. */
  readonly items?: readonly object[];
  /** Lists at an exact version, which renewals send, take this long. */
  readonly renewalMs?: number;
}

async function setup(first: Snapshot, { path, kind, scope, items = [], renewalMs = 0 }: SetupOptions) {
  const clock = createFakeClock();
  const { enforcer, lastWrites, routeHandler } = startRouteHandler(
    { load: async () => undefined, save: async () => undefined },
    clock,
  );
  const beginWrite = countingLast(lastWrites, enforcer.beginWrite);
  // As create-session.ts does.
  const session: Session = Object.create(enforcer, { beginWrite: { value: beginWrite } });
  let nonce = 0;
  const enforce = (next: Snapshot, update = wholeUpdate(next, ++nonce)) =>
    routeHandler.take(update, {
      ack: () => undefined,
      nack: (problems) => {
        throw new Error(problems.join());
      },
      needsWhole: () => {
        throw new Error("a delta was not taken");
      },
    });
  await routeHandler.restore(true);
  const sources: ScriptedSource[] = [];
  let version = 10;
  const head = { apiVersion: "demo.io/v1", kind: `${kind}List` };
  const upstream = fakeUpstream(async (call) => {
    const { query } = call.info;
    if (call.method !== "GET") return jsonReply({ kind, metadata: { resourceVersion: "900" } });
    if (query.get("watch") === "1") {
      const source = scriptedSource();
      sources.push(source);
      return { status: 200, headers: { "content-type": "application/json" }, body: source };
    }
    if (query.has("limit")) return jsonReply({ ...head, metadata: { resourceVersion: String(++version) }, items: [] });
    if (renewalMs > 0 && query.has("resourceVersion")) await sleep(clock, renewalMs);
    return jsonReply({ ...head, metadata: { resourceVersion: query.get("resourceVersion") ?? String(++version) }, items });
  });
  const handler = isolate(isolateDeps({ session, clock, discovery: { scopeOf: async () => scope } }))(upstream);
  const send = (method: string, target: string) => handler(callOf(method, target, method === "GET" ? {} : { body: "{}" }));
  const refusal = (method: string, target: string) =>
    send(method, target).then(
      ({ status }) => String(status),
      (error: unknown) => (error instanceof StatusError ? error.status.message : String(error)),
    );
  const listVersion = async () => {
    const list = JSON.parse(await textOf(await send("GET", path))) as { metadata: { resourceVersion: string } };
    return list.metadata.resourceVersion;
  };
  const watchFrom = async (from: string) => {
    const { body } = await send("GET", `${path}?watch=1&resourceVersion=${from}&allowWatchBookmarks=true`);
    if (body === null || body instanceof Uint8Array) throw new Error("no stream");
    const sink = recordingSink();
    body.open(sink);
    return sink;
  };
  /** Lists and watches from there, as informers do. */
  const watch = async () => watchFrom(await listVersion());
  enforce(first);
  await clock.flush();
  return { clock, enforcer, enforce, send, refusal, watch, listVersion, watchFrom, sources };
}

const FOOS = "/apis/demo.io/v1/clusterfoos";
const RULES = [sharded(group("demo.io", "clusterfoos")), subset("s1"), subset("s2")];
/** The cluster scope is `scope`'s (1 or 2). With `byName` s2 owns the buckets of odd hashes, s1 the others. */
const family = (version: number, as: string, scope: 1 | 2, byName = false) => {
  const buckets = byName ? BUCKETS.map((place, hash) => [place, [hash % 2 === 0 ? 1 : 2]] as const) : [];
  const routeTable = table(RULES, { "": [scope], ...Object.fromEntries(buckets) });
  return snapshot(routeTable, { version, digest: `d${version}`, subset: as });
};
// "a" has the hash 1, "b" 2, "q" 17.
const foo = (name: string, version: number) => ({ metadata: { name, resourceVersion: String(version) } });
const fooEvent = (type: string, name: string, version: number) =>
  `${JSON.stringify({ type, object: { kind: "ClusterFoo", apiVersion: "demo.io/v1", ...foo(name, version) } })}\n`;
const CLUSTER_FOOS: SetupOptions = { path: FOOS, kind: "ClusterFoo", scope: "cluster" };

const AFTER = "right after a write";
/** Without a write nothing is retained: how it was before. */
const WHEN = [AFTER, "without a write"];

describe("cluster-scoped objects", () => {
  it.each(WHEN)(
    "ByName is switched off %s: the watch is told in the end that its objects are no longer the shard's",
    async (when) => {
      const { clock, enforce, send, watch } = await setup(family(1, "s2", 1, true), {
        ...CLUSTER_FOOS,
        items: [foo("a", 5), foo("b", 5)],
      });
      const sink = await watch();
      if (when === AFTER) await send("PUT", `${FOOS}/a`);
      enforce(family(2, "s2", 1));
      await clock.advance(60_000);
      expect(sink.text).toMatch(/"DELETED".*"name":"a"|"code":410/);
    },
  );

  it.each(WHEN)("the cluster scope goes and comes back %s: the watch shows what others did meanwhile", async (when) => {
    const { clock, enforce, send, watch, sources } = await setup(family(1, "s1", 1), CLUSTER_FOOS);
    const sink = await watch();
    if (when === AFTER) await send("PUT", `${FOOS}/a`);
    enforce(family(2, "s1", 2));
    await clock.advance(100);
    for (const source of sources) if (!source.cancelled) source.write(fooEvent("MODIFIED", "b", 20));
    enforce(family(3, "s1", 1));
    await clock.advance(60_000);
    // Either of these is right: the event, the object at another version, or the order to list again.
    expect(sink.text).toMatch(/"name":"b"|"code":410/);
  });

  it("the cluster scope is lost right after a create: the watch shows what was created", async () => {
    const { clock, enforce, send, watch, sources } = await setup(family(1, "s1", 1), CLUSTER_FOOS);
    const sink = await watch();
    await send("POST", FOOS);
    enforce(family(2, "s1", 2));
    await clock.advance(10);
    for (const source of sources) if (!source.cancelled) source.write(fooEvent("ADDED", "a", 900));
    await clock.advance(10);
    expect(sink.text).toContain('"resourceVersion":"900"');
  });
});

const PODS = "/api/v1/namespaces/b/pods";
const PODS_OF_ALL = "/api/v1/pods";
const NAMESPACED: SetupOptions = { path: "/api/v1/pods", kind: "Pod", scope: "namespaced" };
const both = routes(1, { blue: ["a", "b"] });
const lost = routes(2, { blue: ["a"], defaultSubset: ["b"] });

describe("a writer in a place that the pod has just lost in place", () => {
  it("is not told that the pod shows the namespace until it is restarted", async () => {
    const { clock, enforce, send, refusal } = await setup(both, NAMESPACED);
    await send("PUT", `${PODS}/x`);
    enforce(lost);
    const message = refusal("PUT", `${PODS}/x`);
    await clock.advance(600);
    expect(await message).not.toContain("until it is restarted");
  });

  it.each(["written", "not written"])(
    "does not repeat its refused writes every few milliseconds while it still sees the place (%s before)",
    async (before) => {
      const { clock, enforcer, enforce, send, refusal, watch } = await setup(both, NAMESPACED);
      await watch();
      await send("PUT", `/api/v1/namespaces/${before === "written" ? "b" : "a"}/pods/x`);
      enforce(lost);
      const sees = () => {
        const view = enforcer.current?.view("", "pods");
        return (view?.readView ?? view)?.ownershipOf("b") === "own";
      };
      let refused = 0;
      let isOver = false;
      // A reconciler that repeats at once until its cache has lost the object.
      const writer = (async () => {
        while (!isOver && (refused === 0 || sees())) {
          await refusal("PUT", `${PODS}/x`);
          refused++;
          if (refused % 20 === 0) await new Promise<void>((resolve) => clock.after(100, resolve)); // 20 writes take 100 ms
        }
      })();
      await clock.advance(20_000);
      isOver = true;
      await clock.advance(1_000);
      await writer;
      expect(refused).toBeLessThan(20);
    },
  );

  it("with a guard that only warns, it goes on writing: the place goes at last, also while other routes come twice a second", async () => {
    const warn = (version: number, born: readonly string[]) =>
      routes(version, { blue: ["a", ...born], defaultSubset: ["b"] }, { guard: "Warn" });
    const { clock, enforcer, enforce, send } = await setup(routes(1, { blue: ["a", "b"] }, { guard: "Warn" }), NAMESPACED);
    const born: string[] = [];
    await send("PUT", `${PODS}/x`);
    enforce(warn(2, born));
    for (let round = 0; round < 120; round++) {
      await send("PUT", `${PODS}/x`);
      born.push(`n${round}`);
      enforce(warn(3 + round, born));
      await clock.advance(500);
    }
    const view = enforcer.current?.view("", "pods");
    expect((view?.readView ?? view)?.ownershipOf("b")).toBe("other-subset");
  });
});

describe("the promised time", () => {
  const shows = (
    current: { view(group: string, resource: string): { readView?: { ownershipOf(name: string): string } } } | undefined,
  ) => current?.view("", "pods").readView?.ownershipOf("b") === "own";

  it("a place goes 6 s after its last write, also when routes come every 100 ms and watches renew themselves", async () => {
    const { clock, enforcer, enforce, send } = await setup(both, NAMESPACED);
    await send("PUT", `${PODS}/x`);
    const endedAtMs = clock.monotonicMs();
    enforce(lost);
    const end = enforcer.beginRenewal();
    const born: string[] = [];
    while (clock.monotonicMs() - endedAtMs < 5_900) {
      born.push(`n${born.length}`);
      enforce(routes(3 + born.length, { blue: ["a", ...born], defaultSubset: ["b"] }));
      await clock.advance(100);
    }
    while (shows(enforcer.current) && clock.monotonicMs() - endedAtMs < 60_000) await clock.advance(100);
    end();
    expect(clock.monotonicMs() - endedAtMs).toBeLessThanOrEqual(6_100);
  });

  it("a place goes 1 s after its own last write without a renewal, also when routes come every 100 ms", async () => {
    const { clock, enforcer, enforce, send } = await setup(both, NAMESPACED);
    await send("PUT", `${PODS}/x`);
    const endedAtMs = clock.monotonicMs();
    enforce(lost);
    const born: string[] = [];
    while (shows(enforcer.current) && clock.monotonicMs() - endedAtMs < 60_000) {
      born.push(`n${born.length}`);
      enforce(routes(3 + born.length, { blue: ["a", ...born], defaultSubset: ["b"] }));
      await clock.advance(100);
    }
    expect(clock.monotonicMs() - endedAtMs).toBeLessThanOrEqual(1_500);
  });

  it("a place whose writes are over goes, although a write to another lost place hangs", async () => {
    const { clock, enforcer, enforce, send } = await setup(routes(1, { blue: ["a", "b", "c"] }), NAMESPACED);
    const hanging = enforcer.beginWrite("c", { group: "", resource: "pods" });
    await send("PUT", `${PODS}/x`);
    enforce(routes(2, { blue: ["a"], defaultSubset: ["b", "c"] }));
    await clock.advance(6_100);
    const isShown = shows(enforcer.current);
    hanging();
    expect(isShown).toBe(false);
  });
});

it.each(["runs", "is resumed"])(
  "the event of a write is shown by a watch that %s while a gained namespace takes 2 s to be listed",
  async (how) => {
    const { clock, enforce, send, watchFrom, listVersion, sources } = await setup(
      routes(1, { blue: ["a", "b"], defaultSubset: ["c"] }),
      { ...NAMESPACED, renewalMs: 2_000 },
    );
    const from = await listVersion();
    const gained = routes(2, { blue: ["a", "b", "c"] });
    const early = how === "runs" ? watchFrom(from) : undefined;
    await clock.flush();
    enforce(gained);
    await clock.flush();
    // A connection that has just broken: the client continues from its version, and is owed the gained namespace first.
    const pending = early ?? watchFrom(from);
    await clock.flush();
    await send("PUT", `${PODS}/x`);
    enforce(routes(3, { blue: ["a", "c"], defaultSubset: ["b"] }));
    const object = { metadata: { namespace: "b", name: "x", resourceVersion: "900" } };
    const told = new Set<ScriptedSource>();
    for (let ms = 0; ms < 8_000; ms += 100) {
      await clock.advance(100);
      // The API server sends the event of the write to each new watch at once.
      for (const source of sources) {
        if (told.has(source) || source.cancelled || !source.opened) continue;
        told.add(source);
        source.write(`${JSON.stringify({ type: "MODIFIED", object: { kind: "Pod", apiVersion: "v1", ...object } })}\n`);
      }
    }
    expect((await pending).text).toContain('"900"');
  },
);

describe("a watch of one namespace that the pod has just written to and loses", () => {
  const path = "/api/v1/namespaces/b/pods";
  const modified = (version: string) =>
    `${JSON.stringify({ type: "MODIFIED", object: { kind: "Pod", apiVersion: "v1", metadata: { namespace: "b", name: "x", resourceVersion: version } } })}\n`;
  const items = [{ metadata: { namespace: "b", name: "x", resourceVersion: "5" } }];

  it.each([PODS_OF_ALL, path])("%s: shows the write, then that the object is gone, once", async (target) => {
    const { clock, enforce, send, watch, sources } = await setup(both, { ...NAMESPACED, path: target, items });
    const sink = await watch();
    await send("PUT", `${PODS}/x`);
    enforce(lost);
    await clock.advance(100);
    for (const source of sources) if (!source.cancelled) source.write(modified("900"));
    await clock.advance(20_000);
    const types = sink.text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; object: { code?: number } });
    expect(types.map(({ type, object }) => object.code ?? type)).toEqual(["MODIFIED", "DELETED", "BOOKMARK"]);
  });

  it.each([PODS_OF_ALL, path])(
    "%s: that begins in between shows the write, then that the object is gone, once",
    async (target) => {
      const { clock, enforce, send, watch, sources } = await setup(both, { ...NAMESPACED, path: target, items });
      await send("PUT", `${PODS}/x`);
      enforce(lost);
      await clock.advance(100);
      const sink = await watch();
      for (const source of sources) if (!source.cancelled) source.write(modified("900"));
      await clock.advance(20_000);
      const types = sink.text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { type: string; object: { code?: number } });
      expect(types.map(({ type, object }) => object.code ?? type)).toEqual(["MODIFIED", "DELETED", "BOOKMARK"]);
    },
  );
});

it.each([10, 200])("%i places are lost at once, one of them just written: the watch shows the write", async (count) => {
  const names = Array.from({ length: count }, (_, at) => `n${at}`);
  const { clock, enforce, send, watch, sources } = await setup(routes(1, { blue: ["a", "b", ...names] }), NAMESPACED);
  const sink = await watch();
  await send("PUT", `${PODS}/x`);
  enforce(routes(2, { blue: ["a"], defaultSubset: ["b", ...names] }));
  const told = new Set<ScriptedSource>();
  for (let ms = 0; ms < 8_000; ms += 10) {
    await clock.advance(10);
    for (const source of sources) {
      if (told.has(source) || source.cancelled || !source.opened) continue;
      told.add(source);
      const metadata = { namespace: "b", name: "x", resourceVersion: "900" };
      source.write(`${JSON.stringify({ type: "MODIFIED", object: { kind: "Pod", apiVersion: "v1", metadata } })}\n`);
    }
  }
  expect(sink.text).toContain('"900"');
});

it.each([0, 40])("200 places are lost at once, %i of them just written: a watch is told to list again once", async (written) => {
  const names = Array.from({ length: 200 }, (_, at) => `n${at}`);
  const { clock, enforce, send, watch } = await setup(routes(1, { blue: ["a", ...names] }), NAMESPACED);
  for (const name of names.slice(0, written)) await send("PUT", `/api/v1/namespaces/${name}/pods/x`);
  let lists = 0;
  // An informer: lists again after each 410.
  let sink = await watch();
  enforce(routes(2, { blue: ["a"], defaultSubset: names }));
  for (let round = 0; round < 100; round++) {
    await clock.advance(100);
    if (!sink.text.includes('"code":410')) continue;
    lists++;
    sink = await watch();
  }
  expect(lists).toBe(1);
});

it("a delta to the routes in force is applied to them, and not to what the pod retains", async () => {
  const { clock, enforcer, enforce, send } = await setup(both, NAMESPACED);
  await send("PUT", `${PODS}/x`);
  enforce(lost);
  await clock.flush();
  const next = routes(3, { blue: ["a", "c"], defaultSubset: ["b"] });
  enforce(next, deltaUpdate(lost, next, 9));
  await clock.advance(20_000);
  expect(enforcer.current?.snapshot.digest).toBe(next.digest);
  expect(enforcer.current?.snapshot.table.retained).toBeUndefined();
});
