// Walks the table in the head of resync.ts: every way in which a namespace can come to stand, for a list that is on its way, for a
// live watch, and for the gap between a list and its watch. An object of the namespace is there all the time.
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { callOf, fakeUpstream, jsonReply, textOf, watchCode } from "../../../test/support/layer-call.ts";
import { shown, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { createRegistry } from "../../base/metrics.ts";
import { isStatus } from "../../kube/status.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { Reply } from "../pipeline/handler.ts";
import { isolate } from "../pipeline/isolate/isolate.ts";
import { createEnforcer } from "./enforcer.ts";

/**
 * How n stands: `open` is unnamed while there are no rules, so that whatever is unnamed is ours. `shown` is another's, and this
 * pod goes on showing it; `kept` is about to be ours again, and shown meanwhile.
 */
type Place = "mine" | "foreign" | "moving" | "unknown" | "open" | "shown" | "kept";

function routesFor(place: Place, version: number): Snapshot {
  const rules = place === "open" ? [] : [subset("blue")];
  const isNamed = place !== "open" && place !== "unknown";
  const isForeign = place === "foreign" || place === "shown";
  const members = { a: [], c: [], ...(isNamed ? { n: isForeign ? [0] : [] } : {}) };
  const fenced = place === "moving" || place === "kept" ? ["n"] : [];
  const more = place === "shown" || place === "kept" ? { fenced, shown: [shown(["n"])] } : { fenced };
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
  const handler = isolate({ session, clock, random: () => 0, registry: createRegistry("proxy", "test"), discovery })(upstream);
  // While its one namespace moves, a list is refused and has listed nothing.
  const list = async () => {
    const reply = await handler(callOf("GET", path)).catch((error: unknown) => {
      if (!isStatus(error, "ServiceUnavailable")) throw error;
    });
    return reply && textOf(reply);
  };
  const watch = async () => {
    const asked = handler(callOf("GET", `${path}?watch=1&resourceVersion=100`));
    await clock.advance(2_000); // for the owner of what nobody knows
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
    const { move, list, watch, hang, clock } = start(first ?? "mine", path);
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
    const { move, list, watch } = start(first ?? "mine", path);
    await list();
    for (const place of later) move(place);
    const { code } = await watch();
    return code === 410;
  },
  async live([first, ...later]: readonly Place[], path: string) {
    const { move, list, watch, clock } = start(first ?? "mine", path);
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
// What was left out of a list or watch is known once it has been: a list on its way has left out nothing yet.
const SEEN: readonly Walk[] = ["gap", "live"];
// The last events of one of ours that goes are shown to whoever watches then, and hidden from later watches.
const IDLE: readonly Walk[] = ["list", "gap"];

const CELLS: readonly (readonly [readonly Place[], readonly Walk[]])[] = [
  [["mine", "mine"], NONE],
  [["mine", "foreign"], EVERY],
  [["mine", "moving"], EVERY],
  [["mine", "unknown"], IDLE],
  [["foreign", "mine"], EVERY],
  [["foreign", "foreign"], NONE],
  [["foreign", "moving"], NONE],
  [["foreign", "unknown"], NONE],
  [["moving", "mine"], EVERY],
  [["moving", "foreign"], NONE],
  [["moving", "moving"], NONE],
  [["moving", "unknown"], NONE],
  [["mine", "unknown", "mine"], IDLE],
  [["mine", "unknown", "foreign"], EVERY],
  [["mine", "unknown", "moving"], EVERY],
  [["mine", "unknown", "unknown"], IDLE],
  [["foreign", "unknown", "mine"], EVERY],
  [["foreign", "unknown", "foreign"], NONE],
  [["foreign", "unknown", "moving"], NONE],
  [["foreign", "unknown", "unknown"], NONE],
  [["foreign", "unknown", "open"], EVERY],
  [["moving", "unknown", "mine"], EVERY],
  [["moving", "unknown", "foreign"], NONE],
  [["moving", "unknown", "moving"], NONE],
  [["moving", "unknown", "unknown"], NONE],
  [["open", "mine"], EVERY],
  [["open", "unknown"], EVERY],
  [["open", "unknown", "foreign"], EVERY],
  [["open", "foreign"], EVERY],
  [["open", "moving"], EVERY],
];
const SHOWN_CELLS: typeof CELLS = [
  [["mine", "shown"], NONE],
  [["shown", "shown"], NONE],
  [["shown", "mine"], NONE],
  [["shown", "kept", "mine"], NONE],
  [["mine", "shown", "kept", "mine", "shown"], NONE],
  [["shown", "foreign"], EVERY],
  [["shown", "moving"], EVERY],
  [["mine", "shown", "foreign"], EVERY],
  [["kept", "moving"], EVERY],
  [["foreign", "shown"], EVERY],
  [["moving", "kept"], EVERY],
  [["shown", "unknown"], IDLE],
  [["shown", "unknown", "mine"], IDLE],
  [["shown", "unknown", "shown"], IDLE],
  [["shown", "unknown", "foreign"], EVERY],
  [["foreign", "unknown", "shown"], EVERY],
  [["mine", "unknown", "shown"], IDLE],
];
const UNKNOWN_CELLS: typeof CELLS = [
  [["unknown", "mine"], SEEN],
  [["unknown", "unknown", "mine"], SEEN],
  [["unknown", "foreign"], NONE],
  [["unknown", "shown"], SEEN],
  [["unknown", "moving"], NONE],
  [["unknown", "unknown"], NONE],
];

const told = async (path: string, places: readonly Place[]) => {
  const results = await Promise.all(EVERY.map(async (walk) => ((await walks[walk](places, path)) ? [walk] : [])));
  return results.flat();
};
const named = (cells: typeof CELLS) => cells.map(([places, walk]) => [places.join(" > "), places, walk] as const);

describe("a namespace that comes to stand so makes a client of all namespaces list again", () => {
  it.each(named([...CELLS, ...SHOWN_CELLS, ...UNKNOWN_CELLS, [["open", "shown"], EVERY]]))("%s", async (_, places, expected) => {
    expect(await told("/api/v1/pods", places)).toEqual(expected);
  });
});

// The end of all rules for unnamed namespaces is no cell of a single one: others' lists of it are held, see isolate.test.ts.
describe("and a client of the namespace alone", () => {
  const isAlone = ([places]: (typeof CELLS)[number]) => places.join() !== "open,mine";
  // What moves cannot be listed, and no watch can go on from an old list of it. One that is live ends by the table alone.
  const alone = (places: readonly Place[], expected: readonly Walk[]) => {
    if (places[0] === "moving") return EVERY;
    if (places.at(-1) !== "moving") return expected;
    return EVERY.filter((walk) => walk !== "live" || expected.includes("live"));
  };
  it.each(named([...CELLS.filter(isAlone), ...SHOWN_CELLS]))("%s", async (_, places, expected) => {
    expect(await told("/api/v1/namespaces/n/pods", places)).toEqual(alone(places, expected));
  });
  it.each(["mine", "shown"] as const)("which is named as ours goes on: %s", async (place) => {
    expect(await told("/api/v1/namespaces/n/pods", ["open", place])).toEqual([]);
  });
});

describe("a namespace that is born again", () => {
  it("is told to watchers of namespaces, whose ADDED was dropped while it was another's", async () => {
    const path = "/api/v1/namespaces";
    expect(await told(path, ["foreign", "unknown", "mine"])).toEqual(EVERY);
    expect(await told(path, ["mine", "unknown", "foreign"])).toEqual(EVERY);
  });
  it("is told hours later where it had been excluded by name", async () => {
    const { list, watch, move, clock } = start("foreign", "/api/v1/pods");
    await list();
    move("unknown");
    await clock.advance(3_600_000);
    move("unknown");
    move("mine");
    expect((await watch()).code).toBe(410);
  });
});

it("a watch that cannot be read breaks off once its unnamed namespace is shown no more", async () => {
  for (const path of ["/api/v1/pods", "/api/v1/namespaces/n/pods"]) {
    const { list, watch, move } = start("open", path, "application/cbor");
    await list();
    const { sink } = await watch();
    expect(sink.state).toBe("open");
    move("unknown");
    expect(sink.state).toBe("aborted");
  }
});
