// What a watch that went on without its client owes it, and what it says for others: namespaces that were hidden or have gone, further
// clients of the same shape, clients that do not read.
import { describe, expect, it } from "vitest";
import { jsonReply } from "../../../../test/support/layer-call.ts";
import { bookmark, event, LIST, MORE, ONE, startRenewing as setup } from "../../../../test/support/renewing.ts";
import { recordingSink } from "../../../../test/support/scripted-body.ts";
import type { Reply } from "../../http/handler.ts";

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
    if (state.sources[1]?.opened) state.sources[1].write(event("b", "one", 14, "DELETED"));
    await state.clock.advance(20_000);
    expect(sink.text).toMatch(/DELETED|"code":410/);
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

  it("says nothing for a list of the same shape that a route change has touched", async () => {
    const state = await setup(ONE);
    await state.open();
    const { promise, resolve } = Promise.withResolvers<Reply>();
    state.gate.list = promise;
    const list = state.send("/api/v1/pods"); // a second informer begins, under the old routes
    await state.settle();
    state.gate.list = undefined;
    state.enforce(MORE);
    await state.settle();
    expect(state.asked).toContain("watch from 10");
    resolve(jsonReply({ ...LIST, metadata: { resourceVersion: "20" } })); // without n: it was not asked for
    await list;
    expect(await state.watchCodeOf(20)).toBe(410);
  });

  it("says nothing for a watch of the same shape that is being opened", async () => {
    const state = await setup(ONE);
    await state.open();
    const { promise, resolve } = Promise.withResolvers<void>();
    state.gate.watch = promise;
    await state.send("/api/v1/pods");
    const late = state.send("/api/v1/pods?watch=1&resourceVersion=20");
    await state.settle();
    state.gate.watch = undefined;
    state.enforce({ blue: ["a"], defaultSubset: ["b", "n", "m"] });
    await state.settle();
    expect(state.asked.filter((each) => each === "watch from 10")).toHaveLength(2);
    resolve();
    const { body } = await late;
    if (body === null || body instanceof Uint8Array) throw new Error("no stream");
    const sink = recordingSink();
    body.open(sink);
    await state.clock.advance(1_000);
    expect(sink.text).toMatch(/"code":410/);
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

describe("a watch that was held up", () => {
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

  it("is not renewed at once: it may owe what came last of a namespace that was deleted meanwhile", async () => {
    const { enforce, settle, clock, sink, asked } = await heldUp();
    enforce({ blue: ["a", "n"], defaultSubset: ["m"] });
    await settle();
    await clock.advance(1_000);
    expect(asked).toEqual(["watch from 10"]);
    expect(sink.text).toMatch(/"code":410/);
  });

  it("makes its client list again if that goes at once", async () => {
    const { control, watchCodeOf } = await heldUp();
    control.cancel(new Error("the client goes"));
    expect(await watchCodeOf(12)).toBe(410);
  });
});

it("a watch is renewed within five seconds or not at all, however often the routes change meanwhile", async () => {
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
    ["a", "b", "n", "m"],
    ["a", "b", "m"],
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

describe("a client that was between two watches when a namespace of its subset was deleted", () => {
  it("lists again: what it had not read of that comes to no later watch", async () => {
    const { open, enforce, watchCodeOf } = await setup(ONE);
    const { control } = await open();
    control.cancel(new Error("the client goes"));
    enforce({ blue: ["a"], defaultSubset: ["n", "m"] }); // b is deleted
    expect(await watchCodeOf(10)).toBe(410);
  });

  it("and one whose watch ends just after that as well, but not later", async () => {
    for (const [ms, code] of [
      [1_000, 410],
      [31_000, 200],
    ] as const) {
      const { open, enforce, watchCodeOf, clock, sources } = await setup(ONE);
      await open();
      enforce({ blue: ["a"], defaultSubset: ["n", "m"] });
      await clock.advance(ms);
      sources[0]?.end();
      expect(await watchCodeOf(10)).toBe(code);
    }
  });
});

describe("a client that takes what it lists otherwise than what it is told, as kopf does", () => {
  it("lists again what comes to it, and is told what goes", async () => {
    const { open, enforce, settle, clock, asked } = await setup(ONE, undefined, { tellsListsApart: true });
    const { sink } = await open();
    enforce({ blue: ["a"], defaultSubset: ["b", "n", "m"] });
    await settle();
    expect(sink.text).toBe(event("b", "x", 5, "DELETED"));
    enforce({ blue: ["a", "n"], defaultSubset: ["b", "m"] });
    await clock.advance(1_000);
    expect(sink.text).toMatch(/"code":410/);
    expect(asked).toEqual(["watch from 10", "list b at 10 Exact", "watch from 10"]);
  });
});
