// Watches that begin with lists by namespace, as the client and the API server see them.
import { describe, expect, it } from "vitest";
import type { WireEvent } from "../../../../test/fuzz/watch-model/answers.ts";
import { createApiServer } from "../../../../test/fuzz/watch-model/api-server.ts";
import { createHistory } from "../../../../test/fuzz/watch-model/history.ts";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { alwaysByNamespace, isolateDeps } from "../../../../test/support/isolate.ts";
import { callOf, jsonReply } from "../../../../test/support/layer-call.ts";
import { type RecordingSink, recordingSink } from "../../../../test/support/scripted-body.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import { MeshError } from "../../../base/errors.ts";
import { planLists } from "../../../mesh/ownership/plan-lists.ts";
import type { Call } from "../../call/call.ts";
import type { SourceControl } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "../isolate/isolate.ts";
import { createPlanLog } from "../lists/plan-log.ts";

const PODS = "/api/v1/pods";
const WATCH_LIST = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
/** In the order of the API server's keys. */
const OWN = ["a-b", "a", "b", "c", "d", "e"];
const FOREIGN = Array.from({ length: 20 }, (_, index) => `far-${index}`);
const ROUTES: Routes = { blue: OWN, defaultSubset: FOREIGN };
const HEAD = 10 + 2 * (OWN.length + FOREIGN.length);
const LISTS = ["limit 1", ...OWN.map((namespace) => `${namespace} at ${HEAD}`)];
const added = (...namespaces: string[]) => namespaces.flatMap((each) => [`ADDED ${each}/x`, `ADDED ${each}/y`]);
const end = (version: number) => `BOOKMARK ${version} initial-events-end`;

type Answer = (call: Call, honest: () => Promise<Reply>) => Promise<Reply> | Reply;

/** A request as text: "b at 12", "limit 1", "watch from 12", "whole watch". */
function describeCall({ info }: Call): string {
  const { query } = info;
  const version = query.get("resourceVersion");
  if (query.has("watch"))
    return (version ?? "0") === "0" || query.has("sendInitialEvents") ? "whole watch" : `watch from ${version}`;
  return query.get("limit") === "1" ? "limit 1" : `${info.kind === "resource" ? info.namespace : ""} at ${version}`;
}

function describeEvent({ type, object: { code, metadata } }: WireEvent): string {
  if (type === "ERROR") return `ERROR ${code}`;
  const { namespace, name, resourceVersion, annotations = {} } = metadata;
  if (type !== "BOOKMARK") return `${type} ${namespace}/${name}`;
  return `BOOKMARK ${resourceVersion}${annotations["k8s.io/initial-events-end"] === "true" ? " initial-events-end" : ""}`;
}

function setup(answer: Answer = (_call, honest) => honest(), plan: typeof planLists = alwaysByNamespace) {
  const clock = createFakeClock();
  const session = createEnforcer();
  const history = createHistory("v1", "Pod", 10);
  const apiServer = createApiServer({ pods: history });
  const plans = createPlanLog(clock);
  let version = 1;
  const enforce = (of: Routes) => session.enforce(routes(version++, of));
  enforce(ROUTES);
  for (const namespace of [...OWN, ...FOREIGN]) for (const name of ["x", "y"]) history.write(namespace, name);
  const asked: string[] = [];
  const handler = isolate(isolateDeps({ session, clock, plans, planLists: plan }))(async (call) => {
    asked.push(describeCall(call));
    return answer(call, () => apiServer.handler(call));
  });
  const open = async (query = WATCH_LIST, headers: Record<string, string> = {}, sink = recordingSink(), signal?: AbortSignal) => {
    const call = callOf("GET", `${PODS}?watch=1&${query}`, signal === undefined ? { headers } : { headers, signal });
    const reply = await handler(call);
    if (reply.body === null || reply.body instanceof Uint8Array) throw new Error(`no stream: ${reply.status}`);
    const control: SourceControl = reply.body.open(sink);
    await settle();
    return { reply, record: call.record, sink, control };
  };
  const deliver = async () => {
    await settle();
    apiServer.deliver(apiServer.openWatches - 1, 1_000);
  };
  return { apiServer, enforce, history, asked, take: () => asked.splice(0), open, deliver, plans };
}

function eventsOf({ text }: RecordingSink): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => describeEvent(JSON.parse(line) as WireEvent));
}

describe("a watch that begins with lists by namespace", () => {
  it("shows what the own namespaces held at one version, the end of that, and what comes later", async () => {
    const { open, asked, deliver, history, plans } = setup();
    const { reply, record, sink } = await open();
    expect(eventsOf(sink)).toEqual([...added(...OWN), end(HEAD)]);
    expect(asked).toEqual([...LISTS, `watch from ${HEAD}`]);
    history.write("far-1", "new");
    history.write("a", "new");
    history.remove("b", "x");
    await deliver();
    expect(eventsOf(sink).slice(13)).toEqual(["ADDED a/new", "DELETED b/x"]);
    expect([reply.status, reply.headers["content-type"], sink.state]).toEqual([200, "application/json", "open"]);
    expect([record.plan, record.decision, record.asked]).toEqual(["by-namespace", "narrowed", true]);
    expect(plans.list()[0]).toMatchObject({ verb: "watch", lists: { way: "by-namespace" } });
  });

  it("loses nothing of what happens meanwhile", async () => {
    const world = setup((call, honest) => {
      if (describeCall(call) === `b at ${HEAD}`) {
        world.history.write("c", "late");
        world.history.remove("a", "x");
      }
      return honest();
    });
    const { sink } = await world.open();
    await world.deliver();
    expect(eventsOf(sink)).toEqual([...added(...OWN), end(HEAD), "ADDED c/late", "DELETED a/x"]);
  });

  it("has no bookmark for a client that takes none", async () => {
    const { open } = setup();
    for (const bookmarks of ["", "&allowWatchBookmarks=false"]) {
      const { sink } = await open(`sendInitialEvents=true&resourceVersionMatch=NotOlderThan${bookmarks}`);
      expect(eventsOf(sink)).toEqual(added(...OWN));
    }
  });

  it.each([
    ["any version", `${WATCH_LIST}&resourceVersion=0`],
    ["a version that is old enough", `${WATCH_LIST}&resourceVersion=${HEAD - 5}`],
    ["the newest version, as before sendInitialEvents", "allowWatchBookmarks=true"],
    ["any version, as before sendInitialEvents", "allowWatchBookmarks=true&resourceVersion=0"],
  ])("may ask for %s", async (_what, query) => {
    const { open, asked } = setup();
    const { sink } = await open(query);
    expect(eventsOf(sink)).toEqual([...added(...OWN), end(HEAD)]);
    expect(asked).toEqual([...LISTS, `watch from ${HEAD}`]);
  });

  it("gives the watch that follows the rest of the time, and the caller's selectors", async () => {
    let target = "";
    const { open } = setup((call, honest) => {
      if (describeCall(call).startsWith("watch from")) target = call.target;
      return honest();
    });
    await open(`${WATCH_LIST}&timeoutSeconds=300`);
    const { searchParams } = new URL(target, "http://localhost");
    searchParams.delete("shardSelector");
    expect(Object.fromEntries(searchParams)).toEqual({
      watch: "1",
      allowWatchBookmarks: "true",
      resourceVersion: String(HEAD),
      timeoutSeconds: "300",
    });
  });

  it("can be of metadata alone", async () => {
    const { open } = setup();
    const { sink } = await open(WATCH_LIST, { accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1" });
    const kinds = sink.text.split("\n").flatMap((line) => /"kind":"([^"]+)"/.exec(line)?.[1] ?? []);
    expect(new Set(kinds)).toEqual(new Set(["PartialObjectMetadata"]));
    expect(kinds).toHaveLength(13);
  });

  it("asks for no more while the client reads nothing", async () => {
    const { open, asked } = setup((call, honest) => (/^(a|a-b|b) at/.test(describeCall(call)) ? large(call) : honest()));
    const sink = recordingSink();
    sink.full = true;
    const { control } = await open(WATCH_LIST, {}, sink);
    expect(asked).not.toContain(`watch from ${HEAD}`);
    for (let namespace = 0; namespace < OWN.length; namespace++) {
      control.resume();
      await settle();
    }
    expect(asked.at(-1)).toBe(`watch from ${HEAD}`);
    expect(eventsOf(sink).at(-1)).toBe(end(HEAD));
  });
});

describe("the one watch is sent", () => {
  it.each([
    ["for an earlier version than the client accepts", `${WATCH_LIST}&resourceVersion=${HEAD + 5}`, ["limit 1"]],
    ["with a selector whose effect is not known", `${WATCH_LIST}&labelSelector=a%3Db`, []],
    ["for another match", "sendInitialEvents=true&resourceVersionMatch=Exact", []],
    ["without a match", "sendInitialEvents=true", []],
    ["for a page", `${WATCH_LIST}&continue=x`, []],
    ["if the client wants no initial events", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan", []],
  ])("%s", async (_what, query, before) => {
    const { open, asked } = setup();
    await open(query);
    expect(asked).toEqual([...before, "whole watch"]);
  });

  it("for Tables", async () => {
    const { open, asked } = setup();
    await open(WATCH_LIST, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" });
    expect(asked).toEqual(["whole watch"]);
  });

  it("for a small collection, after one look at its size", async () => {
    const { open, take } = setup(undefined, planLists);
    await open();
    expect(take()).toEqual(["limit 1", "whole watch"]);
    await open();
    expect(take()).toEqual(["whole watch"]);
  });

  it.each([
    ["403", () => jsonReply({ kind: "Status", code: 403 }, 403)],
    ["410", () => jsonReply({ kind: "Status", code: 410 }, 410)],
    ["a broken connection", () => Promise.reject(new MeshError("UPSTREAM_BROKEN", "gone"))],
    ["another version", () => jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "9" }, items: [] })],
  ])("if a list fails before the first byte: %s", async (_what, fail) => {
    const { open, asked, deliver } = setup((call, honest) => (describeCall(call).startsWith("d at") ? fail() : honest()));
    const { sink } = await open();
    await deliver();
    expect(asked.at(-1)).toBe("whole watch");
    expect(eventsOf(sink)).toEqual([...added(...OWN), end(HEAD)]);
  });

  it("with the routes of that moment, if they have changed during a list that failed", async () => {
    const world = setup((call, honest) => {
      if (!describeCall(call).startsWith("d at")) return honest();
      world.enforce({ blue: [...OWN, "far-3"], defaultSubset: FOREIGN.filter((name) => name !== "far-3") });
      return jsonReply({ kind: "Status", code: 503 }, 503);
    });
    const { sink } = await world.open();
    await world.deliver();
    expect(eventsOf(sink)).toEqual([...added(...OWN, "far-3"), end(HEAD)]);
  });
});

describe("what fails after the first byte breaks the connection", () => {
  it("a list", async () => {
    const { open } = setup((call, honest) => {
      if (/^(a|a-b|b) at/.test(describeCall(call))) return large(call);
      return describeCall(call).startsWith("e at") ? jsonReply({ kind: "Status" }, 403) : honest();
    });
    const { reply, sink } = await open();
    expect([reply.status, sink.state]).toEqual([200, "aborted"]);
    expect(sink.text).not.toContain("initial-events-end");
  });

  it("the watch that follows", async () => {
    const { open } = setup((call, honest) =>
      describeCall(call).startsWith("watch from") ? jsonReply({ kind: "Status" }, 503) : honest(),
    );
    const { sink } = await open();
    expect(eventsOf(sink)).toEqual([...added(...OWN), end(HEAD)]);
    expect(sink.state).toBe("aborted");
  });
});

describe("a client that goes away", () => {
  it("ends the lists", async () => {
    const client = new AbortController();
    let ended = 0;
    const { open } = setup((call, honest) => {
      if (!describeCall(call).includes(" at ")) return honest();
      return new Promise((_resolve, reject) =>
        call.signal.addEventListener("abort", () => {
          ended++;
          reject(new MeshError("ABORTED", "gone"));
        }),
      );
    });
    const sent = open(WATCH_LIST, {}, recordingSink(), client.signal);
    await settle();
    client.abort();
    await expect(sent).rejects.toThrow("gone");
    expect(ended).toBe(4);
  });

  it("ends the watch that follows", async () => {
    const { open, apiServer } = setup();
    const { control } = await open();
    expect(apiServer.openWatches).toBe(1);
    control.cancel(new Error("gone"));
    expect(apiServer.openWatches).toBe(0);
  });
});

describe("while namespaces move", () => {
  const at = (namespace: string, then: () => void): Answer => {
    let isDone = false;
    return (call, honest) => {
      if (describeCall(call) === `${namespace} at ${HEAD}` && !isDone) {
        isDone = true;
        then();
      }
      return honest();
    };
  };

  it("a lost namespace is left out from that moment on, and told as gone after the initial events", async () => {
    const world = setup(
      at("d", () => world.enforce({ ...ROUTES, blue: OWN.filter((name) => name !== "a"), defaultSubset: [...FOREIGN, "a"] })),
    );
    const { sink } = await world.open();
    const events = eventsOf(sink);
    const initial = events.slice(0, events.indexOf(end(HEAD)));
    expect(new Set([...initial, ...added("a")])).toEqual(new Set(added(...OWN)));
    expect(events.slice(initial.length + 1)).toEqual(["DELETED a/x", "DELETED a/y", `BOOKMARK ${HEAD}`]);
    expect(world.asked.slice(LISTS.length)).toEqual([`a at ${HEAD}`, `watch from ${HEAD}`]);
  });

  it("a gained namespace is told after the initial events", async () => {
    const world = setup(
      at("b", () => world.enforce({ blue: [...OWN, "far-3"], defaultSubset: FOREIGN.filter((name) => name !== "far-3") })),
    );
    const { sink } = await world.open();
    expect(eventsOf(sink)).toEqual([...added(...OWN), end(HEAD), ...added("far-3"), `BOOKMARK ${HEAD}`]);
  });

  it("a namespace that was not known is told once it is granted, since nobody asked for it", async () => {
    const world = setup();
    world.history.write("born", "x");
    const { sink } = await world.open();
    world.enforce({ ...ROUTES, blue: [...OWN, "born"] });
    await settle();
    const head = HEAD + 1;
    expect(eventsOf(sink)).toEqual([...added(...OWN), end(head), "ADDED born/x", `BOOKMARK ${head}`]);
  });
});

function large(call: Call): Reply {
  const namespace = call.info.kind === "resource" ? call.info.namespace : "";
  const items = [{ metadata: { namespace, name: "x".repeat(600_000), resourceVersion: "1" } }];
  return jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: String(HEAD) }, items });
}

function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
