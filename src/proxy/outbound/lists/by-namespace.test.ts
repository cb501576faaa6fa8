// Lists by namespace as the client and the API server see them.
import { describe, expect, it } from "vitest";
import { createApiServer } from "../../../../test/fuzz/watch-model/api-server.ts";
import { createHistory } from "../../../../test/fuzz/watch-model/history.ts";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { alwaysByNamespace, isolateDeps } from "../../../../test/support/isolate.ts";
import { callOf, jsonReply, textOf } from "../../../../test/support/layer-call.ts";
import { recordingSink } from "../../../../test/support/scripted-body.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import { MeshError } from "../../../base/errors.ts";
import { planLists } from "../../../mesh/ownership/plan-lists.ts";
import { type Call, type CallRecord, clientsRecord, withQuery } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "../isolate/isolate.ts";
import { createPlanLog } from "./plan-log.ts";

const PODS = "/api/v1/pods";
const OWN = ["a", "a-b", "b", "c", "d", "e"];
const FOREIGN = Array.from({ length: 20 }, (_, index) => `far-${index}`);
const ROUTES: Routes = { blue: OWN, defaultSubset: FOREIGN };

type Answer = (call: Call, honest: (call?: Call) => Promise<Reply>) => Promise<Reply> | Reply;

/** A request as text: "one", "b at 12", "limit 1". */
function describeCall({ info }: Call): string {
  const { query } = info;
  const namespace = info.kind === "resource" ? info.namespace : "";
  if (query.has("watch")) return `watch from ${query.get("resourceVersion")}`;
  if (query.get("limit") === "1") return "limit 1";
  return query.get("resourceVersionMatch") === "Exact" && namespace !== ""
    ? `${namespace} at ${query.get("resourceVersion")}`
    : "one";
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
  const records: CallRecord[] = [];
  const upstream = async (call: Call) => {
    asked.push(describeCall(call));
    records.push(call.record);
    return answer(call, (as = call) => apiServer.handler(as));
  };
  const handler = isolate(isolateDeps({ session, clock, plans, planLists: plan }))(upstream);
  const send = async (target = PODS, signal?: AbortSignal) => {
    const call = callOf("GET", target, signal === undefined ? {} : { signal });
    return { reply: await handler(call), record: call.record };
  };
  const keys = async ({ reply }: { readonly reply: Reply }) => {
    const { metadata, items } = JSON.parse(await textOf(reply)) as List;
    return { version: metadata.resourceVersion, keys: items.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`) };
  };
  const take = () => asked.splice(0);
  return { clock, enforce, history, asked, records, take, send, keys, plans };
}

interface List {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly { readonly metadata: { readonly namespace: string; readonly name: string } }[];
}

const HEAD = 10 + 2 * (OWN.length + FOREIGN.length);
const all = ["a-b", "a", "b", "c", "d", "e"];
const keysOf = (namespaces: readonly string[]) => namespaces.flatMap((namespace) => [`${namespace}/x`, `${namespace}/y`]);
const BY_NAMESPACE = ["limit 1", ...all.map((namespace) => `${namespace} at ${HEAD}`)];

describe("a list by namespace", () => {
  it("asks each own namespace at one version, and shows what the one list at that version shows, in its order", async () => {
    const { send, keys, asked, records } = setup();
    const { reply, record } = await send();
    expect(await keys({ reply })).toEqual({ version: String(HEAD), keys: keysOf(all) });
    expect(asked).toEqual(BY_NAMESPACE);
    expect([record.plan, record.decision, record.asked]).toEqual(["by-namespace", "narrowed", true]);
    expect(reply.headers["content-length"]).toBeUndefined();
    // Limits count them as one request, the client's.
    expect(new Set(records.map(clientsRecord))).toEqual(new Set([record]));
  });

  it("is of that version, whatever is written meanwhile", async () => {
    const world = setup((call, honest) => {
      if (describeCall(call) === `b at ${HEAD}`) {
        world.history.write("c", "late");
        world.history.remove("a", "x");
        world.history.remove("d", "x");
      }
      return honest();
    });
    expect(await world.keys(await world.send())).toEqual({ version: String(HEAD), keys: keysOf(all) });
  });

  it("carries the selectors of the caller, once the one list has shown their size", async () => {
    const selector = encodeURIComponent("metadata.name=y");
    const { send, keys, take, plans } = setup((call, honest) => {
      const query = new URLSearchParams(call.info.query);
      query.delete("shardSelector"); // as a server without the gate
      return describeCall(call) === "one" ? honest(withQuery(call, query)) : honest();
    });
    const target = `${PODS}?fieldSelector=${selector}`;
    expect((await keys(await send(target))).keys).toEqual(all.map((namespace) => `${namespace}/y`));
    expect(take()).toEqual(["one"]);
    expect((await keys(await send(target))).keys).toEqual(all.map((namespace) => `${namespace}/y`));
    expect(take()).toEqual(BY_NAMESPACE);
    expect(plans.list()[0]).toMatchObject({ plan: "by-namespace", selectorChars: { field: "metadata.name=y".length } });
  });

  it("has four requests under way at a time", async () => {
    const waiting: (() => void)[] = [];
    const { send, keys, asked } = setup(async (call, honest) => {
      if (describeCall(call).includes(" at ")) await new Promise<void>((resolve) => waiting.push(resolve));
      return honest();
    });
    const sent = send();
    await settle();
    expect(asked).toEqual(BY_NAMESPACE.slice(0, 5));
    // The first one in order is the one that makes room.
    waiting[1]?.();
    await settle();
    expect(asked).toHaveLength(5);
    waiting[0]?.();
    await settle();
    expect(asked).toHaveLength(7);
    for (const each of waiting) each();
    expect((await keys(await sent)).keys).toEqual(keysOf(all));
  });

  it("is not older than the client asks for, or exactly of its version", async () => {
    const { send, keys, take, history } = setup();
    history.write("a", "late");
    expect((await keys(await send(`${PODS}?resourceVersion=${HEAD}`))).version).toBe(String(HEAD + 1));
    take();
    expect(await keys(await send(`${PODS}?resourceVersion=${HEAD}&resourceVersionMatch=Exact`))).toEqual({
      version: String(HEAD),
      keys: keysOf(all),
    });
    expect(take()).toEqual(BY_NAMESPACE);
    await send(`${PODS}?resourceVersion=${HEAD + 5}`);
    expect(take()).toEqual(["limit 1", "one"]);
  });

  it("is not sent for a client that wants a few objects, or another page", async () => {
    const { send, asked } = setup();
    await send(`${PODS}?limit=2`);
    await send(`${PODS}?limit=500&continue=abc`);
    expect(asked.filter((one) => one.includes(" at "))).toEqual([]);
  });

  it("shows in the debug page what was chosen, and why", async () => {
    const { send, plans } = setup(undefined, planLists);
    await send();
    const [entry] = plans.list();
    expect(entry).toMatchObject({ plan: "shards", lists: { way: "one-list", why: "cheaper", items: 52 } });
  });
});

it("a collection that was measured is asked for its version in one own namespace", async () => {
  const first: unknown[] = [];
  const { send } = setup((call, honest) => {
    if (describeCall(call) === "limit 1") first.push([call.info.path, call.info.query.get("fieldSelector")]);
    return honest();
  });
  await send();
  await send();
  // Over all namespaces, so that the API server checks the caller's right to list them.
  expect(first).toEqual([
    [PODS, null],
    [PODS, "metadata.namespace=a-b"],
  ]);
});

describe("small collections", () => {
  it("are measured once, and listed as one", async () => {
    const { send, take, clock } = setup(undefined, planLists);
    await send();
    expect(take()).toEqual(["limit 1", "one"]);
    await send();
    expect(take()).toEqual(["one"]);
    await clock.advance(11 * 60_000);
    await send();
    expect(take()).toEqual(["limit 1", "one"]);
  });
});

describe("what fails before the first byte leaves the one list", () => {
  const refused = (status: number) => () => jsonReply({ kind: "Status", code: status }, status);
  const broken = () => Promise.reject(new MeshError("UPSTREAM_BROKEN", "gone"));
  const other = () => jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "9" }, items: [] });
  const status = () => jsonReply({ kind: "Status", apiVersion: "v1" });
  it.each([
    ["403, which would last", refused(403), "one"],
    ["504 of a server that is behind", refused(504), "one"],
    ["a list of another version", other, "one"],
    ["no list", status, "one"],
    ["410 of a version that is compacted", refused(410), "again"],
    ["429", refused(429), "again"],
    ["503", refused(503), "again"],
    ["a broken connection", broken, "again"],
  ] as const)("%s", async (_what, fail, next) => {
    let isBad = true;
    const { send, keys, take, clock } = setup((call, honest) =>
      isBad && describeCall(call).startsWith("d at") ? fail() : honest(),
    );
    expect((await keys(await send())).keys).toEqual(keysOf(all));
    expect(take().at(-1)).toBe("one");
    isBad = false;
    expect((await keys(await send())).keys).toEqual(keysOf(all));
    expect(take().at(-1)).toBe(next === "one" ? "one" : `e at ${HEAD}`);
    await clock.advance(11 * 60_000);
    await send();
    expect(take().at(-1)).toBe(`e at ${HEAD}`);
  });

  it.each([
    [403, "limit 1"],
    [400, "one"],
  ])("a refusal of the first request by %s", async (code, next) => {
    const { send, take } = setup((call, honest) => (describeCall(call) === "limit 1" ? refused(code)() : honest()));
    expect((await send()).reply.status).toBe(200);
    expect(take()).toEqual(["limit 1", "one"]);
    await send();
    expect(take()[0]).toBe(next);
  });

  it("ends the other requests", async () => {
    const ended: string[] = [];
    const { send, keys } = setup((call, honest) => {
      const what = describeCall(call);
      if (what.startsWith("b at")) return refused(403)();
      if (!what.startsWith("c at")) return honest();
      return new Promise((_resolve, reject) =>
        call.signal.addEventListener("abort", () => {
          ended.push(what);
          reject(new MeshError("ABORTED", "given up"));
        }),
      );
    });
    expect((await keys(await send())).keys).toEqual(keysOf(all));
    expect(ended).toEqual([`c at ${HEAD}`]);
  });
});

describe("a list by namespace of more than a megabyte", () => {
  const large = (call: Call) => ({
    ...jsonReply({}),
    body: Buffer.from(
      JSON.stringify({
        kind: "PodList",
        metadata: { resourceVersion: String(HEAD) },
        items: [{ metadata: { namespace: call.info.kind === "resource" ? call.info.namespace : "", name: "x".repeat(600_000) } }],
      }),
    ),
  });
  const isOf = (call: Call, ...namespaces: string[]) => namespaces.some((each) => describeCall(call) === `${each} at ${HEAD}`);

  it("breaks the connection if a later one fails, and the next list is one", async () => {
    const world = setup((call, honest) => {
      if (isOf(call, "a-b", "a", "b")) return large(call);
      return isOf(call, "e") ? jsonReply({ kind: "Status" }, 403) : honest();
    });
    const { reply } = await world.send();
    expect(reply.status).toBe(200);
    const sink = recordingSink();
    if (reply.body === null || reply.body instanceof Uint8Array) throw new Error("no source");
    reply.body.open(sink);
    await settle();
    expect(sink.state).toBe("aborted");
    world.take();
    await world.send();
    expect(world.take()).toEqual(["one"]);
  });

  it("ends the other requests if a later one fails", async () => {
    const ended: string[] = [];
    const { send } = setup((call, honest) => {
      if (isOf(call, "a-b", "a", "b")) return large(call);
      if (isOf(call, "c")) return jsonReply({ kind: "Status" }, 403);
      if (!isOf(call, "d", "e")) return honest();
      return new Promise((_resolve, reject) =>
        call.signal.addEventListener("abort", () => {
          ended.push(describeCall(call));
          reject(new MeshError("ABORTED", "given up"));
        }),
      );
    });
    const { reply } = await send();
    if (reply.body === null || reply.body instanceof Uint8Array) throw new Error("no source");
    reply.body.open(recordingSink());
    await settle();
    expect(ended).toEqual([`d at ${HEAD}`, `e at ${HEAD}`]);
  });

  it("asks for no more while the client reads nothing", async () => {
    const { send, asked } = setup((call, honest) => (isOf(call, "a-b", "a", "b") ? large(call) : honest()));
    await send();
    await settle();
    expect(asked).not.toContain(`e at ${HEAD}`);
  });
});

it("a client that goes away ends all requests", async () => {
  const client = new AbortController();
  let ended = 0;
  const { send } = setup(async (call, honest) => {
    if (!describeCall(call).includes(" at ")) return honest();
    return new Promise((_resolve, reject) =>
      call.signal.addEventListener("abort", () => {
        ended++;
        reject(new MeshError("ABORTED", "gone"));
      }),
    );
  });
  const sent = send(PODS, client.signal);
  await settle();
  client.abort();
  await expect(sent).rejects.toThrow("gone");
  expect(ended).toBe(4);
});

describe("while namespaces move", () => {
  /** Calls back once, when the namespace is asked for. */
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

  it("a lost namespace is left out from that moment on, and a watch from the list tells of its end", async () => {
    const world = setup(
      at("b", () => world.enforce({ ...ROUTES, blue: OWN.filter((name) => name !== "c"), defaultSubset: [...FOREIGN, "c"] })),
    );
    const list = await world.keys(await world.send());
    expect(list.keys).toEqual(keysOf(["a-b", "a", "b", "d", "e"]));
    world.take();
    await world.send(`${PODS}?watch=1&resourceVersion=${list.version}`);
    expect(world.take()).toEqual([`c at ${HEAD}`, `watch from ${HEAD}`]);
  });

  it("a namespace that is lost after it was read is still in the list, and a watch from the list tells of its end", async () => {
    const world = setup(
      at("e", () => world.enforce({ ...ROUTES, blue: OWN.filter((name) => name !== "a"), defaultSubset: [...FOREIGN, "a"] })),
    );
    const list = await world.keys(await world.send());
    expect(list.keys).toEqual(keysOf(all));
    world.take();
    await world.send(`${PODS}?watch=1&resourceVersion=${list.version}`);
    expect(world.take()).toEqual([`a at ${HEAD}`, `watch from ${HEAD}`]);
  });

  it("a gained namespace is missing in the list, and a watch from the list tells of it", async () => {
    const world = setup(
      at("b", () => world.enforce({ blue: [...OWN, "far-3"], defaultSubset: FOREIGN.filter((name) => name !== "far-3") })),
    );
    const list = await world.keys(await world.send());
    expect(list.keys).toEqual(keysOf(all));
    world.take();
    await world.send(`${PODS}?watch=1&resourceVersion=${list.version}`);
    expect(world.take()).toEqual([`far-3 at ${HEAD}`, `watch from ${HEAD}`]);
  });

  it("a namespace that was not known is told once it is granted, since nobody asked for it", async () => {
    const world = setup();
    world.history.write("born", "x");
    const list = await world.keys(await world.send());
    expect(list.keys).toEqual(keysOf(all));
    world.enforce({ ...ROUTES, blue: [...OWN, "born"] });
    world.take();
    await world.send(`${PODS}?watch=1&resourceVersion=${list.version}`);
    expect(world.take()).toEqual([`born at ${HEAD + 1}`, `watch from ${HEAD + 1}`]);
  });
});

function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
