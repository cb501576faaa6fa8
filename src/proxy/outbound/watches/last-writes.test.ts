// Watches of a pod that has just written to a namespace which its subset then loses: the client sees the versions that it wrote.
import { describe, expect, it } from "vitest";
import { jsonReply } from "../../../../test/support/layer-call.ts";
import { event, LIST, ONE, pod, startRenewing, toldUpTo } from "../../../../test/support/renewing.ts";
import type { Routes } from "../../../../test/support/test-routes.ts";
import { EVENT_MS, MAX_BEHIND_MS } from "../../session/read-routes.ts";

/** The subset has lost b. */
const LOST: Routes = { blue: ["a"], defaultSubset: ["b", "n", "m"] };
/** The subset has lost b, and z is new. */
const LOST_AND_BORN: Routes = { ...LOST, blue: ["a", "z"] };

async function setup(first = ONE) {
  const state = await startRenewing(first, (call, namespace) => {
    const version = call.info.query.get("resourceVersion");
    return jsonReply({ ...LIST, metadata: { resourceVersion: version }, items: [pod(namespace, "x", Number(version))] });
  });
  return { ...state, ...(await state.open()) };
}

describe("a watch of a pod that has just written to a namespace", () => {
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

  it("waits for a write in flight, for 1.5 s at most", async () => {
    const { clock, enforce, asked, beginWrite } = await setup();
    const end = beginWrite("b");
    enforce(LOST);
    await clock.advance(500);
    end();
    await clock.advance(EVENT_MS - 1);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    expect(asked.slice(1)).toEqual(["list b at 10 Exact", "watch from 10"]);
    beginWrite("a");
    enforce({ blue: [], defaultSubset: ["a", "b", "n", "m"] });
    await clock.advance(MAX_BEHIND_MS - 1);
    expect(asked).toHaveLength(3);
    await clock.advance(1);
    expect(asked).toHaveLength(5);
  });

  it("is told of the loss if it breaks off before, whatever version it has seen by then", async () => {
    const { clock, sources, enforce, settle, control, write, toldFrom } = await setup();
    await write("b");
    enforce(LOST);
    await settle();
    sources[0]?.write(event("b", "x", 12, "MODIFIED"));
    control.cancel(new Error("the connection is broken"));
    await clock.advance(EVENT_MS);
    expect(await toldFrom(12)).toBe(event("b", "x", 12, "DELETED") + toldUpTo(12));
  });

  it("does not wait for a gain, nor for a namespace without a write just before", async () => {
    const { clock, enforce, settle, asked, write } = await setup();
    await write("a");
    await write("b");
    enforce({ blue: ["a", "b", "n"], defaultSubset: ["m"] });
    await settle();
    expect(asked.slice(1)).toEqual(["list n at 10 Exact", "watch from 10"]);
    await clock.advance(EVENT_MS);
    await write("a");
    enforce(LOST);
    await settle();
    expect(asked.slice(3)).toEqual(["list b at 10 Exact", "list n at 10 Exact", "watch from 10"]);
  });

  it.each([
    ["for the first time", "before its first event", ONE],
    ["for the first time", "after its first event", ONE],
    ["once more", "before its first event", { ...ONE, blue: ["a", "b", "z"] }],
    ["once more", "after its first event", { ...ONE, blue: ["a", "b", "z"] }],
  ])("misses nothing of a namespace that is created meanwhile, %s, and granted %s", async (_, when, first) => {
    const { clock, sources, enforce, settle, asked, sink, write } = await setup(first);
    enforce(ONE);
    await write("b");
    enforce(LOST);
    await settle();
    if (when === "after its first event") sources[0]?.write(event("z", "y", 12));
    enforce(LOST_AND_BORN);
    await settle();
    if (when === "before its first event") sources[0]?.write(event("z", "y", 12));
    await clock.advance(EVENT_MS);
    const continuesFrom = Number(/^watch from (\d+)$/.exec(asked.at(-1) ?? "")?.[1]);
    if (continuesFrom < 12) sources.at(-1)?.write(event("z", "y", 12));
    expect(sink.text).toContain('"namespace":"z"');
  });
});
