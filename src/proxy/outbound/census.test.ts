import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { callOf, jsonReply } from "../../../test/support/layer-call.ts";
import { silentLogger } from "../../base/log.ts";
import { StatusError } from "../../kube/status.ts";
import { type Call, createRecord, noteAnswerTime } from "../call/call.ts";
import type { Reply } from "../http/handler.ts";
import { COUNT_EVERY_MS, census } from "./census.ts";

const DELETE = "/api/v1/namespaces/a/pods/p";
const podList = (...namespaces: string[]) =>
  jsonReply({
    kind: "PartialObjectMetadataList",
    apiVersion: "meta.k8s.io/v1",
    metadata: { resourceVersion: "7" },
    items: namespaces.map((namespace, at) => ({ metadata: { namespace, name: `p-${at}` } })),
  });

function setUp(answer: (target: string) => Reply | Promise<Reply> = () => podList("a", "a", "b")) {
  const clock = createFakeClock();
  const lists: Call[] = [];
  const layer = census({ policies: { countsObjects: (resource) => resource === "pods" }, clock, log: silentLogger() });
  const handler = layer(async (call) => {
    if (call.method !== "GET" || !call.target.includes("resourceVersion=0")) return jsonReply({ kind: "Status" });
    lists.push(call);
    return answer(call.target);
  });
  const send = async (method: string, target: string) => {
    const call = callOf(method, target, { headers: { authorization: "Bearer t", "user-agent": "operator" } });
    await handler(call);
    return call.record.population?.();
  };
  const flush = () => clock.advance(1);
  return { clock, lists, send, flush };
}

it("counts at the first delete, and knows the objects soon after", async () => {
  const { send, flush, lists } = setUp();
  expect(await send("DELETE", DELETE)).toBeUndefined();
  await flush();
  expect(await send("DELETE", DELETE)).toEqual({
    total: 3,
    byNamespace: new Map([
      ["a", 2],
      ["b", 1],
    ]),
  });
  expect(lists.map(({ target }) => target)).toEqual(["/api/v1/pods?resourceVersion=0"]);
  expect(lists[0]?.headers).toMatchObject({
    authorization: "Bearer t",
    accept: expect.stringContaining("PartialObjectMetadataList"),
  });
});

it("counts when an informer lists, so that the first delete finds the count", async () => {
  const { send, flush } = setUp();
  await send("GET", "/api/v1/pods?limit=500");
  await flush();
  expect((await send("POST", `${DELETE}/eviction`))?.total).toBe(3);
});

it("counts anew every five minutes while objects are deleted, and keeps the old count meanwhile", async () => {
  const answers = [podList("a"), podList("a", "a")];
  const { send, flush, clock, lists } = setUp(() => answers.shift() ?? podList());
  await send("DELETE", DELETE);
  await clock.advance(COUNT_EVERY_MS);
  expect((await send("DELETE", DELETE))?.total).toBe(1);
  await flush();
  expect((await send("DELETE", DELETE))?.total).toBe(2);
  expect(lists).toHaveLength(2);
});

it("a caller that may list in the delete's namespace only is counted there", async () => {
  const { send, flush } = setUp((target) =>
    target.startsWith("/api/v1/pods") ? jsonReply({ kind: "Status" }, 403) : podList("a"),
  );
  await send("DELETE", DELETE);
  await flush();
  expect((await send("DELETE", DELETE))?.total).toBe(1);
});

it("each namespace is counted by itself if the caller may list some namespaces only", async () => {
  const { send, flush, lists } = setUp((target) => {
    const [, namespace = ""] = /namespaces\/(\w+)/.exec(target) ?? [];
    const items = { a: podList("a", "a"), b: podList("b"), c: podList() }[namespace];
    return items ?? jsonReply({ kind: "Status" }, 403);
  });
  const remove = (namespace: string) => send("DELETE", `/api/v1/namespaces/${namespace}/pods/p`);
  await remove("a");
  await flush();
  for (const namespace of ["a", "b", "c"]) {
    await remove(namespace);
    await flush();
  }
  const count = lists.length;
  const known = await remove("d");
  expect(known).toMatchObject({ total: 3, isPartial: true });
  expect(Object.fromEntries(known?.byNamespace ?? [])).toEqual({ a: 2, b: 1, c: 0 });
  for (const namespace of ["a", "b", "c"]) await remove(namespace);
  expect(lists.slice(count).map(({ target }) => target)).toEqual([
    "/api/v1/pods?resourceVersion=0",
    "/api/v1/namespaces/d/pods?resourceVersion=0",
  ]);
});

it.each([
  ["fails", () => jsonReply({ kind: "Status" }, 500)],
  ["is no list", () => jsonReply({ kind: "Status" })],
  [
    "throws",
    () => {
      throw new StatusError("ServiceUnavailable", "gone");
    },
  ],
])("a list that %s leaves the count unknown, and no call fails or waits", async (_, answer) => {
  const { send, flush, lists } = setUp(answer);
  await send("DELETE", DELETE);
  await flush();
  expect(await send("DELETE", DELETE)).toBeUndefined();
  expect(lists).toHaveLength(1);
});

it("a list that has failed is tried again after ten seconds", async () => {
  const answers = [jsonReply({ kind: "Status" }, 500), podList("a")];
  const { send, flush, clock } = setUp(() => answers.shift() ?? podList());
  await send("DELETE", DELETE);
  await clock.advance(10_000);
  await send("DELETE", DELETE);
  await flush();
  expect((await send("DELETE", DELETE))?.total).toBe(1);
});

it("a list that hangs is given up, and no call waits for it", async () => {
  const { send, lists, clock } = setUp(() => new Promise(() => undefined));
  await send("DELETE", DELETE);
  await clock.advance(60_000);
  expect(lists[0]?.signal.aborted).toBe(true);
});

it("counts nothing that no rule asks for", async () => {
  const { send, lists } = setUp();
  await send("DELETE", "/api/v1/namespaces/a/secrets/s");
  expect(lists).toEqual([]);
});

it("a slow list does not make the call slow that has started it, also if the proxy splits the list", async () => {
  const { lists, send } = setUp();
  await send("DELETE", DELETE);
  const [list] = lists;
  if (list === undefined) return expect.fail("no list");
  for (const record of [list.record, createRecord(list.info, list.record)]) noteAnswerTime(record, 5_000);
  expect(list.record.serves?.slowestMs).toBeUndefined();
});
