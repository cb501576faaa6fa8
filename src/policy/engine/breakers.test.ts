import { describe, expect, it } from "vitest";
import { limitRule, policyRequest, resourceRule } from "../../../test/support/policies.ts";
import type { Outcome } from "../limiters/limiter.ts";
import type { BreakerSpec, LimitRule } from "../policy.ts";
import { MAX_ABSENT, type Transition } from "./breaker-memory.ts";
import { createEngine, type Engine } from "./engine.ts";

const GET = "GET /api/v1/namespaces/a/pods/p";
const DELETE = "DELETE /api/v1/namespaces/a/pods/p";
const OK: Outcome = { kind: "answered", status: 200, tookMs: 1 };
const broken = (status = 500): Outcome => ({ kind: "answered", status, tookMs: 1 });

function setup(...rules: readonly LimitRule[]) {
  const time = { ms: 1_000_000 };
  const told: Transition[] = [];
  const engine = createEngine({ now: () => time.ms, changed: (transitions) => told.push(...transitions) });
  engine.update(rules);
  /** What has been told since the last call: the state, its cause and its figure. */
  const moves = () => told.splice(0).map(({ to, reason, figure }) => `${to} ${reason}${figure === "" ? "" : `: ${figure}`}`);
  /** Time passes without a request, and the timer of the engine fires. */
  const pass = (ms: number) => {
    const endMs = time.ms + ms;
    while (engine.dueMs <= endMs) {
      time.ms = engine.dueMs;
      engine.advance();
    }
    time.ms = endMs;
  };
  const state = () => engine.states()[0]?.state;
  return { time, engine, moves, pass, state, ...clientOf(engine) };
}

function clientOf(engine: Engine) {
  const send = (line = GET) => engine.decide(policyRequest(line));
  /** Sends a request that passes, and returns how to end it. */
  const begin = () => {
    const decision = send();
    if (decision.kind === "refused") return expect.fail("the request is refused");
    return decision.permit;
  };
  /** Sends the request and lets it end with this outcome. Returns the decision. */
  const done = (outcome: Outcome = OK, line = GET) => {
    const decision = send(line);
    if (decision.kind === "refused") return { kind: decision.refusal.kind, waitMs: decision.refusal.waitMs };
    decision.permit.settle(outcome);
    decision.permit.release();
    return { kind: "pass" };
  };
  return { send, begin, done };
}

const rate: BreakerSpec = { kind: "breaker", bucket: { perSecond: 1, burst: 2 }, sleepMs: 60_000 };
const { sleepMs: _, ...manual } = rate;
const failing = (more: Partial<BreakerSpec["trigger"]> = {}): BreakerSpec => ({
  kind: "breaker",
  trigger: { minimumRequests: 10, windowMs: 10_000, ...more },
  sleepMs: 1_000,
});
const ONE_FAILURE = failing({ consecutive: 1 });

describe("an open breaker", () => {
  it("refuses everything for its time, and is half-open then without a request (D7)", () => {
    const { done, pass, state, moves } = setup(limitRule(rate));
    done();
    done();
    expect(done()).toEqual({ kind: "open", waitMs: 60_000 });
    pass(59_000);
    expect([done(), state()]).toEqual([{ kind: "open", waitMs: 1_000 }, "Opened"]);
    pass(1_000);
    expect(state()).toBe("HalfOpen");
    expect(moves()).toEqual([
      "Opened rate: no token left: burst 2, 1 each second",
      "HalfOpen window: no token left: burst 2, 1 each second",
    ]);
  });

  it("is half-open for a request that comes before the timer", () => {
    const { done, time, state } = setup(limitRule(ONE_FAILURE));
    done(broken());
    time.ms += 1_000;
    expect([done().kind, state()]).toEqual(["pass", "HalfOpen"]);
  });

  it("without a time stays open until a person asks for it to close, and has all its tokens then", () => {
    const { done, engine, pass } = setup(limitRule(manual, { recovery: "once" }));
    for (let i = 0; i < 3; i++) done();
    pass(1e9);
    expect([done(), engine.dueMs]).toEqual([{ kind: "open", waitMs: Number.POSITIVE_INFINITY }, Number.POSITIVE_INFINITY]);
    engine.update([limitRule(manual, { recovery: "twice" })]);
    expect([done().kind, done().kind, done().kind]).toEqual(["pass", "pass", "open"]);
  });
});

describe("a half-open breaker", () => {
  /** Its bucket is no matter here. */
  function halfOpen(spec: BreakerSpec = ONE_FAILURE) {
    const world = setup(limitRule(spec));
    world.done(broken());
    world.pass(spec.sleepMs ?? 0);
    expect(world.state()).toBe("HalfOpen");
    world.moves();
    /** As many requests as pass at a time. */
    const begun = () => {
      const permits = [];
      for (let next = world.send(); next.kind === "permitted"; next = world.send()) permits.push(next.permit);
      return permits;
    };
    return { ...world, begun };
  }

  it("lets 1 request through at a time, then 2, 4 and 8, and closes after the last round", () => {
    const { begun, state, moves } = halfOpen();
    const widths: number[] = [];
    while (state() === "HalfOpen") {
      const permits = begun();
      widths.push(permits.length);
      for (const { settle } of permits) settle(OK);
    }
    expect([widths, moves()]).toEqual([[1, 2, 4, 8], ["Closed tests"]]);
  });

  it("refuses what comes beside the tests for a second", () => {
    const { begin, done } = halfOpen();
    begin();
    expect(done()).toEqual({ kind: "open", waitMs: 1_000 });
  });

  it("opens again at a failure in any round, for its whole time", () => {
    const { begun, done, moves, state, pass } = halfOpen();
    for (const { settle } of begun()) settle(OK);
    const [first, second] = begun();
    first?.settle(OK);
    second?.settle(broken(503));
    expect(done()).toEqual({ kind: "open", waitMs: 1_000 });
    expect(moves()).toEqual(["Opened failures: a request that tested the server failed, with 503"]);
    pass(1_000);
    expect([state(), begun().length]).toEqual(["HalfOpen", 1]);
  });

  it("is not wedged by clients that leave, however many", () => {
    const { begin, state, done } = halfOpen();
    for (let i = 0; i < 1_000; i++) begin().release();
    for (let i = 0; i < 15; i++) expect(done().kind).toBe("pass");
    expect(state()).toBe("Closed");
  });

  it("is not wedged by a request that never ends: its place is free after a minute", () => {
    const { begin, pass, send } = halfOpen();
    begin();
    pass(59_999);
    expect(send().kind).toBe("refused");
    pass(1);
    expect(send().kind).toBe("permitted");
  });

  it("closes with the first success once it has been half-open for its time again, so that a quiet one closes", () => {
    const { done, pass, state } = halfOpen();
    done();
    pass(999);
    done();
    expect(state()).toBe("HalfOpen");
    pass(1);
    done();
    expect(state()).toBe("Closed");
  });

  it("learns nothing of requests that began before", () => {
    const { begin, done, pass, state } = setup(limitRule(ONE_FAILURE));
    const [early, late] = [begin(), begin()];
    done(broken());
    pass(1_000);
    early.settle(OK);
    late.settle(broken());
    expect(state()).toBe("HalfOpen");
    const test = begin();
    test.settle(broken());
    pass(1_000);
    test.settle(OK);
    expect(state()).toBe("HalfOpen");
  });

  it("opens again if its bucket has run out: its tokens come back by their rate only", () => {
    const { done, pass, moves } = setup(limitRule({ ...rate, sleepMs: 1_000 }));
    for (let i = 0; i < 3; i++) done();
    pass(1_000);
    moves();
    expect([done().kind, done()]).toEqual(["pass", { kind: "open", waitMs: 1_000 }]);
    expect(moves()).toEqual(["Opened rate: no token left: burst 2, 1 each second"]);
  });
});

describe("an edit", () => {
  const opened = (spec: BreakerSpec, changes: Partial<LimitRule> = {}) => {
    const world = setup(limitRule(spec, changes));
    for (let i = 0; i < 3; i++) world.done(broken());
    expect(world.state()).toBe("Opened");
    world.moves();
    return world;
  };

  it.each<[string, BreakerSpec]>([
    ["of the window", { ...rate, sleepMs: 86_400_000 }],
    ["to Manual", manual],
    ["of the bucket", { ...rate, bucket: { perSecond: 1_000, burst: 1_000 } }],
    ["from a bucket to a trigger", { ...ONE_FAILURE, sleepMs: 60_000 }],
    ["of all of it", { ...failing({ percent: 1 }), sleepMs: 7_200_000 }],
  ])("%s closes no open breaker (D10)", (_name, next) => {
    const { engine, done, state } = opened(rate);
    engine.update([limitRule(next)]);
    expect([state(), done().kind]).toEqual(["Opened", "open"]);
    engine.update([limitRule(rate)]);
    expect([state(), done()]).toEqual(["Opened", { kind: "open", waitMs: 60_000 }]);
  });

  it("from Manual to a window lets it end by that window, counted from its opening (D10)", () => {
    const { engine, state, pass, moves } = opened(manual);
    pass(50_000);
    engine.update([limitRule(rate)]);
    expect(state()).toBe("Opened");
    pass(10_000);
    expect(state()).toBe("HalfOpen");
    engine.update([limitRule({ ...rate, sleepMs: 3_600_000 })]);
    expect(state()).toBe("Opened");
    engine.update([limitRule({ ...rate, sleepMs: 1_000 })]);
    expect(moves().map((move) => move.split(":")[0])).toEqual(["HalfOpen window", "Opened edit", "HalfOpen window"]);
  });

  it.each<[string, LimitRule[]]>([
    ["off", []],
    ["in the shadow", [limitRule(manual, { mode: "Shadow" })]],
    ["without a breaker", [limitRule({ kind: "bucket", perSecond: 1, burst: 2 })]],
    ["denied", [limitRule({ kind: "deny" })]],
  ])("that has the rule %s for a time finds its breaker open (D10)", (_name, between) => {
    const { engine, done, pass } = opened(manual);
    engine.update(between);
    pass(1e9);
    engine.update([limitRule(manual)]);
    expect(done()).toEqual({ kind: "open", waitMs: Number.POSITIVE_INFINITY });
    engine.update(between);
    engine.update([limitRule(manual, { recovery: "closed by hand" })]);
    expect(done().kind).toBe("pass");
  });

  it("that removes the text for recovery closes nothing, and neither does its return (D10)", () => {
    const { engine, done } = opened(manual, { recovery: "an old text" });
    engine.update([limitRule(manual, { recovery: "" })]);
    expect(done().kind).toBe("open");
    engine.update([limitRule(manual, { recovery: "an old text" })]);
    expect(done().kind).toBe("open");
    engine.update([limitRule(manual, { recovery: "a new text" })]);
    expect(done().kind).toBe("pass");
  });

  it("keeps its state when its mode changes: what opened in the shadow refuses from then on", () => {
    const { done, engine } = setup(limitRule(rate, { mode: "Shadow" }));
    for (let i = 0; i < 3; i++) expect(done().kind).toBe("pass");
    engine.update([limitRule(rate)]);
    expect(done()).toEqual({ kind: "open", waitMs: 60_000 });
  });

  it("keeps breakers of rules that are gone up to a bound, and tells which one it forgets", () => {
    const names = Array.from({ length: MAX_ABSENT + 1 }, (_, at) => `rule-${at}`);
    const forgotten: string[] = [];
    const engine = createEngine({ now: () => 1_000, forgotten: ({ rule }) => forgotten.push(rule) });
    engine.update(names.map((name) => limitRule(manual, { name })));
    const { done } = clientOf(engine);
    for (let i = 0; i < 3; i++) done();
    expect(engine.openBreakers()).toHaveLength(names.length);
    engine.update([]);
    expect([engine.openBreakers().length, forgotten]).toEqual([MAX_ABSENT, ["rule-0"]]);
    engine.update(names.map((name) => limitRule(manual, { name })));
    expect(engine.states().filter(({ state }) => state === "Opened")).toHaveLength(MAX_ABSENT);
  });

  it("stays open over a restart, however many breakers of rules that are gone are remembered", () => {
    const names = Array.from({ length: MAX_ABSENT }, (_, at) => `gone-${at}`);
    const engine = createEngine({ now: () => 1_000 });
    const { done } = clientOf(engine);
    engine.update(names.map((name) => limitRule(manual, { name })));
    for (let i = 0; i < 3; i++) done();
    engine.update([limitRule(manual)]);
    for (let i = 0; i < 3; i++) done();
    const after = createEngine({ now: () => 1_000, stored: engine.openBreakers() });
    after.update([limitRule(manual)]);
    expect(after.states()[0]?.state).toBe("Opened");
  });
});

describe("a breaker says why it has opened", () => {
  it.each<[string, BreakerSpec, Outcome[]]>([
    ["3 requests in a row failed, the last with 503", failing({ consecutive: 3 }), [broken(), broken(), broken(503)]],
    [
      "2 of 4 requests failed within 10 s, the last without an answer",
      failing({ percent: 50, minimumRequests: 4 }),
      [OK, broken(), OK, { kind: "failed" }],
    ],
    [
      "a request failed, after 2.5 s",
      failing({ consecutive: 1, slowerThanMs: 1_000 }),
      [{ kind: "answered", status: 200, tookMs: 2_540 }],
    ],
    [
      "a request failed, without an answer for 30 s",
      failing({ consecutive: 1, slowerThanMs: 1_000 }),
      [{ kind: "abandoned", afterMs: 30_000 }],
    ],
    ["no token left: burst 1, 1 each 10 s", { kind: "breaker", bucket: { perSecond: 0.1, burst: 1 } }, [OK, OK]],
    ["no token left: burst 1, and none comes back", { kind: "breaker", bucket: { perSecond: 0, burst: 1 } }, [OK, OK]],
  ])("%s", (figure, spec, outcomes) => {
    const { done, engine } = setup(limitRule(spec));
    for (const outcome of outcomes) done(outcome);
    expect(engine.states()).toMatchObject([{ state: "Opened", opened: { figure } }]);
  });

  it("if a deletecollection found too few tokens", () => {
    const { done, engine } = setup(limitRule({ kind: "breaker", bucket: { perSecond: 1, burst: 5 } }));
    done();
    done(OK, "DELETE /api/v1/namespaces/a/pods");
    expect(engine.states()[0]?.opened?.figure).toBe("a deletecollection takes all tokens: 4 of 5 were left");
  });
});

describe("a trigger", () => {
  it("opens after failures in a row", () => {
    const { done } = setup(limitRule(failing({ consecutive: 3 })));
    for (const outcome of [broken(), broken(), OK, broken(), broken(404), broken(), broken()]) done(outcome);
    expect(done({ kind: "failed" }).kind).toBe("pass");
    expect(done().kind).toBe("open");
  });

  it("opens at a percentage of failures in its window, with enough requests", () => {
    const { done, time } = setup(limitRule(failing({ percent: 50 })));
    for (let i = 0; i < 9; i++) done(broken());
    expect(done(OK).kind).toBe("pass");
    time.ms += 11_000;
    for (let i = 0; i < 5; i++) done(OK);
    for (let i = 0; i < 5; i++) expect(done(broken()).kind).toBe("pass");
    expect(done().kind).toBe("open");
  });

  it("opens at slow answers, and stays open while the request that tries is slow", () => {
    const { done, time } = setup(limitRule(failing({ consecutive: 1, slowerThanMs: 100 })));
    const slow: Outcome = { kind: "answered", status: 200, tookMs: 101 };
    done(slow);
    expect(done().kind).toBe("open");
    time.ms += 1_000;
    expect(done(slow).kind).toBe("pass");
    expect(done()).toEqual({ kind: "open", waitMs: 1_000 });
    time.ms += 1_000;
    done(OK);
    expect(done().kind).toBe("pass");
  });
});

describe("a breaker", () => {
  describe("beside a rule that refuses everything", () => {
    const ALL = "DELETE /api/v1/namespaces/a/pods";
    const deletes = { match: { resources: [resourceRule({ verbs: ["delete"] })], urls: [], http: [] } };
    const forbidden = (mode: LimitRule["mode"]) =>
      limitRule(
        { kind: "deny" },
        { mode, name: "deny", match: { ...deletes.match, resources: [resourceRule({ verbs: ["deletecollection"] })] } },
      );
    const guard = limitRule({ kind: "breaker", bucket: { perSecond: 1, burst: 2 }, sleepMs: 10_000 }, deletes);

    it("is not opened by requests that the other rule refuses anyway", () => {
      const { done } = setup(forbidden("Enforce"), guard);
      done(OK, DELETE);
      for (let i = 0; i < 3; i++) expect(done(OK, ALL)).toEqual({ kind: "open", waitMs: Number.POSITIVE_INFINITY });
      expect(done(OK, DELETE).kind).toBe("pass");
    });

    it("is opened by them if the other rule is in the shadow", () => {
      const { done } = setup(forbidden("Shadow"), guard);
      done(OK, DELETE);
      expect(done(OK, ALL)).toEqual({ kind: "open", waitMs: 10_000 });
      expect(done(OK, DELETE).kind).toBe("open");
    });

    it("opens all the same with a limit of the rate that refuses the request", () => {
      const limit = limitRule({ kind: "bucket", perSecond: 1, burst: 2 }, { name: "limit" });
      const { done, time } = setup(limit, guard);
      for (let i = 0; i < 3; i++) done(OK, DELETE);
      time.ms += 5_000;
      expect(done(OK, DELETE).kind).toBe("open");
    });
  });

  it("that opens again after an edit of another rule closes again", () => {
    const other = (burst: number) => limitRule({ kind: "bucket", perSecond: 1_000, burst }, { name: "other" });
    const { done, engine, time } = setup(limitRule(rate), other(100));
    for (let round = 1; round <= 3; round++) {
      while (done().kind === "pass");
      engine.update([other(100 + round), limitRule(rate)]);
      time.ms += 59_999;
      expect(done()).toEqual({ kind: "open", waitMs: 1 });
      time.ms += 1;
      expect(done().kind).toBe("pass");
    }
  });

  it("stays open over a restart of the process, and closes if a person asked in between", () => {
    const { done, engine, time } = setup(limitRule(rate));
    for (let i = 0; i < 3; i++) done();
    const after = createEngine({ now: () => time.ms + 1_000, stored: engine.openBreakers() });
    after.update([limitRule(rate)]);
    expect(clientOf(after).done()).toEqual({ kind: "open", waitMs: 59_000 });
    const recovered = createEngine({ now: () => time.ms, stored: engine.openBreakers() });
    recovered.update([limitRule(rate, { recovery: "asked" })]);
    expect(clientOf(recovered).done().kind).toBe("pass");
  });

  it.each([-1e9, -36e6, -1, 0, 30_000, 1e9])(
    "ends within its time after a restart with a clock that is %i ms off (D11)",
    (offMs) => {
      const { done, engine, time } = setup(limitRule(rate));
      for (let i = 0; i < 3; i++) done();
      const restarted = { ms: time.ms + offMs };
      const after = createEngine({ now: () => restarted.ms, stored: engine.openBreakers() });
      after.update([limitRule(rate)]);
      const client = clientOf(after);
      expect(client.done()).toEqual(
        offMs < 60_000 ? { kind: "open", waitMs: Math.min(60_000, 60_000 - offMs) } : { kind: "pass" },
      );
      restarted.ms += 60_000;
      expect(client.done().kind).toBe("pass");
    },
  );
});
