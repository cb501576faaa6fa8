// What a watch that went on without its client owes it, and what it says for others: namespaces that were
// hidden or have gone, further clients of the same shape, clients that do not read.
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply, textOf } from "../../../../test/support/layer-call.ts";
import { bookmark, event, LIST, MORE, ONE, startRenewing as setup, toldUpTo } from "../../../../test/support/renewing.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import { createMoveLog } from "../../../mesh/moves/move-log.ts";
import { LOST_MOVES } from "../../../mesh/moves/stored-moves.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "../isolate/isolate.ts";

describe("a watch that is renewed", () => {
  it("shows what a namespace held that nobody had named yet when the watch was renewed, and that had been hidden by a push-down to one namespace", async () => {
    const defaultSubset = Array.from({ length: 20 }, (_, index) => `m${index}`);
    const { open, sources, enforce, settle, asked, upstream } = await setup({
      blue: ["a"],
      defaultSubset: [...defaultSubset, "n"],
    });
    const { sink } = await open();
    expect(upstream.calls.at(-1)?.info.query.get("fieldSelector")).toBe("metadata.namespace=a");
    sources[0]?.write(event("a", "one", 12));
    enforce({ blue: ["a", "n"], defaultSubset });
    await settle();
    expect(asked.slice(1)).toEqual(["list n at 12 Exact", "watch from 12"]);
    enforce({ blue: ["a", "n", "born"], defaultSubset });
    await settle();
    expect(asked.slice(3)).toEqual(["list born at 12 Exact", "watch from 12"]);
    expect(sink.text).toContain(event("born", "x", 5));
  });

  it("also where it is named while the watch is renewed", async () => {
    const defaultSubset = Array.from({ length: 20 }, (_, index) => `m${index}`);
    const state = await setup({ blue: ["a"], defaultSubset: [...defaultSubset, "n"] });
    const { sink } = await state.open();
    state.sources[0]?.write(event("a", "one", 12));
    state.enforce({ blue: ["a", "n"], defaultSubset });
    state.enforce({ blue: ["a", "n", "born"], defaultSubset });
    await state.settle();
    await state.settle();
    expect(sink.text).toContain(event("born", "x", 5));
  });

  it("also where it is named while the API server lists, before the watch that hides it is sent", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const state = await setup(ONE, async ({ info }) => {
      await promise;
      return jsonReply({ ...LIST, metadata: { resourceVersion: info.query.get("resourceVersion") } });
    });
    await state.open();
    state.enforce({ blue: ["a"], defaultSubset: ["n", "m", "b"] });
    await state.settle();
    state.enforce({ blue: ["a", "born"], defaultSubset: ["n", "m", "b"] });
    resolve();
    await state.settle();
    expect(state.asked).toContain("list born at 10 Exact");
  });

  it("tells that objects went with a namespace that was deleted while the watch was renewed", async () => {
    const waiting: (() => void)[] = [];
    const state = await setup(ONE, async (call) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return jsonReply({ ...LIST, metadata: { resourceVersion: call.info.query.get("resourceVersion") }, items: [] });
    });
    const { sink } = await state.open();
    state.sources[0]?.write(event("b", "one", 12));
    state.enforce(MORE);
    await state.settle();
    state.enforce({ blue: ["a", "n"], defaultSubset: ["m"] }); // b is deleted
    for (let round = 0; round < 3; round++) {
      waiting.shift()?.();
      await state.settle();
    }
    state.sources.at(-1)?.write(event("b", "one", 14, "DELETED"));
    expect(sink.text).toContain(event("b", "one", 14, "DELETED"));
  });

  it("a WatchList whose initial events are not over is not renewed: their end would never come", async () => {
    const state = await setup(ONE);
    const { sink } = await state.open("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    state.sources[0]?.write(event("a", "one", 12) + event("a", "one", 13, "MODIFIED") + event("born", "y", 14) + bookmark(14));
    state.enforce({ blue: ["a", "b", "n", "born"], defaultSubset: ["m"] });
    await state.settle();
    await state.clock.advance(1_000);
    expect(state.asked).toHaveLength(1);
    expect(sink.text).toMatch(/"code":410/);
  });

  it("says nothing for a list that a route change has touched", async () => {
    const state = await setup(ONE);
    await state.open();
    const { promise, resolve } = Promise.withResolvers<Reply>();
    state.gate.list = promise;
    const list = state.list(); // a second informer begins, under the old routes
    await state.settle();
    state.gate.list = undefined;
    state.enforce(MORE);
    await state.settle();
    expect(state.asked).toContain("watch from 10");
    resolve(jsonReply({ ...LIST, metadata: { resourceVersion: "20" } })); // without n: it was not asked for
    await list;
    expect([await state.toldFrom(20), await state.toldFrom(21)]).toEqual([event("n", "x", 5) + toldUpTo(20), ""]);
  });

  it("says nothing for a watch that is being opened", async () => {
    const state = await setup(ONE);
    await state.open();
    const { promise, resolve } = Promise.withResolvers<void>();
    state.gate.watch = promise;
    const late = state.toldFrom(20);
    await state.settle();
    state.gate.watch = undefined;
    state.enforce({ blue: ["a"], defaultSubset: ["b", "n", "m"] });
    await state.settle();
    expect(state.asked.filter((each) => each === "watch from 10")).toHaveLength(2);
    resolve();
    expect(await late).toBe(event("b", "x", 5, "DELETED") + toldUpTo(20));
  });

  it("does not heap up what a client does not read", async () => {
    const annotations = { big: "x".repeat(1024 * 1024) };
    const items = [{ metadata: { namespace: "n", name: "x", resourceVersion: "5", annotations } }];
    const state = await setup(ONE, (call) =>
      jsonReply({ ...LIST, metadata: { resourceVersion: call.info.query.get("resourceVersion") }, items }),
    );
    const { sink } = await state.open();
    sink.full = true;
    for (let round = 0; round < 10; round++) {
      for (const next of [MORE, ONE]) {
        state.enforce(next);
        await state.settle();
      }
    }
    await state.clock.advance(1_000);
    expect(sink.bytes.length).toBeLessThan(4 * 1024 * 1024);
    expect(sink.text).toMatch(/"code":410/);
  });
});

describe("a watch that was held up while a namespace of its subset was deleted", () => {
  const heldUp = async () => {
    const state = await setup(ONE);
    const client = await state.open();
    client.sink.full = true;
    state.sources[0]?.write(event("a", "one", 12));
    state.enforce({ blue: ["a"], defaultSubset: ["n", "m"] }); // b is deleted; its last events wait upstream
    await state.clock.advance(40_000);
    client.sink.full = false;
    client.control.resume();
    return { ...state, ...client };
  };

  it("is shown its last events however late, also after it has gone on because of another", async () => {
    const { enforce, settle, sink, sources } = await heldUp();
    sources[0]?.write(event("b", "one", 13, "DELETED"));
    enforce({ blue: ["a", "n"], defaultSubset: ["m"] });
    await settle();
    sources[1]?.write(event("b", "two", 14, "DELETED"));
    const told = event("n", "x", 5) + toldUpTo(13);
    const gone = [event("b", "one", 13, "DELETED"), event("b", "two", 14, "DELETED")];
    expect(sink.text).toBe(event("a", "one", 12) + gone[0] + told + gone[1]);
  });

  it("leaves them to the next watch of its client, for which they are listed if the API server is asked to hide them", async () => {
    const { control, toldFrom, upstream } = await heldUp();
    control.cancel(new Error("the client goes"));
    expect(await toldFrom(12)).toBe(event("b", "x", 5, "DELETED") + toldUpTo(12));
    expect(upstream.calls.at(-1)?.info.query.get("fieldSelector")).toBe("metadata.namespace=a");
  });
});

it("a watch is renewed within five seconds or not at all, however often its namespace moves meanwhile", async () => {
  const waiting: (() => void)[] = [];
  const state = await setup(ONE, ({ signal }) => {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    waiting.push(() => resolve(jsonReply({ ...LIST, items: [] })));
    signal.addEventListener("abort", () => reject(new Error("given up")));
    return promise;
  });
  const { sink } = await state.open();
  state.enforce(MORE);
  for (const blue of [
    ["a", "b"],
    ["a", "b", "n"],
  ]) {
    await state.clock.advance(2_000);
    state.enforce({ blue, defaultSubset: ["n", "m"].filter((name) => !blue.includes(name)) });
    waiting.shift()?.();
    await state.settle();
  }
  expect(waiting).toHaveLength(1);
  await state.clock.advance(2_000);
  expect(sink.text).toMatch(/"code":410/);
});

describe("a namespace of the subset that was deleted while its client had no watch", () => {
  const deleted = async (next: Routes) => {
    const state = await setup(ONE);
    const { control } = await state.open();
    control.cancel(new Error("the client goes"));
    state.enforce({ blue: ["a", "c"], defaultSubset: ["n", "m"] });
    state.enforce(next);
    const { sink } = await state.open();
    await state.settle();
    state.sources.at(-1)?.write(event("b", "one", 12, "DELETED") + event("b", "two", 13));
    return sink.text;
  };

  it.each<[string, Routes, string]>([
    ["comes to its end in the next watch", { blue: ["a", "c"], defaultSubset: ["n", "m"] }, event("b", "one", 12, "DELETED")],
    [
      "is told anew if it was born again",
      { blue: ["a", "b", "c"], defaultSubset: ["n", "m"] },
      event("b", "x", 5) + toldUpTo(10) + event("b", "one", 12, "DELETED") + event("b", "two", 13),
    ],
    [
      "is told as gone if it was born again as another subset's",
      { blue: ["a", "c"], defaultSubset: ["b", "n", "m"] },
      event("b", "x", 5, "DELETED") + toldUpTo(10),
    ],
  ])("%s", async (_, next, told) => {
    expect(await deleted(next)).toBe(told);
  });
});

describe("a client that takes what it lists otherwise than what it is told, as kopf does", () => {
  it("lists again what comes to it, and is told what goes", async () => {
    const { open, enforce, settle, clock, asked } = await setup(ONE, undefined, { tellsListsApart: true });
    const { sink } = await open();
    enforce({ blue: ["a"], defaultSubset: ["b", "n", "m"] });
    await settle();
    expect(sink.text).toBe(event("b", "x", 5, "DELETED") + toldUpTo(10));
    enforce({ blue: ["a", "n"], defaultSubset: ["b", "m"] });
    await clock.advance(1_000);
    expect(sink.text).toMatch(/"code":410/);
    expect(asked).toEqual(["watch from 10", "list b at 10 Exact", "watch from 10"]);
  });
});

it("a list after a restart asks by the routes that hold once the API server's version is known", async () => {
  const session = createEnforcer();
  const moves = createMoveLog(session, { before: LOST_MOVES, keep: () => undefined });
  const many = Array.from({ length: 20 }, (_, index) => `m${index}`);
  const enforce = (version: number, of: Routes) => session.enforce(routes(version, of));
  enforce(1, { blue: ["a"], defaultSubset: [...many, "b"] });
  const versionOf = Promise.withResolvers<Reply>();
  const upstream = fakeUpstream((call) => (call.info.query.has("limit") ? versionOf.promise : jsonReply(LIST)));
  const discovery = { scopeOf: async () => "namespaced" as const };
  const clock = createFakeClock();
  const list = isolate(isolateDeps({ session, clock, moves, discovery }))(upstream)(callOf("GET", "/api/v1/pods"));
  await clock.flush();
  enforce(2, { blue: ["b"], defaultSubset: [...many, "a"] });
  versionOf.resolve(jsonReply(LIST));
  await textOf(await list);
  expect(upstream.calls.map((call) => call.info.query.get("fieldSelector"))).toEqual([null, "metadata.namespace=b"]);
});

it("a client that comes back without the last events of a deleted namespace is told of them, if its new watch would hide them", async () => {
  const defaultSubset = Array.from({ length: 20 }, (_, index) => `m${index}`);
  const { open, sources, enforce, settle, asked } = await setup({ blue: ["a", "n"], defaultSubset });
  await open();
  sources[0]?.write(event("n", "x", 12));
  enforce({ blue: ["a"], defaultSubset });
  sources[0]?.write(event("a", "two", 13));
  sources[0]?.end();
  const { sink } = await open("resourceVersion=13&allowWatchBookmarks=true");
  await settle();
  expect(asked.slice(1)).toEqual(["list n at 13 Exact", "watch from 13"]);
  expect(sink.text).toBe(event("n", "x", 5, "DELETED") + toldUpTo(13));
});
