import { describe, expect, it } from "vitest";
import { limitRule, policyRequest, resourceRule } from "../../../test/support/policies.ts";
import type { Outcome } from "../limiters/limiter.ts";
import type { BreakerSpec, LimiterSpec, LimitRule } from "../policy.ts";
import { createEngine, type Engine } from "./engine.ts";

const GET = "GET /api/v1/namespaces/a/pods/p";
const DELETE = "DELETE /api/v1/namespaces/a/pods/p";
const OK: Outcome = { kind: "answered", status: 200, tookMs: 1 };
const broken = (status = 500): Outcome => ({ kind: "answered", status, tookMs: 1 });

function setup(...rules: readonly LimitRule[]) {
  const time = { ms: 1_000_000 };
  const engine = createEngine({ now: () => time.ms });
  engine.update(rules);
  return { time, engine, ...clientOf(engine) };
}

function clientOf(engine: Engine) {
  const send = (line = GET, isLock = false) => engine.decide(policyRequest(line, isLock));
  /** Sends the request and lets it end with this outcome. Returns the decision. */
  const done = (outcome: Outcome = OK, line = GET) => {
    const decision = send(line);
    if (decision.kind === "refused") return { kind: decision.refusal.kind, waitMs: decision.refusal.waitMs };
    decision.permit.settle(outcome);
    decision.permit.release();
    return { kind: "pass" };
  };
  return { send, done };
}

const bucket = (perSecond: number, burst: number): LimiterSpec => ({ kind: "bucket", perSecond, burst });

describe("a bucket", () => {
  it("lets the burst through, then its rate", () => {
    const { done, time } = setup(limitRule(bucket(2, 3)));
    expect([done(), done(), done(), done()]).toEqual([...Array(3).fill({ kind: "pass" }), { kind: "limited", waitMs: 500 }]);
    time.ms += 500;
    expect(done().kind).toBe("pass");
    expect(done().kind).toBe("limited");
  });

  it("is not emptied by refused requests: a flood does not extend the wait", () => {
    const { done, time } = setup(limitRule(bucket(1, 1)));
    done();
    time.ms += 750;
    for (let i = 0; i < 1_000; i++) expect(done()).toEqual({ kind: "limited", waitMs: 250 });
    time.ms += 250;
    expect(done().kind).toBe("pass");
  });

  it("is emptied by a deletecollection, which passes a full bucket only", () => {
    const { done, time } = setup(limitRule(bucket(1, 5)));
    const all = "DELETE /api/v1/namespaces/a/pods";
    done();
    expect(done(OK, all)).toEqual({ kind: "limited", waitMs: 1_000 });
    time.ms += 1_000;
    expect(done(OK, all).kind).toBe("pass");
    expect(done().kind).toBe("limited");
  });

  it("with a burst of 0 refuses everything, and promises no time", () => {
    expect(setup(limitRule(bucket(1, 0))).done()).toEqual({ kind: "limited", waitMs: Number.POSITIVE_INFINITY });
  });

  it("does not run backwards with the clock", () => {
    const { done, time } = setup(limitRule(bucket(1, 1)));
    done();
    time.ms -= 60_000;
    expect(done()).toEqual({ kind: "limited", waitMs: 1_000 });
  });
});

describe("several rules", () => {
  it("are all asked before one is charged: a request that one refuses costs nothing in the other", () => {
    const closed = limitRule(
      { kind: "deny" },
      { name: "no deletes", match: { resources: [resourceRule({ verbs: ["delete"] })], urls: [], http: [] } },
    );
    const { done } = setup(limitRule(bucket(0, 1), { name: "one" }), closed);
    for (let i = 0; i < 5; i++) expect(done(OK, DELETE).kind).toBe("open");
    expect(done().kind).toBe("pass");
  });

  it("refuse by the one that lasts longest", () => {
    const { send, done } = setup(limitRule(bucket(1, 1), { name: "short" }), limitRule(bucket(0.1, 1), { name: "long" }));
    done();
    const decision = send();
    expect(decision).toMatchObject({ kind: "refused", rule: { origin: { rule: "long" } }, refusal: { waitMs: 10_000 } });
  });

  it("keep their state when another one is edited, and lose it when their limiter is", () => {
    const one = limitRule(bucket(0, 1), { name: "one" });
    const { done, engine } = setup(one, limitRule(bucket(1, 100), { name: "two" }));
    done();
    engine.update([one, limitRule(bucket(1, 200), { name: "two" })]);
    expect(done().kind).toBe("limited");
    engine.update([limitRule(bucket(0, 2), { name: "one" })]);
    expect(done().kind).toBe("pass");
  });

  it("in the shadow refuse nothing and are asked all the same", () => {
    const { send } = setup(limitRule({ kind: "deny" }, { mode: "Shadow" }));
    expect(send()).toMatchObject({ kind: "permitted", decisions: [{ decision: { kind: "open" } }] });
  });

  it("in the shadow take tokens as if they were alone", () => {
    const { send } = setup(limitRule(bucket(0, 2), { mode: "Shadow" }));
    const kinds = [send(), send(), send()].map(({ decisions }) => decisions[0]?.decision.kind);
    expect(kinds).toEqual(["pass", "pass", "limited"]);
  });
});

describe("a bound of requests at once", () => {
  it("holds a slot from the request to the end of its answer", () => {
    const { send, done } = setup(limitRule({ kind: "in-flight", max: 1 }));
    const first = send();
    expect(done().kind).toBe("limited");
    if (first.kind === "permitted") {
      first.permit.settle(OK);
      expect(done().kind).toBe("limited");
      first.permit.release();
      first.permit.release();
    }
    expect(send().kind).toBe("permitted");
    expect(send().kind).toBe("refused");
  });
});

describe("backoff", () => {
  const spec: LimiterSpec = { kind: "backoff", baseMs: 100, maxMs: 350, failures: 2 };

  it("doubles from the base to the bound with each further failure of the same object", () => {
    const { done, time } = setup(limitRule(spec));
    const waits: number[] = [];
    done(broken());
    for (let i = 0; i < 4; i++) {
      expect(done(broken()).kind).toBe("pass");
      const { waitMs = 0 } = done() as { waitMs?: number };
      waits.push(waitMs);
      time.ms += waitMs;
    }
    expect(waits).toEqual([100, 200, 350, 350]);
    expect(done(broken(), DELETE).kind).toBe("pass");
  });

  it.each([200, 404, 409, 403, 410])("is over after an answer %i", (status) => {
    const { done } = setup(limitRule(spec));
    done(broken());
    done(broken(status));
    done(broken());
    expect(done().kind).toBe("pass");
  });

  it.each([500, 503, 429])("counts %i as a failure", (status) => {
    const { done } = setup(limitRule(spec));
    done(broken(status));
    done(broken(status));
    expect(done().kind).toBe("limited");
  });

  it("learns nothing of a client that left", () => {
    const { done, send } = setup(limitRule(spec));
    done(broken());
    const left = send();
    if (left.kind === "permitted") left.permit.release();
    done({ kind: "failed" });
    expect(done().kind).toBe("limited");
  });
});

describe("a breaker", () => {
  const rate: BreakerSpec = { kind: "breaker", bucket: { perSecond: 1, burst: 2 }, sleepMs: 60_000 };

  it("opens when its bucket runs out, refuses everything for its time, and closes after one answer", () => {
    const { done, send, time } = setup(limitRule(rate));
    done();
    done();
    expect(done()).toEqual({ kind: "open", waitMs: 60_000 });
    time.ms += 59_000;
    expect(done()).toEqual({ kind: "open", waitMs: 1_000 });
    time.ms += 1_000;
    const probe = send();
    expect(probe.kind).toBe("permitted");
    expect(done().kind).toBe("open");
    if (probe.kind === "permitted") probe.permit.settle(OK);
    expect(done().kind).toBe("pass");
  });

  it("lets the next request try if the client of the first one left", () => {
    const { done, send, time } = setup(limitRule(rate));
    for (let i = 0; i < 3; i++) done();
    time.ms += 60_000;
    const probe = send();
    if (probe.kind === "permitted") probe.permit.release();
    expect(done().kind).toBe("pass");
  });

  it("is decided by the newest request that tries, and not by a late answer of an earlier one", () => {
    const { send, done, time, engine } = setup(limitRule(rate));
    const open = () => [0, 1, 2].map(() => done());
    open();
    time.ms += 60_000;
    const late = send();
    engine.update([limitRule(rate, { recovery: "by hand" })]);
    open();
    time.ms += 60_000;
    send();
    if (late.kind === "permitted") late.permit.settle(OK);
    expect(done().kind).toBe("open");
  });

  const failing = (more: Partial<BreakerSpec["trigger"]>): BreakerSpec => ({
    kind: "breaker",
    trigger: { minimumRequests: 10, windowMs: 10_000, ...more },
    sleepMs: 1_000,
  });

  it("opens after failures in a row", () => {
    const { done } = setup(limitRule(failing({ consecutive: 3 })));
    for (const outcome of [broken(), broken(), OK, broken(), broken(404), broken(), broken()]) done(outcome);
    expect(done({ kind: "failed" }).kind).toBe("pass");
    expect(done().kind).toBe("open");
  });

  it("opens at a share of failures in its window, with enough requests", () => {
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

  it("keeps its state when its mode changes: what opened in the shadow refuses from then on", () => {
    const { done, engine } = setup(limitRule(rate, { mode: "Shadow" }));
    for (let i = 0; i < 3; i++) expect(done().kind).toBe("pass");
    engine.update([limitRule(rate)]);
    expect(done()).toEqual({ kind: "open", waitMs: 60_000 });
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

  it("without a time stays open until a person asks for it to close", () => {
    const { sleepMs: _, ...manual } = rate;
    const { done, engine } = setup(limitRule(manual, { recovery: "once" }));
    for (let i = 0; i < 3; i++) done();
    expect(done()).toEqual({ kind: "open", waitMs: Number.POSITIVE_INFINITY });
    engine.update([limitRule(manual, { recovery: "once" })]);
    expect(done().kind).toBe("open");
    engine.update([limitRule(manual, { recovery: "twice" })]);
    expect([done().kind, done().kind]).toEqual(["pass", "pass"]);
    expect(engine.openBreakers()).toEqual([]);
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

  it("tells each change", () => {
    const changes: string[] = [];
    const time = { ms: 1_000 };
    const engine = createEngine({ now: () => time.ms, changed: () => changes.push(engine.states()[0]?.breaker?.kind ?? "none") });
    engine.update([limitRule(rate)]);
    const { done } = clientOf(engine);
    for (let i = 0; i < 5; i++) done();
    time.ms += 60_000;
    done();
    expect(changes).toEqual(["closed", "open", "probing", "closed"]);
  });
});

describe("the operator's lock", () => {
  const LEASE = "PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/l";

  it("is exempt from rules about everything", () => {
    expect(setup(limitRule({ kind: "deny" })).send(LEASE, true).kind).toBe("permitted");
    expect(setup(limitRule({ kind: "deny" })).send("PUT /api/v1/namespaces/a/configmaps/l", true).kind).toBe("permitted");
  });

  it("is limited by a rule that names leases and their group", () => {
    const named = {
      resources: [resourceRule({ apiGroups: ["coordination.k8s.io"], resources: ["leases"] })],
      urls: [],
      http: [],
    };
    expect(setup(limitRule({ kind: "deny" }, { match: named })).send(LEASE, true).kind).toBe("refused");
  });
});
