// Policies in the real proxy process, between localkube and a scripted manager. Each test has rules of its own uid, so it meets no state of
// another one.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { FaultRule, LimiterSpec, LimitRule, ResourceRule } from "../../../src/policy/policy.ts";
import { eventually } from "../../support/eventually.ts";
import { bytesOf, decode } from "../../support/kube-protobuf.ts";
import { OWN_A, POD_USER_AGENT, type PolicedProxy, startPolicedProxy } from "../../support/policed-proxy.ts";
import { limitRule, resourceRule } from "../../support/policies.ts";
import type { RawAnswer, RawConnection, RawRequest } from "../../support/raw-client.ts";
import { get, PROTOBUF, post, put } from "../../support/requests.ts";

const MAPS_OF_A = "/api/v1/namespaces/a/configmaps";
const ALL_MAPS = "/api/v1/configmaps";
const FIRST = `${MAPS_OF_A}/first`;
const WATCH = `${ALL_MAPS}?watch=true&resourceVersion=0`;
/** No token comes back while a test runs. */
const ONE: LimiterSpec = { kind: "bucket", perSecond: 0.001, burst: 1 };
const DENY: LimiterSpec = { kind: "deny" };

let proxy: PolicedProxy;
let tests = 0;
let connections: RawConnection[] = [];

beforeAll(async () => {
  proxy = await startPolicedProxy();
  await proxy.route(OWN_A);
});
afterAll(() => proxy?.stop());
beforeEach(() => {
  tests++;
});
afterEach(async () => {
  for (const { socket } of connections) socket.destroy();
  connections = [];
});

/** A rule of this test about config maps. */
function rule(limiter: LimiterSpec, about: Partial<ResourceRule> = {}, changes: Parameters<typeof limitRule>[1] = {}): LimitRule {
  const made = limitRule(limiter, { name: "guard-maps", ...changes });
  const match = { resources: [resourceRule({ resources: ["configmaps"], ...about })], urls: [], http: [] };
  return { ...made, match, origin: { ...made.origin, uid: `uid-${tests}` } };
}

function faultRule(changes: Partial<FaultRule>): FaultRule {
  const { origin, match } = rule(DENY);
  return { origin: { ...origin, kind: "FaultInjection", name: "storm" }, mode: "Enforce", match, ...changes };
}

const newMap = (namespace: string, name: string) =>
  post(`/api/v1/namespaces/${namespace}/configmaps`, JSON.stringify({ metadata: { name } }));
const newEvent = (name: string) =>
  post(
    "/api/v1/namespaces/a/events",
    JSON.stringify({ metadata: { name }, involvedObject: { kind: "Pod", namespace: "a", name: "p" } }),
  );
const headerOf = ({ headers }: RawAnswer, name: string) => headers.find(([each]) => each === name)?.[1];
const code = async (request: RawRequest) => (await proxy.send(request)).status;

/** What a client may see of an answer. */
function seen(answer: RawAnswer) {
  const body = headerOf(answer, "content-type")?.includes("json") ? JSON.parse(answer.body.toString()) : undefined;
  return {
    status: answer.status,
    retryAfter: headerOf(answer, "retry-after"),
    error: headerOf(answer, "x-ctrlmesh-error"),
    body,
  };
}

/** Opens a watch and waits for the head of its answer. */
async function watch(target = WATCH): Promise<RawConnection> {
  const connection = await proxy.open(get(target));
  connections.push(connection);
  const head = await connection.until((bytes) => (bytes.includes("\r\n\r\n") ? bytes.toString("latin1") : undefined));
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  return connection;
}

/** How often the operator's requests with this verb have reached the API server. */
const reached = (verb: string, resource = "configmaps") =>
  proxy.kube.audit().filter((entry) => entry.userAgent === POD_USER_AGENT && entry.verb === verb && entry.resource === resource)
    .length;

describe("a limited request", () => {
  it("is a 429 Status that names the rule, in JSON and in protobuf, and does not reach the API server", async () => {
    await proxy.enforce({ limits: [rule(ONE, { verbs: ["create"] })] });
    const before = reached("create");
    expect(await code(newMap("a", "one"))).toBe(201);
    const request = newMap("a", "two");
    const refused = await proxy.send(request);
    const message = expect.stringMatching(
      /^ctrlmesh: limited by CircuitBreaker shop\/guard, rule "guard-maps": try again in \d+ s$/,
    );
    expect(seen(refused)).toEqual({
      status: 429,
      retryAfter: expect.stringMatching(/^([89]|10)$/),
      error: "LIMITED",
      body: {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        reason: "TooManyRequests",
        code: 429,
        message,
        details: {
          causes: [{ reason: "Limited", message: "guard-maps" }],
          retryAfterSeconds: Number(headerOf(refused, "retry-after")),
        },
      },
    });
    const inProtobuf = await proxy.send({ ...request, headers: [...(request.headers ?? []), ["Accept", PROTOBUF]] });
    expect([inProtobuf.status, headerOf(inProtobuf, "content-type")]).toEqual([429, PROTOBUF]);
    expect(inProtobuf.body.toString("latin1", 0, 4)).toBe("k8s\0");
    const status = decode(bytesOf(decode(inProtobuf.body.subarray(4)), 2) ?? Buffer.alloc(0));
    expect(bytesOf(status, 3)?.toString()).toEqual(message);
    expect(bytesOf(status, 4)?.toString()).toBe("TooManyRequests");
    expect(status.find(({ number }) => number === 6)?.value).toBe(429);
    expect(reached("create") - before).toBe(1);
  });

  it("is named in the metrics and in the access log, with its rule", async () => {
    const count = async () => {
      const metrics = await proxy.metrics();
      const labels = { kind: "CircuitBreaker", rule: "guard/guard-maps", decision: "open", mode: "Enforce" };
      return metrics.sum("ctrlmesh_proxy_policy_decisions_total", labels);
    };
    const before = await count();
    await proxy.enforce({ limits: [rule(DENY, { verbs: ["delete"] })] });
    await proxy.send({ method: "DELETE", target: `${MAPS_OF_A}/logged` });
    expect((await count()) - before).toBe(1);
    await eventually(() => {
      const line = proxy
        .output()
        .split("\n")
        .find((each) => each.includes('"name":"logged"'));
      expect(JSON.parse(line ?? "{}")).toMatchObject({
        rule: "guard/guard-maps",
        decision: "refused",
        reason: "open",
        code: 503,
      });
    });
  });

  it("that creates an Event has no Retry-After, so that its recorder drops it", async () => {
    await proxy.enforce({ limits: [rule(ONE, { resources: ["events"], verbs: ["create"] })] });
    expect(await code(newEvent("one"))).toBe(201);
    const { status, retryAfter, body } = seen(await proxy.send(newEvent("two")));
    expect({ status, retryAfter, seconds: body.details.retryAfterSeconds }).toEqual({ status: 429 });
  });

  it("that is a watch is a 429 with Retry-After, for a bucket and for an open breaker", async () => {
    await proxy.enforce({ limits: [rule(ONE, { verbs: ["watch"] })] });
    await watch();
    expect(seen(await proxy.send(get(WATCH)))).toMatchObject({
      status: 429,
      retryAfter: expect.stringMatching(/^([89]|10)$/),
      error: "LIMITED",
    });
    await proxy.enforce({ limits: [rule(DENY, { verbs: ["watch"] })] });
    for (const target of [WATCH, `${MAPS_OF_A}?watch=true`])
      expect(seen(await proxy.send(get(target)))).toMatchObject({
        status: 429,
        retryAfter: expect.stringMatching(/^([89]|10)$/),
        error: "BREAKER_OPEN",
      });
  });
});

describe("what costs nothing", () => {
  it("a flood of refused requests: the wait does not grow", async () => {
    await proxy.enforce({ limits: [rule(ONE, { verbs: ["create"] })] });
    expect(await code(newMap("a", "before-the-flood"))).toBe(201);
    await Promise.all(Array.from({ length: 100 }, (_, index) => code(newMap("a", `flood-${index}`))));
    const { status, body } = seen(await proxy.send(newMap("a", "after-the-flood")));
    const [, seconds] = /try again in (\d+) s$/.exec(body.message) ?? [];
    expect(status).toBe(429);
    // One token takes 1,000 s, whatever was refused meanwhile.
    expect(Number(seconds)).toBeLessThanOrEqual(1_000);
    expect(Number(seconds)).toBeGreaterThan(900);
  });

  it("a write in a namespace of another subset is a 403, and takes no token", async () => {
    await proxy.enforce({ limits: [rule(ONE, { verbs: ["create"] })] });
    for (let i = 0; i < 3; i++) expect(await code(newMap("b", "foreign"))).toBe(403);
    expect(await code(newMap("a", "own"))).toBe(201);
    expect(await code(newMap("a", "later"))).toBe(429);
    // The order of the layers: without a token it is still another subset's namespace.
    expect(await code(newMap("b", "foreign"))).toBe(403);
  });

  it("the operator's own lock, whatever its kind, and leases in its namespace, but no other Lease (D6)", async () => {
    const everything = { resources: ["*"], clusterScope: true };
    const abort = { ...faultRule({ abort: { status: 500, percent: 100 } }), match: rule(DENY, everything).match };
    await proxy.enforce({ limits: [rule(DENY, everything)], faults: [abort] });
    const leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
    const lease = (name: string) => JSON.stringify({ metadata: { name }, spec: { holderIdentity: "shop-0" } });
    expect(await code(post(leases, lease("other")))).toBe(500);
    // 404: it has reached the API server, where the pod's namespace does not exist.
    const lock = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/shop-lock";
    expect(await code(get(lock))).toBe(404);
    expect([500, 503]).not.toContain(await code(put(lock, lease("shop-lock"))));
    expect(await code(get("/apis/coordination.k8s.io/v1/namespaces/shop/leases/second-elector"))).toBe(404);
    expect(await code(get("/api/v1/namespaces/shop/configmaps/no-lock"))).toBe(500);
    for (const kind of ["configmaps", "endpoints"])
      expect(await code(get(`/api/v1/namespaces/shop/${kind}/shop-lock`))).toBe(404);
  });
});

it("an edit leaves the tokens and the open breakers of all rules (D10)", async () => {
  const tokens = rule(ONE, { verbs: ["create"] }, { name: "tokens" });
  const opened = rule({ kind: "breaker", bucket: { perSecond: 0.001, burst: 1 } }, { verbs: ["get"] }, { name: "opened" });
  const edited = (burst: number) => rule({ kind: "bucket", perSecond: 0.001, burst }, { verbs: ["delete"] }, { name: "edited" });
  const erase = () => code({ method: "DELETE", target: `${MAPS_OF_A}/none` });
  await proxy.enforce({ limits: [tokens, opened, edited(1)] });
  expect([await code(newMap("a", "taken")), await code(get(FIRST)), await code(get(FIRST))]).toEqual([201, 200, 503]);
  expect([await erase(), await erase()]).toEqual([404, 429]);
  // Another order, another limit of one rule, and another match and bucket of a breaker.
  const widened: LimitRule = {
    ...opened,
    match: rule(DENY, { verbs: ["get", "list"] }).match,
    limiter: { kind: "breaker", bucket: { perSecond: 100, burst: 100 } },
  };
  await proxy.enforce({ limits: [edited(2), widened, tokens] });
  expect([await code(newMap("a", "refused")), await code(get(FIRST)), await code(get(ALL_MAPS))]).toEqual([429, 503, 503]);
  expect(await erase()).toBe(429);
});

it("a narrow rule with room does not switch off a broad guard", async () => {
  const narrow = rule({ kind: "bucket", perSecond: 1, burst: 100 }, { verbs: ["delete"], namespaces: ["a"] }, { name: "narrow" });
  const broad = rule(ONE, { resources: ["*"], verbs: ["*"] }, { name: "broad" });
  await proxy.enforce({ limits: [narrow, broad] });
  const erase = () => code({ method: "DELETE", target: `${MAPS_OF_A}/none` });
  expect([await erase(), await erase()]).toEqual([404, 429]);
});

it("twenty open watches leave the only place of a bound on requests at once to a get", async () => {
  await proxy.enforce({ limits: [rule({ kind: "in-flight", max: 1 })] });
  for (let i = 0; i < 20; i++) await watch();
  for (let i = 0; i < 3; i++) expect(await code(get(FIRST))).toBe(200);
});

it("limits end no open watch: it goes on while new ones are refused, also over a move of namespaces", async () => {
  const list = JSON.parse((await proxy.send(get(ALL_MAPS))).body.toString());
  const fromList = `${ALL_MAPS}?watch=true&resourceVersion=${list.metadata.resourceVersion}`;
  const connection = await watch(fromList);
  await proxy.enforce({ limits: [rule(DENY, { verbs: ["watch"] })] });
  expect(await code(get(WATCH))).toBe(429);
  expect(await code(newMap("a", "seen-by-the-watch"))).toBe(201);
  await connection.until((bytes) => bytes.includes("seen-by-the-watch") || undefined);
  await proxy.route({ blue: ["a", "b"] });
  try {
    await connection.until((bytes) => bytes.includes('"from":"b"') || bytes.includes('"code":410') || undefined);
    expect(connection.received().toString()).not.toContain('"code":410');
    // A new watch that would first be told of the move is refused like any other: its reflector keeps its version.
    expect(seen(await proxy.send(get(fromList)))).toMatchObject({
      status: 429,
      retryAfter: expect.stringMatching(/^([89]|10)$/),
    });
  } finally {
    await proxy.route(OWN_A);
  }
});

it("the mode Shadow changes no byte, and counts what would have happened", async () => {
  const requests = [get(FIRST), get(ALL_MAPS), get(`${MAPS_OF_A}/none`), get(FIRST, PROTOBUF), newMap("b", "foreign")];
  const bytes = async (request: RawRequest) => {
    const { status, headers, body } = await proxy.send(request);
    return { status, headers: headers.filter(([name]) => name !== "date" && name !== "audit-id"), body: body.toString("latin1") };
  };
  const before = [];
  await proxy.enforce({});
  for (const request of requests) before.push(await bytes(request));
  const shadow = { mode: "Shadow" } as const;
  const limiters: readonly LimiterSpec[] = [
    DENY,
    { kind: "bucket", perSecond: 0, burst: 0 },
    { kind: "in-flight", max: 0 },
    { kind: "breaker", bucket: { perSecond: 0, burst: 0 } },
  ];
  await proxy.enforce({
    limits: limiters.map((limiter, at) => rule(limiter, {}, { ...shadow, name: `shadow-${at}` })),
    faults: [faultRule({ ...shadow, delay: { ms: 30_000, percent: 100 }, abort: { status: 500, percent: 100 } })],
  });
  const after = [];
  for (const request of requests) after.push(await bytes(request));
  expect(after).toEqual(before);
  const metrics = await proxy.metrics();
  const counted = (decision: string) => metrics.sum("ctrlmesh_proxy_policy_decisions_total", { decision, mode: "Shadow" });
  expect(counted("open")).toBeGreaterThanOrEqual(8);
  expect(counted("limited")).toBeGreaterThanOrEqual(8);
  // Also for the write that is refused afterwards.
  expect([counted("delay"), counted("abort")]).toEqual([5, 5]);
  expect(metrics.sum("ctrlmesh_proxy_fault_delay_seconds_count")).toBe(0);
});

it("an abort answers with its code, and the request does not reach the API server", async () => {
  await proxy.enforce({ faults: [faultRule({ abort: { status: 404, percent: 100 } })] });
  const before = reached("get");
  const { status, error, body } = seen(await proxy.send(get(FIRST)));
  expect({ status, error, reason: body.reason, causes: body.details.causes }).toEqual({
    status: 404,
    error: "FAULT_INJECTED",
    reason: "NotFound",
    causes: [{ reason: "FaultInjected", message: "guard-maps" }],
  });
  expect(reached("get")).toBe(before);
});

it("a delay holds the request", async () => {
  await proxy.enforce({ faults: [faultRule({ delay: { ms: 300, percent: 100 } })] });
  const startedMs = performance.now();
  expect(await code(get(FIRST))).toBe(200);
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(299);
});

it("policies that cannot be read are refused in words, and the last good ones stay in force", async () => {
  await proxy.enforce({ limits: [rule(DENY)] });
  const body = Buffer.from('{"limits":[{"mode":"Strict"}],"faults":[]}');
  expect(await proxy.refused({}, { body })).toEqual(
    expect.arrayContaining([expect.stringMatching(/^limits\.0: origin: .*, mode: /)]),
  );
  expect(await code(get(FIRST))).toBe(503);
});

it("an open breaker outlives kill -9 and the manager, and closes when a person asks for it", async () => {
  const breaker: LimiterSpec = { kind: "breaker", bucket: { perSecond: 0.001, burst: 1 } };
  const guarded = (recovery: string) => ({ limits: [rule(breaker, { verbs: ["get"] }, { recovery })] });
  await proxy.enforce(guarded(""));
  expect(await code(get(FIRST))).toBe(200);
  expect(seen(await proxy.send(get(FIRST)))).toMatchObject({ status: 503, error: "BREAKER_OPEN" });
  const opened = { uid: `uid-${tests}`, rule: "guard-maps", opened: true };
  await eventually(() => expect(proxy.report?.rules).toMatchObject([opened]));
  const sinceMs = proxy.report?.rules[0]?.sinceMs;
  await eventually(async () => (await proxy.storedBreakers()).includes(String(sinceMs)));

  proxy.stopManager();
  await proxy.killAndRestart();
  expect(await code(get(`${MAPS_OF_A}?limit=1`))).toBe(200);
  expect(seen(await proxy.send(get(FIRST)))).toMatchObject({ status: 503, error: "BREAKER_OPEN", retryAfter: undefined });

  await proxy.startManager();
  await eventually(() => expect(proxy.report?.rules).toMatchObject([{ ...opened, sinceMs }]));
  await proxy.enforce(guarded("Monday 9:00"));
  expect(await code(get(FIRST))).toBe(200);
  await eventually(() => expect(proxy.report?.rules).toMatchObject([{ ...opened, opened: false }]));
});

it("a new proxy serves nothing before its policies have come once, if the manager sends some", async () => {
  const young = await startPolicedProxy(["routes", "policy"]);
  try {
    await young.route(OWN_A);
    expect(await young.readyz()).toMatchObject({ status: 500, text: expect.stringMatching(/^no policies from the manager yet/) });
    expect((await young.send(get(FIRST))).status).toBe(503);
    await young.enforce({ limits: [rule(DENY, { verbs: ["list"] })] });
    expect((await young.readyz()).status).toBe(200);
    expect((await young.send(get(FIRST))).status).toBe(200);
    expect(seen(await young.send(get(ALL_MAPS)))).toMatchObject({ status: 503, error: "BREAKER_OPEN" });
  } finally {
    await young.stop();
  }
});
