// Any order of requests, answers, waits, edits, timers and restarts (with a clock that jumps) against the engine of policies: no bucket ever
// lets more through than its burst and its rate allow, no bound of requests at once is exceeded, and a breaker that is not closed closes only
// by successes, one ramp at a time. And the other way round: every wait ends, and a breaker closes within a bound once its server is healthy.
import fc from "fast-check";
import { it } from "vitest";
import type { Transition } from "../../src/policy/engine/breaker-memory.ts";
import { createEngine, type Engine } from "../../src/policy/engine/engine.ts";
import type { Permit } from "../../src/policy/engine/permit.ts";
import { MAX_WIDTH } from "../../src/policy/limiters/ramp.ts";
import type { BreakerSpec, LimitRule } from "../../src/policy/policy.ts";
import { FUZZ_SEED, shareOf } from "../support/fuzz.ts";
import { limitRule, policyRequest } from "../support/policies.ts";

const PER_SECOND = 5;
const BURST = 7;
const MAX = 3;
/** The windows that an edit chooses from; Infinity: Manual. */
const SLEEPS = [500, 2_000, 10_000, Number.POSITIVE_INFINITY] as const;
const TEST_WAIT_MS = 1_000;
/** How long the ramp keeps the place of a request without an outcome. */
const FORGOTTEN_MS = 60_000;

const BUCKET = limitRule({ kind: "bucket", perSecond: PER_SECOND, burst: BURST }, { name: "bucket" });
const IN_FLIGHT = limitRule({ kind: "in-flight", max: MAX }, { name: "in-flight" });
const REQUEST = policyRequest("GET /api/v1/namespaces/a/pods/p");

const breakerSpec = (sleepMs: number, burst?: number): BreakerSpec => ({
  kind: "breaker",
  trigger: { consecutive: 2, minimumRequests: 1, windowMs: 1_000 },
  ...(burst !== undefined && { bucket: { perSecond: PER_SECOND, burst } }),
  ...(Number.isFinite(sleepMs) && { sleepMs }),
});

type Step =
  | { readonly kind: "send" }
  | { readonly kind: "end"; readonly which: number; readonly status: number | "left" | "failed" }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "edit"; readonly sleepMs: number; readonly burst: number | undefined }
  | { readonly kind: "mode"; readonly mode: "Enforce" | "Shadow" | "Disabled" }
  | { readonly kind: "prune" }
  | { readonly kind: "restart"; readonly jumpMs: number };

const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: fc.constant<Step>({ kind: "send" }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      which: fc.nat(),
      status: fc.constantFrom<(number | "left" | "failed")[]>(200, 200, 404, 500, 429, "left", "failed"),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 3_000 })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("edit" as const),
      sleepMs: fc.constantFrom(...SLEEPS),
      burst: fc.constantFrom(undefined, 3, 50),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("mode" as const),
      mode: fc.constantFrom<("Enforce" | "Shadow" | "Disabled")[]>("Enforce", "Enforce", "Shadow", "Disabled"),
    }),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "prune" }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("restart" as const),
      jumpMs: fc.constantFrom(0, 0, -1, -3_600_000, 700, 3_600_000),
    }),
  },
);

interface Passed {
  readonly permit: Permit;
  readonly atMs: number;
  /** The half-open period that the request has tested; 0 for none. */
  readonly period: number;
}

/** The engine with what an observer outside has seen of it. */
class Run {
  ms = 1e9;
  readonly #others: readonly LimitRule[];
  #engine: Engine;
  #startedMs = this.ms;
  #passed: number[] = [];
  #open: Passed[] = [];
  #sleepMs: number = 2_000;
  #burst: number | undefined;
  #mode: "Enforce" | "Shadow" | "Disabled" = "Enforce";
  #recovery = "text";
  /** As told by the engine. `sinceMs`: when it opened. */
  #state: "Closed" | "HalfOpen" | "Opened" = "Closed";
  #sinceMs = 0;
  #period = 0;
  /** Of this half-open period. */
  #successes = 0;
  /** The failures that one step of the observer has caused. */
  #maySucceed = false;

  constructor(others: readonly LimitRule[]) {
    this.#others = others;
    this.#engine = this.#start([]);
  }

  take(step: Step): void {
    switch (step.kind) {
      case "send":
        this.#send();
        break;
      case "end":
        this.#end(step.which, step.status);
        break;
      case "wait":
        this.#wait(step.ms);
        break;
      case "edit":
        this.#sleepMs = step.sleepMs;
        this.#burst = step.burst;
        this.#update();
        break;
      case "mode":
        this.#mode = step.mode;
        // When the rule comes back, its breaker is as it was, and is half-open again if its time is over.
        if (this.#mode === "Disabled" && this.#state === "HalfOpen") this.#state = "Opened";
        this.#update();
        break;
      case "prune":
        this.#recovery = ""; // a text that comes after it would be a person who asks
        this.#update();
        break;
      case "restart":
        this.#restart(step.jumpMs);
        break;
      default:
        step satisfies never;
    }
    this.#check();
  }

  /** From here on nothing is edited, each request is answered within 10 ms, and more come all the time. */
  heal(): void {
    this.#mode = "Enforce";
    if (!Number.isFinite(this.#sleepMs)) this.#sleepMs = 10_000;
    this.#burst = undefined;
    this.#update();
    for (const { permit } of this.#open.splice(0)) permit.release();
    // Its window, all rounds at the slowest rate of the other rules, and the place of a request that was forgotten.
    const endMs = this.ms + this.#sleepMs + 60_000;
    while (this.ms < endMs && this.#state !== "Closed") {
      this.#send();
      this.#wait(10);
      this.#end(0, 200);
      this.#check();
    }
    if (this.#state !== "Closed") throw new Error(`still ${this.#state} although the server is healthy`);
  }

  #rules(): LimitRule[] {
    const breaker = limitRule(breakerSpec(this.#sleepMs, this.#burst), {
      name: "breaker",
      recovery: this.#recovery,
      mode: this.#mode === "Shadow" ? "Shadow" : "Enforce",
    });
    return [...this.#others, ...(this.#mode === "Disabled" ? [] : [breaker])];
  }

  #update(): void {
    this.#engine.update(this.#rules());
  }

  #start(stored: Parameters<typeof createEngine>[0]["stored"]): Engine {
    const engine = createEngine({
      now: () => this.ms,
      stored: stored ?? [],
      changed: (transitions) => {
        for (const transition of transitions) this.#told(transition);
      },
    });
    engine.update(this.#rules());
    return engine;
  }

  #told({ to }: Transition): void {
    if (to === "Closed" && !this.#maySucceed) throw new Error("the breaker has closed, although no request has succeeded");
    if (to === "HalfOpen") {
      if (this.#state !== "Opened") throw new Error(`half-open after ${this.#state}`);
      if (this.ms < this.#sinceMs + this.#sleepMs) throw new Error("half-open before the time of the breaker is over");
      this.#period++;
      this.#successes = 0;
    }
    // An edit that makes the window longer opens it again with its old time.
    if (to === "Opened" && !(this.#state === "HalfOpen" && this.ms < this.#sinceMs + this.#sleepMs)) this.#sinceMs = this.ms;
    this.#state = to;
  }

  #restart(jumpMs: number): void {
    const stored = this.#engine.openBreakers();
    this.ms += jumpMs;
    this.#sinceMs = Math.min(this.#sinceMs, this.ms);
    // A new process opens it as it was, and lets it be half-open again if its time is over.
    if (this.#state === "HalfOpen") this.#state = "Opened";
    this.#startedMs = this.ms;
    this.#passed = [];
    this.#open = [];
    this.#engine = this.#start(stored);
  }

  /** The timer of the proxy fires when it is due. */
  #wait(ms: number): void {
    const endMs = this.ms + ms;
    while (this.#engine.dueMs <= endMs) {
      this.ms = Math.max(this.ms, this.#engine.dueMs);
      this.#engine.advance();
    }
    this.ms = endMs;
  }

  /** What has to hold between any two steps. */
  #check(): void {
    if (this.#mode === "Disabled") return;
    const state = this.#engine.states().find(({ rule }) => rule.origin.rule === "breaker")?.state;
    if (state !== this.#state) throw new Error(`the breaker is ${state}, and the last that was told is ${this.#state}`);
    if (state === "Opened" && this.ms >= this.#sinceMs + this.#sleepMs) throw new Error("open after its time, without a request");
    const stored = this.#engine.openBreakers().length;
    if (stored !== (state === "Closed" ? 0 : 1)) throw new Error(`${stored} breakers would be stored, and it is ${state}`);
  }

  #testsUnderWay(): number {
    return this.#engine.figures().reduce((sum, { tests }) => sum + (tests?.underWay ?? 0), 0);
  }

  #send(): void {
    const before = this.#testsUnderWay();
    const decision = this.#engine.decide(REQUEST);
    if (decision.kind === "refused") {
      const isTest = decision.rule.origin.rule === "breaker" && this.#state === "HalfOpen";
      if (isTest && decision.refusal.waitMs !== TEST_WAIT_MS)
        throw new Error(`a half-open breaker says ${decision.refusal.waitMs}`);
      return;
    }
    const isEnforced = this.#mode === "Enforce";
    if (isEnforced && this.#state === "Opened") throw new Error("a request passed an open breaker");
    // In the shadow more requests pass than test the server.
    const isTest = this.#state === "HalfOpen" && (isEnforced || this.#testsUnderWay() > before);
    const period = isTest ? this.#period : 0;
    this.#passed.push(this.ms);
    this.#open.push({ permit: decision.permit, atMs: this.ms, period });
    if (period > 0) this.#checkRamp();
    if (this.#others.includes(IN_FLIGHT) && this.#open.length > MAX) throw new Error(`${this.#open.length} requests at once`);
    if (this.#others.includes(BUCKET)) this.#checkRate();
  }

  /** After 0, 1, 3 and 7 successes 1, 2, 4 and 8 requests may be under way. */
  #checkRamp(): void {
    const underWay = this.#open.filter(({ period, atMs }) => period === this.#period && this.ms - atMs < FORGOTTEN_MS).length;
    const width = Math.min(MAX_WIDTH, 2 ** Math.floor(Math.log2(this.#successes + 1)));
    if (underWay > width) throw new Error(`${underWay} requests test the server after ${this.#successes} successes`);
  }

  #checkRate(): void {
    for (const from of [this.#startedMs, ...this.#passed]) {
      const passed = this.#passed.filter((at) => at >= from).length;
      const allowed = BURST + ((this.ms - from) / 1_000) * PER_SECOND;
      if (passed > allowed + 1e-6) throw new Error(`${passed} requests passed in ${this.ms - from} ms`);
    }
  }

  #end(which: number, status: number | "left" | "failed"): void {
    const [ended] = this.#open.splice(which % Math.max(1, this.#open.length), 1);
    if (ended === undefined) return;
    const isSuccess = status === 200 || status === 404;
    this.#maySucceed = isSuccess;
    if (typeof status === "number") ended.permit.settle({ kind: "answered", status, tookMs: 1 });
    if (status === "failed") ended.permit.settle({ kind: "failed" });
    ended.permit.release();
    ended.permit.release();
    this.#maySucceed = false;
    if (isSuccess && ended.period === this.#period && this.#state === "HalfOpen") this.#successes++;
  }
}

it("no limit is exceeded, no edit closes a breaker, and every wait ends, in any order of requests, edits, timers and restarts", () => {
  fc.assert(
    fc.property(fc.subarray([BUCKET, IN_FLIGHT]), fc.array(stepArbitrary, { maxLength: 120, size: "max" }), (others, steps) => {
      const run = new Run(others);
      for (const step of steps) run.take(step);
      run.heal();
    }),
    { seed: FUZZ_SEED, numRuns: shareOf(8_000) },
  );
});
