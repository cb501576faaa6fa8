import { describe, expect, it } from "vitest";
import { type CallOptions, callOf, fakeUpstream, jsonReply, upgraded } from "../../../test/support/layer-call.ts";
import { limitRule, resourceRule } from "../../../test/support/policies.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { MeshError } from "../../base/errors.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import type { FailureTrigger, LimiterSpec, LimitRule } from "../../policy/policy.ts";
import { type Call, type CallRecord, createRecord, type Handler, noteAnswerTime } from "../call/call.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { PolicyError } from "../policies/policy-refusal.ts";
import { limit, settle } from "./limit.ts";

const POD = "/api/v1/namespaces/a/pods/x";
const ONE: LimiterSpec = { kind: "bucket", perSecond: 0.5, burst: 1 };

function setup(
  limiters: readonly (LimiterSpec | LimitRule)[],
  answer: (call: Call) => Reply | Promise<Reply> = () => jsonReply({}),
) {
  const limits = limiters.map((each) => ("limiter" in each ? each : limitRule(each)));
  const world = runningPolicies({ limits });
  const upstream = fakeUpstream(answer);
  const limited = limit({ ...world, random: () => world.random.next })(upstream);
  /** What the layers in between send for a call; undefined: the call itself. */
  const between: { serve?: (call: Call, next: Handler) => Promise<Reply> } = {};
  const handler = settle(world)((call) => (between.serve === undefined ? limited(call) : between.serve(call, limited)));
  const send = (method: string, target: string, options?: CallOptions & { readonly record?: CallRecord }) => {
    const call = callOf(method, target, options);
    return handler({ ...call, record: options?.record ?? { ...call.record, info: call.info } });
  };
  const refusal = async (...args: Parameters<typeof send>) => {
    const error = await send(...args).then(
      () => expect.fail("the request passed"),
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof PolicyError)) throw error;
    const { status, errorCode, retryAfterSeconds } = error;
    return { code: status.code, errorCode, retryAfterSeconds, body: status.details?.retryAfterSeconds, message: status.message };
  };
  return { ...world, upstream, between, send, refusal };
}

describe("a limited request", () => {
  it("is a 429 that names the object, the rule and the wait", async () => {
    const { send, refusal } = setup([ONE]);
    await send("GET", POD);
    expect(await refusal("GET", POD)).toEqual({
      code: 429,
      errorCode: "LIMITED",
      retryAfterSeconds: 2,
      body: 2,
      message: 'ctrlmesh: limited by CircuitBreaker shop/guard, rule "rule": try again in 2 s',
    });
  });

  it("comes back within 10 s, since client-go holds a worker meanwhile, and not at the same moment as all others", async () => {
    const { send, refusal, random } = setup([{ kind: "bucket", perSecond: 0.01, burst: 1 }]);
    await send("GET", POD);
    expect(await refusal("GET", POD)).toMatchObject({ retryAfterSeconds: 10 });
    random.next = 0.9;
    expect(await refusal("GET", POD)).toMatchObject({ retryAfterSeconds: 8 });
    const soon = setup([ONE]);
    await soon.send("GET", POD);
    soon.random.next = 0.9;
    expect((await soon.refusal("GET", POD)).retryAfterSeconds).toBe(3);
  });

  it("that creates an Event has no Retry-After: recorders drop it", async () => {
    const { send, refusal } = setup([ONE]);
    await send("GET", POD);
    expect(await refusal("POST", "/api/v1/namespaces/a/events", { body: "{}" })).toMatchObject({
      code: 429,
      retryAfterSeconds: undefined,
      body: undefined,
    });
  });

  it.each(["PATCH", "PUT"])(
    "that is a %s of a repeated Event has no Retry-After, or its recorder would sleep (D20)",
    async (method) => {
      const { send, refusal } = setup([ONE]);
      await send("GET", POD);
      const event = "/apis/events.k8s.io/v1/namespaces/a/events/e";
      expect(await refusal(method, event, { body: "{}" })).toMatchObject({ code: 429, retryAfterSeconds: undefined });
    },
  );

  it("may be a dry run: it takes its token like any other, since the server works as much for it (D22)", async () => {
    const { send, refusal } = setup([ONE]);
    await send("DELETE", `${POD}?dryRun=All`);
    expect((await refusal("DELETE", POD)).code).toBe(429);
  });

  it("is exempt if it is for the lock", async () => {
    const { send, upstream } = setup([{ kind: "deny" }]);
    await send("PUT", "/api/v1/namespaces/a/configmaps/lock", { record: { ...createRecord(), lock: true } });
    expect(upstream.calls).toHaveLength(1);
  });
});

describe("leases in the pod's namespace", () => {
  const own = "/apis/coordination.k8s.io/v1/namespaces/shop/leases";
  const LIMITERS: readonly LimiterSpec[] = [
    { kind: "deny" },
    { kind: "bucket", perSecond: 0, burst: 0 },
    { kind: "in-flight", max: 0 },
    { kind: "breaker", bucket: { perSecond: 0, burst: 0 } },
  ];

  it.each([
    ["GET", `${own}/other-controller`],
    ["GET", own],
    ["GET", `${own}?watch=1`],
    ["POST", own],
    ["PUT", `${own}/other-controller`],
    ["PATCH", `${own}/other-controller`],
    ["DELETE", `${own}/other-controller`],
  ])("are exempt from rules that do not name them: %s %s (D6)", async (method, target) => {
    const { send, upstream } = setup(LIMITERS);
    for (let i = 0; i < 3; i++) await send(method, target);
    expect(upstream.calls).toHaveLength(3);
  });

  it.each([
    ["DELETE", own],
    ["PUT", `${own.replace("shop", "elsewhere")}/other-controller`],
    ["GET", "/apis/coordination.k8s.io/v1/leases"],
    ["PUT", "/apis/coordination.example/v1/namespaces/shop/leases/x"],
    ["PUT", "/api/v1/namespaces/shop/configmaps/lock"],
    ["PUT", "/api/v1/namespaces/shop/endpoints/lock"],
  ])("are no other requests: %s %s is limited", async (method, target) => {
    const { refusal, upstream } = setup(LIMITERS);
    await refusal(method, target);
    expect(upstream.calls).toHaveLength(0);
  });

  it("are limited by a rule that names leases of coordination.k8s.io", async () => {
    const names = resourceRule({ apiGroups: ["coordination.k8s.io"], resources: ["leases"] });
    const { refusal } = setup([limitRule({ kind: "deny" }, { match: { resources: [names], urls: [], http: [] } })]);
    expect((await refusal("PUT", `${own}/other-controller`)).errorCode).toBe("BREAKER_OPEN");
  });
});

describe("an open breaker", () => {
  it("answers 503 and names the wait in the body only", async () => {
    const { send, refusal } = setup([{ kind: "breaker", bucket: { perSecond: 1, burst: 1 }, sleepMs: 60_000 }]);
    await send("GET", POD);
    expect(await refusal("GET", POD)).toMatchObject({
      code: 503,
      errorCode: "BREAKER_OPEN",
      retryAfterSeconds: undefined,
      body: 60,
    });
  });

  it("that only a person closes says how, and names its object", async () => {
    const { send, refusal } = setup([{ kind: "breaker", bucket: { perSecond: 1, burst: 1 } }]);
    await send("GET", POD);
    expect((await refusal("GET", POD)).message).toBe(
      'ctrlmesh: refused by CircuitBreaker shop/guard, rule "rule": the breaker stays open until the annotation ' +
        "ctrlmesh.kusionstack.io/recover of CircuitBreaker shop/guard has another text",
    );
  });

  it("answers a watch with 429, so that its reflector keeps its version", async () => {
    const { refusal } = setup([{ kind: "deny" }]);
    expect(await refusal("GET", "/api/v1/pods?watch=1")).toMatchObject({
      code: 429,
      errorCode: "BREAKER_OPEN",
      retryAfterSeconds: 10,
    });
  });

  it("opens after failures of the API server, and not when a client leaves", async () => {
    let error: Error = new MeshError("ABORTED", "the client has left");
    const { send, refusal } = setup(
      [{ kind: "breaker", trigger: { consecutive: 2, minimumRequests: 1, windowMs: 1_000 }, sleepMs: 1_000 }],
      () => Promise.reject(error),
    );
    for (let i = 0; i < 5; i++) await expect(send("GET", POD)).rejects.toThrow("left");
    error = new MeshError("UPSTREAM_UNREACHABLE", "no connection");
    for (let i = 0; i < 2; i++) await expect(send("GET", POD)).rejects.toThrow("no connection");
    expect((await refusal("GET", POD)).errorCode).toBe("BREAKER_OPEN");
  });
});

describe("the outcome of a request", () => {
  const breaker = (trigger: Partial<FailureTrigger> = {}): LimiterSpec => ({
    kind: "breaker",
    trigger: { consecutive: 2, minimumRequests: 1, windowMs: 1_000, ...trigger },
    sleepMs: 60_000,
  });
  const EXEC = "/api/v1/namespaces/a/pods/x/exec?command=ls";
  /** An upgrade that the layers let through, with what its tunnel tells of it. */
  async function upgrade(send: ReturnType<typeof setup>["send"]) {
    const client = new AbortController();
    const record = { ...createRecord(), info: parseRequestInfo("GET", EXEC, "websocket") };
    await send("GET", EXEC, { upgrade: "websocket", signal: client.signal, record });
    return { answer: (status: number | undefined) => record.upgraded?.(status), leave: () => client.abort() };
  }
  const asUpstream = (call: Call): Reply => (call.upgrade === undefined ? jsonReply({}, 500) : upgraded(call));
  const isOpen = async ({ policies, refusal }: ReturnType<typeof setup>) =>
    policies.report.rules.some(({ opened }) => opened) && (await refusal("GET", POD)).errorCode === "BREAKER_OPEN";

  it("of an upgrade is what the API server answers, and is not known before (D2)", async () => {
    const world = setup([breaker()], asUpstream);
    const { send } = world;
    // An exec that has only begun is no success, so the failures are still in a row.
    await send("GET", POD);
    const exec = await upgrade(send);
    await send("GET", POD);
    expect(await isOpen(world)).toBe(true);
    exec.answer(101);
    expect(await isOpen(world)).toBe(true);
  });

  it.each([500, 429, undefined])("of an upgrade that is answered with %s is a failure (D2)", async (status) => {
    const world = setup([breaker()], asUpstream);
    for (let i = 0; i < 2; i++) (await upgrade(world.send)).answer(status);
    expect(await isOpen(world)).toBe(true);
  });

  it("of an upgrade is a success if it is answered with 101, or with an ordinary error (D2)", async () => {
    const world = setup([breaker()], asUpstream);
    for (const status of [101, 403, 404, 101]) {
      await world.send("GET", POD);
      (await upgrade(world.send)).answer(status);
    }
    expect(await isOpen(world)).toBe(false);
  });

  it("of an upgrade whose client leaves frees its slot, always (D2)", async () => {
    const { send, refusal } = setup([{ kind: "in-flight", max: 1 }], asUpstream);
    const first = await upgrade(send);
    expect((await refusal("GET", POD)).code).toBe(429);
    first.leave();
    const second = await upgrade(send);
    second.answer(101);
    second.answer(101);
    await send("GET", POD);
  });

  const left = (waitedMs: number) => (call: Call) => {
    noteAnswerTime(call.record, waitedMs);
    return Promise.reject(new MeshError("ABORTED", "the client has left"));
  };

  it.each([
    ["1 s with slowerThan 1 s", 1_000, 1_000, false],
    ["longer than slowerThan", 1_001, 1_000, true],
    ["60 s without slowerThan", 60_000, undefined, false],
    ["longer than the API server itself waits", 60_001, undefined, true],
  ])(
    "is a failure if the client gives up an answer that is late: after %s (D8)",
    async (_name, waitedMs, slowerThanMs, opens) => {
      const world = setup([breaker(slowerThanMs === undefined ? {} : { slowerThanMs })], left(waitedMs));
      for (let i = 0; i < 2; i++) await expect(world.send("GET", POD)).rejects.toThrow("left");
      expect(await isOpen(world).catch(() => false)).toBe(opens);
    },
  );

  it("is a success if a PodDisruptionBudget forbids an eviction, and any other 429 is a failure (D9)", async () => {
    const busy = () => jsonReply({}, 429);
    const evictions = setup([breaker()], busy);
    for (let i = 0; i < 5; i++) await evictions.send("POST", `${POD}/eviction`, { body: "{}" });
    expect(await isOpen(evictions)).toBe(false);
    const deletes = setup([breaker()], busy);
    for (let i = 0; i < 2; i++) await deletes.send("DELETE", POD);
    expect(await isOpen(deletes)).toBe(true);
  });

  it("is slow by what the API server takes, and not by the proxy's own queues (D25)", async () => {
    const took = { ms: 0 };
    const world = setup([breaker({ slowerThanMs: 100 })], (call) => {
      noteAnswerTime(call.record, took.ms);
      return jsonReply({});
    });
    world.between.serve = async (call, next) => {
      const reply = await next(call);
      await world.clock.advance(5_000);
      return reply;
    };
    for (let i = 0; i < 3; i++) await world.send("GET", POD);
    expect(await isOpen(world)).toBe(false);
    took.ms = 101;
    for (let i = 0; i < 2; i++) await world.send("GET", POD);
    delete world.between.serve;
    expect(await isOpen(world)).toBe(true);
  });
});

describe("a bound of requests at once", () => {
  const MAX: LimiterSpec = { kind: "in-flight", max: 1 };
  const streamed = () => {
    const source = scriptedSource();
    return { source, reply: { status: 200, headers: {}, body: source } };
  };

  it("counts a request until the end of its answer", async () => {
    const { source, reply } = streamed();
    const { send, refusal } = setup([MAX], () => reply);
    const answer = await send("GET", "/api/v1/pods");
    (answer.body as ByteSource).open(recordingSink());
    expect((await refusal("GET", POD)).code).toBe(429);
    source.end();
    await send("GET", POD);
  });

  it("counts a watch until its answer begins", async () => {
    const { send } = setup([MAX], () => streamed().reply);
    for (let i = 0; i < 20; i++) await send("GET", "/api/v1/pods?watch=1");
    await send("GET", POD);
  });

  it("counts no request that failed", async () => {
    const { send } = setup([MAX], () => Promise.reject(new Error("broken")));
    for (let i = 0; i < 3; i++) await expect(send("GET", POD)).rejects.toThrow("broken");
  });
});

describe("what the proxy asks to serve one request", () => {
  const asked = (method: string, target: string) => {
    const { record, info } = callOf(method, target);
    return { ...record, info };
  };

  it("costs nothing if it is something else: the object before a write", async () => {
    const { send } = setup([
      { ...limitRule({ kind: "deny" }), match: { resources: [resourceRule({ verbs: ["get"] })], urls: [], http: [] } },
    ]);
    const record = asked("PATCH", POD);
    await send("GET", POD, { record: createRecord(parseRequestInfo("GET", POD), record) });
    await send("PATCH", POD, { record });
  });

  it("costs as much as the request if it is the same: lists by namespace", async () => {
    const { send, refusal, upstream } = setup([ONE]);
    const record = asked("GET", "/api/v1/pods");
    for (const target of ["/api/v1/pods?limit=1", "/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"])
      await send("GET", target, { record: createRecord(record.info, record) });
    await send("GET", "/api/v1/pods", { record });
    expect((await refusal("GET", "/api/v1/pods")).code).toBe(429);
    expect(upstream.calls).toHaveLength(4);
  });

  it("is refused as the watch if it is the list that begins a watch", async () => {
    const watches = { resources: [resourceRule({ verbs: ["watch"] })], urls: [], http: [] };
    const { refusal } = setup([limitRule({ kind: "deny" }, { match: watches })]);
    const record = asked("GET", "/api/v1/pods?watch=1");
    const list = createRecord(parseRequestInfo("GET", "/api/v1/pods"), record);
    expect(await refusal("GET", "/api/v1/pods", { record: list })).toMatchObject({ code: 429, errorCode: "BREAKER_OPEN" });
  });

  it("is refused every time if the request is refused", async () => {
    const { refusal } = setup([{ kind: "deny" }]);
    const record = asked("GET", "/api/v1/pods");
    for (let i = 0; i < 2; i++) expect((await refusal("GET", "/api/v1/pods", { record })).code).toBe(503);
  });

  it("passes for a watch that was open before its rules came", async () => {
    const { send, policies } = setup([]);
    const record = asked("GET", "/api/v1/pods?watch=1");
    await send("GET", "/api/v1/pods?watch=1", { record });
    policies.enforce({ limits: [limitRule({ kind: "deny" })], faults: [], egress: [] }, "next");
    await send("GET", "/api/v1/pods?watch=1&resourceVersion=7", { record: createRecord(record.info, record) });
  });
});

describe("a request that the proxy answers by several of its own", () => {
  const LIST = "/api/v1/pods";
  const PARTS = ["/api/v1/pods?limit=1", "/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"];
  const part = (call: Call, target: string): Call => {
    const info = parseRequestInfo("GET", target);
    return { ...call, target, info, record: createRecord(info, call.record) };
  };

  it("holds its slot until the end of its own answer", async () => {
    const { between, send, refusal } = setup([{ kind: "in-flight", max: 1 }]);
    const body = scriptedSource();
    between.serve = async (call, next) => {
      for (const target of PARTS) await next(part(call, target));
      return { status: 200, headers: {}, body };
    };
    const answer = await send("GET", LIST);
    (answer.body as ByteSource).open(recordingSink());
    delete between.serve;
    expect((await refusal("GET", POD)).code).toBe(429);
    body.end();
    await send("GET", POD);
  });

  it("counts as a failure if it fails as a whole, and not if one of them does", async () => {
    const trigger = { consecutive: 2, minimumRequests: 1, windowMs: 1_000 };
    const statuses: number[] = [];
    const { between, send, refusal } = setup([{ kind: "breaker", trigger, sleepMs: 1_000 }], () =>
      jsonReply({}, statuses.shift() ?? 200),
    );
    const serveThen = (status: number) => {
      between.serve = async (call, next) => {
        for (const target of PARTS) await next(part(call, target));
        return jsonReply({}, status);
      };
    };
    serveThen(200);
    for (let i = 0; i < 3; i++) {
      statuses.push(500, 500, 500);
      await send("GET", LIST);
    }
    serveThen(500);
    for (let i = 0; i < 2; i++) await send("GET", LIST);
    delete between.serve;
    expect((await refusal("GET", POD)).errorCode).toBe("BREAKER_OPEN");
  });

  it("keeps no slot for what is sent behind its answer", async () => {
    const { between, send } = setup([{ kind: "in-flight", max: 1 }]);
    let later = async () => jsonReply({});
    between.serve = async (call, next) => {
      later = async () => next(part(call, LIST));
      return jsonReply({});
    };
    await send("GET", LIST);
    await later();
    delete between.serve;
    await send("GET", POD);
  });
});
