// Tests the table in the head of resync.ts: every change of a namespace's state, for a list on its way, for a live watch, and for
// the gap between a list and its watch. The namespace always has one object.

import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply, textOf, watchCode } from "../../../test/support/layer-call.ts";
import { retained, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { createRegistry } from "../../base/metrics.ts";
import { isStatus } from "../../kube/status.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { Reply } from "../http/handler.ts";
import { isolate } from "../layers/isolate/isolate.ts";
import { createEnforcer } from "../session/enforcer.ts";

/**
 * The states of namespace n: `open` is unnamed without any rules, when every unnamed namespace is own. `shown` belongs to another
 * subset and is retained by this pod. `kept` will be own again and is retained until then.
 */
type Place = "own" | "other-subset" | "moving" | "unknown" | "open" | "shown" | "kept";

function routesFor(place: Place, version: number): Snapshot {
  const rules = place === "open" ? [] : [subset("blue")];
  const isNamed = place !== "open" && place !== "unknown";
  const isForeign = place === "other-subset" || place === "shown";
  const members = { a: [], c: [], ...(isNamed ? { n: isForeign ? [0] : [] } : {}) };
  const fenced = place === "moving" || place === "kept" ? ["n"] : [];
  const more = place === "shown" || place === "kept" ? { fenced, retained: [retained(["n"])] } : { fenced };
  return snapshot(table(rules, members, more), {
    version,
    digest: `d${version}`,
    subset: "",
  });
}

const ITEMS = [{ metadata: { namespace: "n", name: "x" } }];
const LIST = jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "100" }, items: ITEMS });
const EVENT = `${JSON.stringify({ type: "ADDED", object: { kind: "Pod", metadata: { namespace: "n", name: "x" } } })}\n`;

function start(first: Place, path: string, watchType = "application/json") {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 0;
  const move = (place: Place) => session.enforce(routesFor(place, ++version));
  move(first);
  let gate: Promise<unknown> = Promise.resolve();
  const watches: ReturnType<typeof scriptedSource>[] = [];
  const upstream = fakeUpstream(async ({ info }): Promise<Reply> => {
    if (info.kind !== "resource" || info.verb !== "watch") {
      await gate;
      return LIST;
    }
    const source = scriptedSource();
    watches.push(source);
    return { status: 200, headers: { "content-type": watchType }, body: source };
  });
  const discovery = { scopeOf: async () => "namespaced" as const };
  const handler = isolate(isolateDeps({ session, clock, random: () => 0, registry: createRegistry("proxy", "test"), discovery }))(
    upstream,
  );
  // While its only namespace moves, a list is refused and has listed nothing.
  const list = async () => {
    const reply = await handler(callOf("GET", path)).catch((error: unknown) => {
      if (!isStatus(error, "ServiceUnavailable")) throw error;
    });
    return reply && textOf(reply);
  };
  const watch = async () => {
    const asked = handler(callOf("GET", `${path}?watch=1&resourceVersion=100`));
    await clock.advance(2_000); // to wait for the owner of an unknown namespace
    const reply = await asked;
    const sink = recordingSink();
    if (reply.body !== null && !(reply.body instanceof Uint8Array)) reply.body.open(sink);
    await clock.flush();
    return { code: watchCode(reply), sink, source: watches.at(-1) };
  };
  const hang = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gate = promise;
    return () => resolve();
  };
  return { clock, move, list, watch, hang };
}

const walks = {
  async list([first, ...later]: readonly Place[], path: string) {
    const { move, list, watch, hang, clock } = start(first ?? "own", path);
    const answer = hang();
    const listed = list();
    await clock.flush();
    for (const place of later) move(place);
    answer();
    await listed;
    const { code } = await watch();
    return code === 410;
  },
  async gap([first, ...later]: readonly Place[], path: string) {
    const { move, list, watch } = start(first ?? "own", path);
    await list();
    for (const place of later) move(place);
    const { code } = await watch();
    return code === 410;
  },
  async live([first, ...later]: readonly Place[], path: string) {
    const { move, list, watch, clock } = start(first ?? "own", path);
    await list();
    const { source, sink, code } = await watch();
    if (code === 410) return true;
    source?.write(EVENT);
    await clock.advance(5_000);
    for (const place of later) move(place);
    await clock.advance(1_000);
    return sink.text.includes("Expired");
  },
};

type Walk = keyof typeof walks;
const EVERY: readonly Walk[] = ["list", "gap", "live"];
const NONE: readonly Walk[] = [];
// The objects that a list or watch left out are known after it: a list on its way has left out nothing yet.
const SEEN: readonly Walk[] = ["gap", "live"];
// An open watch shows the last events of an own namespace that goes; later watches do not.
const IDLE: readonly Walk[] = ["list", "gap"];

const CELLS: readonly (readonly [readonly Place[], readonly Walk[]])[] = [
  [["own", "own"], NONE],
  [["own", "other-subset"], EVERY],
  [["own", "moving"], EVERY],
  [["own", "unknown"], IDLE],
  [["other-subset", "own"], EVERY],
  [["other-subset", "other-subset"], NONE],
  [["other-subset", "moving"], NONE],
  [["other-subset", "unknown"], NONE],
  [["moving", "own"], EVERY],
  [["moving", "other-subset"], NONE],
  [["moving", "moving"], NONE],
  [["moving", "unknown"], NONE],
  [["own", "unknown", "own"], IDLE],
  [["own", "unknown", "other-subset"], EVERY],
  [["own", "unknown", "moving"], EVERY],
  [["own", "unknown", "unknown"], IDLE],
  [["other-subset", "unknown", "own"], EVERY],
  [["other-subset", "unknown", "other-subset"], NONE],
  [["other-subset", "unknown", "moving"], NONE],
  [["other-subset", "unknown", "unknown"], NONE],
  [["other-subset", "unknown", "open"], EVERY],
  [["moving", "unknown", "own"], EVERY],
  [["moving", "unknown", "other-subset"], NONE],
  [["moving", "unknown", "moving"], NONE],
  [["moving", "unknown", "unknown"], NONE],
  [["open", "own"], EVERY],
  [["open", "unknown"], EVERY],
  [["open", "unknown", "other-subset"], EVERY],
  [["open", "other-subset"], EVERY],
  [["open", "moving"], EVERY],
];
const SHOWN_CELLS: typeof CELLS = [
  [["own", "shown"], NONE],
  [["shown", "shown"], NONE],
  [["shown", "own"], NONE],
  [["shown", "kept", "own"], NONE],
  [["own", "shown", "kept", "own", "shown"], NONE],
  [["shown", "other-subset"], EVERY],
  [["shown", "moving"], EVERY],
  [["own", "shown", "other-subset"], EVERY],
  [["kept", "moving"], EVERY],
  [["other-subset", "shown"], EVERY],
  [["moving", "kept"], EVERY],
  [["shown", "unknown"], IDLE],
  [["shown", "unknown", "own"], IDLE],
  [["shown", "unknown", "shown"], IDLE],
  [["shown", "unknown", "other-subset"], EVERY],
  [["other-subset", "unknown", "shown"], EVERY],
  [["own", "unknown", "shown"], IDLE],
];
const UNKNOWN_CELLS: typeof CELLS = [
  [["unknown", "own"], SEEN],
  [["unknown", "unknown", "own"], SEEN],
  [["unknown", "other-subset"], NONE],
  [["unknown", "shown"], SEEN],
  [["unknown", "moving"], NONE],
  [["unknown", "unknown"], NONE],
];

const told = async (path: string, places: readonly Place[]) => {
  const results = await Promise.all(EVERY.map(async (walk) => ((await walks[walk](places, path)) ? [walk] : [])));
  return results.flat();
};
const named = (cells: typeof CELLS) => cells.map(([places, walk]) => [places.join(" > "), places, walk] as const);

describe("a change of a namespace's state makes a client of all namespaces list again", () => {
  it.each(named([...CELLS, ...SHOWN_CELLS, ...UNKNOWN_CELLS, [["open", "shown"], EVERY]]))("%s", async (_, places, expected) => {
    expect(await told("/api/v1/pods", places)).toEqual(expected);
  });
});

// The end of all rules for unnamed namespaces is not in a cell of its own: other subsets' lists of one are held, see
// isolate.test.ts.
describe("a change of a namespace's state makes a client of that namespace list again", () => {
  const isAlone = ([places]: (typeof CELLS)[number]) => places.join() !== "open,own";
  // A moving namespace cannot be listed, and no watch can continue from an old list of it. A live watch ends by the table alone.
  const alone = (places: readonly Place[], expected: readonly Walk[]) => {
    if (places[0] === "moving") return EVERY;
    if (places.at(-1) !== "moving") return expected;
    return EVERY.filter((walk) => walk !== "live" || expected.includes("live"));
  };
  it.each(named([...CELLS.filter(isAlone), ...SHOWN_CELLS]))("%s", async (_, places, expected) => {
    expect(await told("/api/v1/namespaces/n/pods", places)).toEqual(alone(places, expected));
  });
  it.each(["own", "shown"] as const)("continues when the namespace is named as own: %s", async (place) => {
    expect(await told("/api/v1/namespaces/n/pods", ["open", place])).toEqual([]);
  });
});

describe("a namespace that is created again", () => {
  it("makes watches of namespaces list again, since its ADDED was dropped while another subset owned it", async () => {
    const path = "/api/v1/namespaces";
    expect(await told(path, ["other-subset", "unknown", "own"])).toEqual(EVERY);
    expect(await told(path, ["own", "unknown", "other-subset"])).toEqual(EVERY);
  });
  it("makes clients list again hours later if it was excluded by name", async () => {
    const { list, watch, move, clock } = start("other-subset", "/api/v1/pods");
    await list();
    move("unknown");
    await clock.advance(3_600_000);
    move("unknown");
    move("own");
    expect((await watch()).code).toBe(410);
  });
});

it("an unreadable watch breaks off once its unnamed namespace is no longer shown", async () => {
  for (const path of ["/api/v1/pods", "/api/v1/namespaces/n/pods"]) {
    const { list, watch, move } = start("open", path, "application/cbor");
    await list();
    const { sink } = await watch();
    expect(sink.state).toBe("open");
    move("unknown");
    expect(sink.state).toBe("aborted");
  }
});
