// Watches of a pod that has just written, while its subset loses a namespace: the client sees the versions that it wrote.
import { describe, expect, it } from "vitest";
import { jsonReply } from "../../../../test/support/layer-call.ts";
import { event, LIST, type MORE, ONE, pod, startRenewing, toldUpTo } from "../../../../test/support/renewing.ts";
import { ANSWER_MS, EVENT_MS } from "../../filter/own-writes.ts";

/** The subset has lost b. */
const LOST: typeof MORE = { blue: ["a"], defaultSubset: ["b", "n", "m"] };

async function setup() {
  const state = await startRenewing(ONE, (call, namespace) => {
    const version = call.info.query.get("resourceVersion");
    return jsonReply({ ...LIST, metadata: { resourceVersion: version }, items: [pod(namespace, "x", Number(version))] });
  });
  const { sink, control } = await state.open();
  return { ...state, sink, control };
}

describe("a watch of a pod that has just written", () => {
  it("shows the events of its last writes, and only then that the namespace is lost", async () => {
    const { clock, sources, enforce, settle, asked, sink, write } = await setup();
    await write("b");
    enforce(LOST);
    await settle();
    sources[0]?.write(event("b", "x", 12, "MODIFIED") + event("m", "other-subset", 13));
    expect(sink.text).toBe(event("b", "x", 12, "MODIFIED"));
    expect(asked).toEqual(["watch from 10"]);
    await clock.advance(EVENT_MS);
    expect(asked.slice(1)).toEqual(["list b at 13 Exact", "watch from 13"]);
    expect(sink.text).toBe(event("b", "x", 12, "MODIFIED") + event("b", "x", 13, "DELETED") + toldUpTo(13));
    sources[1]?.write(event("b", "x", 14, "MODIFIED"));
    expect(sink.text).not.toContain("14");
  });

  it("waits for a write in flight, for a second at most", async () => {
    const { clock, enforce, asked, beginWrite } = await setup();
    const end = beginWrite();
    enforce(LOST);
    await clock.advance(ANSWER_MS - EVENT_MS);
    end();
    await clock.advance(EVENT_MS - 1);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    expect(asked.slice(1)).toEqual(["list b at 10 Exact", "watch from 10"]);
    beginWrite();
    enforce({ blue: [], defaultSubset: ["a", "b", "n", "m"] });
    await clock.advance(ANSWER_MS + EVENT_MS - 1);
    expect(asked).toHaveLength(3);
    await clock.advance(1);
    expect(asked).toHaveLength(5);
  });

  it("tells the loss to a client that breaks off before, whatever version it has seen by then", async () => {
    const { sources, enforce, settle, control, write, toldFrom } = await setup();
    await write("b");
    enforce(LOST);
    await settle();
    sources[0]?.write(event("b", "x", 12, "MODIFIED"));
    control.cancel(new Error("the connection is broken"));
    expect(await toldFrom(12)).toBe(event("b", "x", 12, "DELETED") + toldUpTo(12));
  });

  it("does not wait for a gained namespace, nor long after its last write", async () => {
    const { clock, enforce, settle, asked, write } = await setup();
    await write("b");
    enforce({ blue: ["a", "b", "n"], defaultSubset: ["m"] });
    await settle();
    expect(asked.slice(1)).toEqual(["list n at 10 Exact", "watch from 10"]);
    await clock.advance(10_000);
    enforce(LOST);
    await settle();
    expect(asked.slice(3)).toEqual(["list b at 10 Exact", "list n at 10 Exact", "watch from 10"]);
  });

  it("ends with its timers when the client goes meanwhile", async () => {
    const { clock, enforce, settle, control, write } = await setup();
    await write("b");
    const { pending } = clock;
    enforce(LOST);
    await settle();
    control.cancel(new Error("the client is gone"));
    expect(clock.pending).toBe(pending);
  });
});
