// Watches whose subset gains or loses namespaces: what is asked of the API server, what the client sees, and
// when it has to list again.
import { describe, expect, it } from "vitest";
import { jsonReply } from "../../../../test/support/layer-call.ts";
import {
  bookmark,
  event,
  LIST,
  MORE,
  ONE,
  pod,
  startRenewing as setup,
  toldUpTo,
  unanswered,
} from "../../../../test/support/renewing.ts";
import type { recordingSink } from "../../../../test/support/scripted-body.ts";
import type { Call } from "../../call/call.ts";

describe("a watch whose subset gains a namespace", () => {
  it("puts the newest object last, compared as numbers, over all lists", async () => {
    const items = { n: [pod("n", "x", 10), pod("n", "z", 8)], m: [pod("m", "y", 9)] };
    const { open, enforce, settle } = await setup(ONE, (call, namespace) => {
      const metadata = { resourceVersion: call.info.query.get("resourceVersion") };
      return jsonReply({ ...LIST, metadata, items: items[namespace as keyof typeof items] });
    });
    const { sink } = await open();
    enforce({ blue: ["a", "b", "n", "m"] });
    await settle();
    expect(sink.text).toBe(event("n", "z", 8) + event("m", "y", 9) + event("n", "x", 10) + toldUpTo(10));
  });

  it("goes on with what the namespace held at the version that the client had seen, and from there", async () => {
    const { open, sources, enforce, settle, asked, renewals } = await setup(ONE);
    const { sink } = await open();
    sources[0]?.write(event("a", "one", 12) + event("m", "other-subset", 13));
    enforce(MORE);
    await settle();
    expect(asked).toEqual(["watch from 10", "list n at 13 Exact", "watch from 13"]);
    expect(sources[0]?.cancelled).toBe(true);
    sources[1]?.write(event("n", "y", 14) + event("m", "other-subset", 15) + event("b", "two", 16));
    expect(sink.text).toBe(
      event("a", "one", 12) + event("n", "x", 5) + toldUpTo(13) + event("n", "y", 14) + event("b", "two", 16),
    );
    expect(sink.state).toBe("open");
    expect(await renewals()).toEqual([expect.stringMatching(/result="renewed".* 1$/)]);
  });

  it("asks from the version that it began with where nothing has come since, or from the last bookmark", async () => {
    const quiet = await setup(ONE);
    await quiet.open();
    quiet.enforce(MORE);
    await quiet.settle();
    expect(quiet.asked.slice(1)).toEqual(["list n at 10 Exact", "watch from 10"]);
    const marked = await setup(ONE);
    await marked.open();
    marked.sources[0]?.write(bookmark(40));
    marked.enforce(MORE);
    await marked.settle();
    expect(marked.asked.slice(1)).toEqual(["list n at 40 Exact", "watch from 40"]);
  });

  it("shows events that waited for their owner in their place, since it goes on before them", async () => {
    const { open, sources, enforce, settle, asked } = await setup(ONE);
    const { sink } = await open();
    sources[0]?.write(event("a", "one", 12) + event("born", "first", 13));
    enforce({ ...MORE, blue: ["a", "b", "n", "born"] });
    await settle();
    expect(asked.slice(1)).toEqual(["list n at 12 Exact", "watch from 12"]);
    sources[1]?.write(event("born", "first", 13));
    expect(sink.text).toBe(event("a", "one", 12) + event("n", "x", 5) + toldUpTo(12) + event("born", "first", 13));
  });

  it("goes on again and again, each time from where it is", async () => {
    const { open, sources, enforce, settle, asked } = await setup(ONE);
    const { sink } = await open();
    enforce(MORE);
    await settle();
    sources[1]?.write(event("n", "y", 20));
    enforce({ blue: ["a", "b", "n", "m"] });
    await settle();
    expect(asked.slice(3)).toEqual(["list m at 20 Exact", "watch from 20"]);
    expect(sink.text).toBe(event("n", "x", 5) + toldUpTo(10) + event("n", "y", 20) + event("m", "x", 5) + toldUpTo(20));
  });

  it("asks once more, for both, where another one comes meanwhile", async () => {
    const waiting: (() => void)[] = [];
    const state = await setup(ONE, async () => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return jsonReply({ ...LIST, items: [] });
    });
    const { sink } = await state.open();
    state.enforce(MORE);
    await state.settle();
    state.enforce({ blue: ["a", "b", "n", "m"] });
    for (let round = 0; round < 3; round++) {
      waiting.shift()?.();
      await state.settle();
    }
    expect(state.asked).toEqual([
      "watch from 10",
      "list n at 10 Exact",
      "watch from 10",
      "list n at 10 Exact",
      "list m at 10 Exact",
      "watch from 10",
    ]);
    expect(state.sources.map(({ cancelled }) => cancelled)).toEqual([true, true, false]);
    expect(sink.state).toBe("open");
  });

  it("asks the API server to end it when the client had asked for that", async () => {
    const { open, enforce, settle, asked, clock } = await setup(ONE);
    await open("resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=300");
    await clock.advance(100_500);
    enforce(MORE);
    await settle();
    expect(asked.at(-1)).toBe("watch from 10 199");
  });

  it("asks with the caller's own selectors", async () => {
    const { open, enforce, settle, upstream } = await setup(ONE);
    const selectors = "labelSelector=app%3Dx&fieldSelector=spec.nodeName%3Dn1";
    await open(`resourceVersion=10&allowWatchBookmarks=true&${selectors}`);
    enforce(MORE);
    await settle();
    const list = upstream.calls.find(({ target }) => target.includes("Exact"));
    expect(list?.info.query.get("labelSelector")).toBe("app=x");
    expect(list?.info.query.get("fieldSelector")).toBe("spec.nodeName=n1");
  });

  it("gives everything up when the client goes meanwhile", async () => {
    let signal: Call["signal"] | undefined;
    const state = await setup(ONE, (call) => {
      signal = call.signal;
      return unanswered(call);
    });
    const { sink, control } = await state.open();
    state.enforce(MORE);
    await state.settle();
    control.cancel(new Error("the client is gone"));
    await state.clock.advance(10_000);
    expect([signal?.aborted, sink.text, sink.state]).toEqual([true, "", "open"]);
    expect(state.asked).toEqual(["watch from 10", "list n at 10 Exact"]);
  });
});

describe("a watch whose subset loses a namespace", () => {
  it("says of what the client knows that it went, as the API server does of what leaves a selector, and goes on", async () => {
    const { open, sources, enforce, settle, asked } = await setup(ONE);
    const { sink } = await open();
    sources[0]?.write(event("b", "x", 12));
    enforce({ blue: ["a", "n"], defaultSubset: ["b", "m"] });
    await settle();
    expect(asked.slice(1)).toEqual(["list b at 12 Exact", "list n at 12 Exact", "watch from 12"]);
    sources[1]?.write(event("b", "theirs", 14) + event("a", "one", 15));
    const told = event("b", "x", 5, "DELETED") + event("n", "x", 5) + toldUpTo(12);
    expect(sink.text).toBe(event("b", "x", 12) + told + event("a", "one", 15));
  });

  it("asks for it while it moves already, and for what comes instead when that is known", async () => {
    const { open, enforce, settle, asked } = await setup(ONE);
    const { sink } = await open();
    enforce({ ...ONE, fenced: ["b"] });
    await settle();
    enforce({ blue: ["a"], defaultSubset: ["b", "n", "m"] });
    await settle();
    expect(asked.slice(1)).toEqual(["list b at 10 Exact", "watch from 10"]);
    expect(sink.text).toBe(event("b", "x", 5, "DELETED") + toldUpTo(10));
  });

  it("is told anew of one that has moved there and back meanwhile, since nothing was told of it yet", async () => {
    for (const [there, moved, type] of [
      [MORE, "n", "DELETED"],
      [{ blue: ["a"], defaultSubset: ["b", "n", "m"] }, "b", "ADDED"],
    ] as const) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const state = await setup(ONE, async () => {
        await promise;
        return jsonReply({ ...LIST, items: [pod(moved, "x", 5)] });
      });
      const { sink } = await state.open();
      state.enforce(there);
      await state.settle();
      state.enforce(ONE);
      resolve();
      await state.settle();
      const asked = [`list ${moved} at 10 Exact`, "watch from 10"];
      expect(state.asked.slice(1)).toEqual([...asked, ...asked]);
      state.sources[2]?.write(event("b", "one", 12) + event("n", "other-subset", 13));
      expect(sink.text).toBe(event(moved, "x", 5, type) + toldUpTo(10) + event("b", "one", 12));
    }
  });

  it("is shown the last events of one that was deleted, though it goes on because of another", async () => {
    const { open, sources, enforce, settle, asked } = await setup(ONE);
    const { sink } = await open();
    enforce({ blue: ["a"], defaultSubset: ["n", "m"] }); // b is deleted
    enforce({ blue: ["a", "n"], defaultSubset: ["m"] });
    await settle();
    expect(asked.slice(1)).toEqual(["list n at 10 Exact", "watch from 10"]);
    sources[1]?.write(event("b", "x", 12, "DELETED"));
    expect(sink.text).toBe(event("n", "x", 5) + toldUpTo(10) + event("b", "x", 12, "DELETED"));
  });
});

describe("a watch of namespaces", () => {
  it("asks for each by its name", async () => {
    const item = (name: string) => ({ metadata: { name, resourceVersion: "5" } });
    const { open, enforce, settle, upstream } = await setup(ONE);
    const { sink } = await open("resourceVersion=10&allowWatchBookmarks=true", "namespaces");
    upstream.onCall = ({ info }) => expect(info.path).toBe("/api/v1/namespaces");
    enforce(MORE);
    await settle();
    const list = upstream.calls.find(({ target }) => target.includes("Exact"));
    expect(list?.info.query.get("fieldSelector")).toBe("metadata.name=n");
    const namespace = { type: "ADDED", object: { kind: "Namespace", apiVersion: "v1", ...item("n") } };
    expect(sink.text).toBe(`${JSON.stringify(namespace)}\n${toldUpTo(10, "Namespace")}`);
  });
});

describe("after that its client", () => {
  const afterMove = async () => {
    const state = await setup(ONE);
    await state.open();
    state.enforce(MORE);
    await state.settle();
    state.sources[1]?.write(event("n", "y", 20));
    state.sources[1]?.end();
    return state;
  };

  it.each([
    ["goes on from a version that it was shown later", 20, ["watch from 20"], ""],
    [
      "is told again if it continues from before the move, since it may have read nothing of it",
      10,
      ["list n at 10 Exact", "watch from 10"],
      event("n", "x", 5) + toldUpTo(10),
    ],
  ])("%s", async (_, from, asked, told) => {
    const state = await afterMove();
    expect([await state.toldFrom(from), state.asked.slice(3)]).toEqual([told, asked]);
  });

  it("lists again if it continues from an event that was told, since it may know later objects", async () => {
    const { toldFrom } = await afterMove();
    await expect(toldFrom(5)).rejects.toThrow("410");
  });
});

it("a client that watched from a version that the proxy never gave out, as of a create, is told of moves since", async () => {
  const { open, enforce, toldFrom, asked, gate } = await setup(ONE);
  gate.list = Promise.resolve(jsonReply({ ...LIST, metadata: { resourceVersion: "60" } }));
  const { control } = await open("resourceVersion=50");
  control.cancel(new Error("the client goes"));
  enforce(MORE);
  expect([await toldFrom(50), asked.slice(1)]).toEqual([
    event("n", "x", 5) + toldUpTo(50),
    ["list n at 50 Exact", "watch from 50"],
  ]);
});

it("a client that takes no bookmarks is told without one", async () => {
  const { open, enforce, settle, sources } = await setup(ONE);
  const { sink } = await open("resourceVersion=10");
  enforce(MORE);
  await settle();
  sources[1]?.write(event("n", "y", 14));
  expect(sink.text).toBe(event("n", "x", 5) + event("n", "y", 14));
});

describe("a watch is ended, so that its client lists again", () => {
  const ended = async (state: Awaited<ReturnType<typeof setup>>, sink: ReturnType<typeof recordingSink>) => {
    await state.settle();
    await state.clock.advance(1_000);
    expect(sink.state).toBe("ended");
    return sink.text.replace(/.*"code":(\d+).*\n/, "$1");
  };

  it.each([
    ["too old a version", "expired", () => jsonReply({ kind: "Status", apiVersion: "v1", code: 410 }, 410)],
    ["a refusal", "failed", () => jsonReply({ kind: "Status", apiVersion: "v1", code: 403 }, 403)],
    ["a list of another version", "failed", () => jsonReply({ ...LIST, metadata: { resourceVersion: "11" } })],
    ["no list", "failed", () => jsonReply({ kind: "Pod", apiVersion: "v1" })],
    ["another encoding", "expired", () => ({ ...jsonReply(LIST), headers: { "content-type": "text/html" } })],
    ["no answer in time", "failed", unanswered],
    ["no connection", "failed", () => Promise.reject(new Error("refused"))],
  ])("where the API server has %s: %s", async (_, result, answer) => {
    const state = await setup(ONE, answer);
    const { sink } = await state.open();
    state.enforce(MORE);
    await state.settle();
    await state.clock.advance(5_000);
    expect(await ended(state, sink)).toBe("410");
    expect(await state.renewals()).toEqual([expect.stringMatching(`result="${result}".* 1$`)]);
  });

  it("where the namespace holds more than 4 MiB", async () => {
    const body = Buffer.alloc(5 * 1024 * 1024, " ");
    const state = await setup(ONE, () => ({ status: 200, headers: { "content-type": "application/json" }, body }));
    const { sink } = await state.open();
    state.enforce(MORE);
    expect(await ended(state, sink)).toBe("410");
  });

  it("where more than a few namespaces come at once", async () => {
    const many = Array.from({ length: 17 }, (_, index) => `n${index}`);
    const state = await setup({ blue: ["a"], defaultSubset: many });
    const { sink } = await state.open();
    state.enforce({ blue: ["a", ...many] });
    expect(await ended(state, sink)).toBe("410");
    expect(state.asked).toEqual(["watch from 10"]);
  });

  it("where it is not known how far the client has read: the initial events are not over", async () => {
    const state = await setup(ONE);
    const { sink } = await state.open("resourceVersion=0");
    state.sources[0]?.write(event("a", "one", 12));
    state.enforce(MORE);
    await state.settle();
    await state.clock.advance(1_000);
    expect(sink.text).toMatch(/"code":410/);
    const over = await setup(ONE);
    await over.open("resourceVersion=0");
    over.sources[0]?.write(event("a", "one", 12) + bookmark(14));
    over.enforce(MORE);
    await over.settle();
    expect(over.asked.slice(1)).toEqual(["list n at 14 Exact", "watch from 14"]);
  });
});
