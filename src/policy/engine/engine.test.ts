import { describe, expect, it } from "vitest";
import { limitRule, policyRequest, resourceRule } from "../../../test/support/policies.ts";
import type { Outcome } from "../limiters/limiter.ts";
import type { LimiterSpec, LimitRule } from "../policy.ts";
import { createEngine, type Engine } from "./engine.ts";

const GET = "GET /api/v1/namespaces/a/pods/p";
const DELETE = "DELETE /api/v1/namespaces/a/pods/p";
const OK: Outcome = { kind: "answered", status: 200, tookMs: 1 };
const broken = (status = 500): Outcome => ({ kind: "answered", status, tookMs: 1 });

function setup(...rules: readonly LimitRule[]) {
  const time = { ms: 1_000_000 };
  const counters = { pass: { value: 0 }, limited: { value: 0 }, open: { value: 0 } };
  const engine = createEngine({ now: () => time.ms, countersOf: () => counters });
  engine.update(rules);
  /** How often the rules have decided, all together. */
  const decided = () => ({ pass: counters.pass.value, limited: counters.limited.value, open: counters.open.value });
  return { time, engine, decided, ...clientOf(engine) };
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

  it("keep their tokens over every edit, as far as there is room, and their requests and failures (D10)", () => {
    const one = limitRule(bucket(0, 1), { name: "one" });
    const { done, send, engine } = setup(one, limitRule(bucket(1, 100), { name: "two" }));
    done();
    engine.update([one, limitRule(bucket(1, 200), { name: "two" })]);
    expect(done().kind).toBe("limited");
    engine.update([limitRule(bucket(0, 2), { name: "one" })]);
    expect(done().kind).toBe("limited");
    engine.update([limitRule(bucket(0, 5), { name: "new" }), limitRule({ kind: "in-flight", max: 2 }, { name: "at once" })]);
    engine.update([limitRule(bucket(0, 4), { name: "new" }), limitRule({ kind: "in-flight", max: 3 }, { name: "at once" })]);
    expect([1, 2, 3, 4].map(() => send().kind)).toEqual([...Array(3).fill("permitted"), "refused"]);
  });

  it("in the shadow refuse nothing and are asked all the same", () => {
    const { send, decided } = setup(limitRule({ kind: "deny" }, { mode: "Shadow" }));
    expect([send().kind, decided()]).toEqual(["permitted", { pass: 0, limited: 0, open: 1 }]);
  });

  it("in the shadow take tokens as if they were alone", () => {
    const { send, decided } = setup(limitRule(bucket(0, 2), { mode: "Shadow" }));
    for (let i = 0; i < 3; i++) expect(send().kind).toBe("permitted");
    expect(decided()).toEqual({ pass: 2, limited: 1, open: 0 });
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
