import { expect, test } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createChunkStream, createFakeTransport, type FakeAnswer } from "../../../test/support/fake-transport.ts";
import { createStatus, isStatus } from "../status.ts";
import { createKubeClient } from "./client.ts";
import { metadataOnly } from "./resource.ts";
import { LEASES, NAMESPACES, PODS } from "./resources.ts";
import type { TransportRequest } from "./transport.ts";

function setUp(answer: (request: TransportRequest, index: number) => FakeAnswer | Promise<FakeAnswer>) {
  const clock = createFakeClock();
  const transport = createFakeTransport(answer);
  const client = createKubeClient(
    { server: "https://api:6443", token: () => "", userAgent: "test/1" },
    { clock, transport, random: () => 0, timeoutMs: 30_000 },
  );
  return { clock, transport, client };
}

const pod = (name: string) => ({ metadata: { namespace: "a", name, resourceVersion: "5" } });
const page = (names: string[], more: object = {}): FakeAnswer => ({
  body: { kind: "PodList", metadata: { resourceVersion: "7", ...more }, items: names.map(pod) },
});
const failure = (reason: Parameters<typeof createStatus>[0], headers: Record<string, string> = {}): FakeAnswer => {
  const status = createStatus(reason, reason);
  return { statusCode: status.code, headers, body: status };
};
const query = (request: TransportRequest | undefined) => new URLSearchParams(request?.path.split("?")[1]);

test("a list is read page by page and its items get their kind", async () => {
  const { client, transport } = setUp((_, index) =>
    index === 0 ? page(["x"], { continue: "t" }) : page(["y"], { resourceVersion: "9" }),
  );
  const list = await client.list(PODS, { namespace: "a", labelSelector: "l=1", resourceVersion: "0", pageSize: 1 });
  expect(list.metadata.resourceVersion).toBe("7");
  expect(list.items.map(({ apiVersion, kind, metadata }) => [apiVersion, kind, metadata.name])).toEqual([
    ["v1", "Pod", "x"],
    ["v1", "Pod", "y"],
  ]);
  const [first, second] = transport.requests.map(query);
  expect([first?.get("limit"), first?.get("resourceVersion"), first?.get("continue")]).toEqual(["1", "0", null]);
  expect([second?.get("continue"), second?.get("resourceVersion"), second?.get("labelSelector")]).toEqual(["t", null, "l=1"]);
});

test("a list with an expired continuation starts again, the last time without pages", async () => {
  const { client, transport } = setUp((request) => {
    if (query(request).get("continue") !== null) return failure("Expired");
    return query(request).get("limit") === null ? page(["x", "y"]) : page(["x"], { continue: "t" });
  });
  expect((await client.list(PODS)).items).toHaveLength(2);
  expect(transport.requests).toHaveLength(5);
});

test("an empty page with a continuation is not the last one, and a null list is empty", async () => {
  const { client } = setUp((_, index) => (index === 0 ? page([], { continue: "t" }) : page(["x"])));
  expect((await client.list(PODS)).items).toHaveLength(1);
  const empty = setUp(() => ({ body: { metadata: { resourceVersion: "1" }, items: null } }));
  expect((await empty.client.list(PODS)).items).toEqual([]);
});

test("a metadata-only resource is requested as metadata, and other fields are stripped if the server sends them", async () => {
  const { client, transport } = setUp(() => ({
    body: { metadata: { resourceVersion: "1" }, items: [{ ...pod("x"), spec: { big: true } }] },
  }));
  const { items } = await client.list(metadataOnly(PODS));
  expect(items[0]).toEqual({ apiVersion: "v1", kind: "Pod", ...pod("x") });
  expect(transport.requests[0]?.headers.accept).toContain("as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
});

test("a 429 with Retry-After is retried after that time, a bounded number of times", async () => {
  const { client, clock, transport } = setUp((_, index) =>
    index < 2 ? failure("TooManyRequests", { "retry-after": "2" }) : { body: pod("x") },
  );
  const got = client.create(PODS, pod("x"));
  await clock.advance(1_999);
  expect(transport.requests).toHaveLength(1);
  await clock.advance(2_001);
  expect((await got).metadata.name).toBe("x");

  const never = setUp(() => failure("ServiceUnavailable", { "retry-after": "1" }));
  const refused = never.client.get(PODS, { namespace: "a", name: "x" }).catch((error: unknown) => error);
  await never.clock.advance(60_000);
  expect(isStatus(await refused, "ServiceUnavailable")).toBe(true);
  expect(never.transport.requests).toHaveLength(4);
});

test("a refusal without Retry-After, or with a very long one, is not retried", async () => {
  for (const headers of [{}, { "retry-after": "3600" }]) {
    const { client, transport } = setUp(() => failure("TooManyRequests", headers));
    await expect(client.get(PODS, { namespace: "a", name: "x" })).rejects.toMatchObject({ code: "KUBE_STATUS" });
    expect(transport.requests).toHaveLength(1);
  }
});

test("a slow exchange times out, and an aborted one throws the reason", async () => {
  const { client, clock } = setUp(() => new Promise(() => {}));
  const never = setUp(
    (request) => new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason))),
  );
  const slow = never.client.get(PODS, { namespace: "a", name: "x" }, { timeoutMs: 500 }).catch((error: unknown) => error);
  await never.clock.advance(501);
  expect(await slow).toMatchObject({ code: "KUBE_TIMEOUT" });
  expect(never.clock.pending).toBe(0);
  expect(clock.pending).toBe(0);
  const reason = new Error("enough");
  await expect(client.get(PODS, { namespace: "a", name: "x" }, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

test("an apply without a field manager names the user agent up to its slash", async () => {
  const { client, transport } = setUp(() => ({ body: pod("x") }));
  await client.patch(PODS, { namespace: "a", name: "x" }, { type: "apply", body: {} });
  expect(query(transport.requests[0]).get("fieldManager")).toBe("test");
});

test("each write sends its method, content type and parameters", async () => {
  const { client, transport } = setUp(() => ({ body: pod("x") }));
  const ref = { namespace: "a", name: "x" };
  await client.update(PODS, pod("x"));
  await client.patch(PODS, ref, { type: "merge", body: { a: 1 } }, { subresource: "status" });
  await client.patch(PODS, ref, { type: "json", body: [{ op: "remove", path: "/a" }] });
  await client.patch(PODS, ref, { type: "apply", body: { spec: {} }, fieldManager: "me" });
  await client.delete(PODS, ref, { preconditions: { uid: "u" } });
  await client.create(NAMESPACES, { metadata: { name: "n" } }, { dryRun: true });
  expect(transport.requests.map(({ method, path, headers, body }) => [method, path, headers["content-type"], body])).toEqual([
    ["PUT", "/api/v1/namespaces/a/pods/x", "application/json", JSON.stringify({ apiVersion: "v1", kind: "Pod", ...pod("x") })],
    ["PATCH", "/api/v1/namespaces/a/pods/x/status", "application/merge-patch+json", '{"a":1}'],
    ["PATCH", "/api/v1/namespaces/a/pods/x", "application/json-patch+json", '[{"op":"remove","path":"/a"}]'],
    [
      "PATCH",
      "/api/v1/namespaces/a/pods/x?fieldManager=me&force=true",
      "application/apply-patch+yaml",
      '{"apiVersion":"v1","kind":"Pod","spec":{}}',
    ],
    [
      "DELETE",
      "/api/v1/namespaces/a/pods/x",
      "application/json",
      '{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"}}',
    ],
    [
      "POST",
      "/api/v1/namespaces?dryRun=All",
      "application/json",
      '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}',
    ],
  ]);
});

test("a watch yields events as they arrive and ends when the server ends it", async () => {
  const stream = createChunkStream();
  const { client, transport } = setUp(() => ({ body: stream.body }));
  stream.push(`${JSON.stringify({ type: "ADDED", object: pod("x") })}\n{"type":"BOOK`);
  stream.push('MARK","object":{"metadata":{"resourceVersion":"9"}}}\n');
  stream.end();
  const seen: string[] = [];
  for await (const event of client.watch(PODS, { resourceVersion: "7" }))
    seen.push(`${event.type} ${event.object.metadata.resourceVersion}`);
  expect(seen).toEqual(["ADDED 5", "BOOKMARK 9"]);
  expect(Object.fromEntries(query(transport.requests[0]))).toEqual({
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion: "7",
    timeoutSeconds: "300",
  });
});

test("a silent watch times out, also after it had events", async () => {
  const stream = createChunkStream();
  const { client, clock } = setUp(() => ({ body: stream.body }));
  const watching = (async () => {
    for await (const _ of client.watch(LEASES, { resourceVersion: "1", silenceMs: 90_000 }));
  })().catch((error: unknown) => error);
  for (const _ of [1, 2, 3]) {
    await clock.advance(60_000);
    stream.push('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}\n');
  }
  await clock.advance(89_000);
  expect(clock.pending).toBe(1);
  await clock.advance(2_000);
  expect(await watching).toMatchObject({ code: "KUBE_TIMEOUT" });
  expect(clock.pending).toBe(0);
});

test("a watch fails when it is refused, expired or reset, and at an unknown event", async () => {
  const run = async (answer: FakeAnswer) => {
    try {
      for await (const _ of setUp(() => answer).client.watch(PODS));
      return "ended";
    } catch (error) {
      return error;
    }
  };
  expect(isStatus(await run(failure("Forbidden")), "Forbidden")).toBe(true);
  const expired = { type: "ERROR", object: createStatus("Expired", "too old resource version") };
  expect(isStatus(await run({ body: `${JSON.stringify(expired)}\n` }), "Expired")).toBe(true);
  expect(await run({ body: '{"type":"WHAT"}\n' })).toMatchObject({ code: "WATCH_MALFORMED" });
  const stream = createChunkStream();
  setImmediate(() => stream.fail(new Error("reset")));
  expect(await run({ body: stream.body })).toMatchObject({ code: "KUBE_UNREACHABLE" });
});
