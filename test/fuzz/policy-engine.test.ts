// Any order of requests, answers, waits, edits and restarts against the engine of policies: no bucket ever lets more through than its burst
// and its rate allow, no bound of requests at once is exceeded, and an open breaker lets one request through at a time.
import fc from "fast-check";
import { it } from "vitest";
import { createEngine, type Engine, type Permit } from "../../src/policy/engine/engine.ts";
import type { BreakerState } from "../../src/policy/limiters/breaker-state.ts";
import type { LimitRule } from "../../src/policy/policy.ts";
import { FUZZ_SEED, shareOf } from "../support/fuzz.ts";
import { limitRule, policyRequest } from "../support/policies.ts";

const PER_SECOND = 5;
const BURST = 7;
const MAX = 3;
const SLEEP_MS = 2_000;

const RULES: readonly LimitRule[] = [
  limitRule({ kind: "bucket", perSecond: PER_SECOND, burst: BURST }, { name: "bucket" }),
  limitRule({ kind: "in-flight", max: MAX }, { name: "in-flight" }),
  limitRule(
    { kind: "breaker", trigger: { consecutive: 2, minimumRequests: 1, windowMs: 1_000 }, sleepMs: SLEEP_MS },
    { name: "breaker" },
  ),
];
const REQUEST = policyRequest("GET /api/v1/namespaces/a/pods/p");

type Step =
  | { readonly kind: "send" }
  | { readonly kind: "end"; readonly which: number; readonly status: number | "left" | "failed" }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "edit" }
  | { readonly kind: "restart" };

const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Step>({ kind: "send" }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      which: fc.nat(),
      status: fc.constantFrom<(number | "left" | "failed")[]>(200, 404, 500, 429, "left", "failed"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 3_000 })),
    }),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "edit" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "restart" }) },
);

interface Passed {
  readonly permit: Permit;
  /** It decides whether the breaker closes. */
  readonly isProbe: boolean;
}

/** The engine with what an observer outside has seen of it. */
class Run {
  ms = 1_000_000;
  readonly #rules: readonly LimitRule[];
  #engine: Engine;
  #startedMs = this.ms;
  #passed: number[] = [];
  #open: Passed[] = [];
  #sleepsUntilMs = 0;
  #edits = 0;

  constructor(rules: readonly LimitRule[]) {
    this.#rules = rules;
    this.#engine = this.#start();
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
        this.ms += step.ms;
        break;
      case "edit":
        this.#edits++;
        this.#engine.update([
          ...this.#rules,
          limitRule({ kind: "bucket", perSecond: 1_000, burst: 1_000 + this.#edits }, { name: "other" }),
        ]);
        break;
      case "restart":
        this.#engine = this.#start(this.#engine);
        this.#startedMs = this.ms;
        this.#passed = [];
        this.#open = [];
        break;
      default:
        step satisfies never;
    }
  }

  #has(name: string): boolean {
    return this.#rules.some(({ origin }) => origin.rule === name);
  }

  #start(before?: Engine): Engine {
    const engine = createEngine({ now: () => this.ms, stored: before?.openBreakers() ?? [] });
    engine.update(this.#rules);
    return engine;
  }

  #breaker(): BreakerState {
    return this.#engine.states().find(({ rule }) => rule.origin.rule === "breaker")?.breaker ?? { kind: "closed" };
  }

  #send(): void {
    const { kind } = this.#breaker();
    const decision = this.#engine.decide(REQUEST);
    if (decision.kind === "refused") return;
    if (this.ms < this.#sleepsUntilMs) throw new Error("a request passed before the time of the breaker was over");
    if (this.#open.some(({ isProbe }) => isProbe)) throw new Error("a second request passed while one decides about the breaker");
    this.#passed.push(this.ms);
    this.#open.push({ permit: decision.permit, isProbe: kind === "open" });
    if (this.#has("in-flight") && this.#open.length > MAX) throw new Error(`${this.#open.length} requests at once`);
    if (this.#has("bucket")) this.#checkRate();
  }

  #checkRate(): void {
    for (const from of [this.#startedMs, ...this.#passed]) {
      const passed = this.#passed.filter((at) => at >= from).length;
      const allowed = BURST + ((this.ms - from) / 1_000) * PER_SECOND;
      if (passed > allowed + 1e-6) throw new Error(`${passed} requests passed in ${this.ms - from} ms`);
    }
  }

  #end(which: number, status: number | "left" | "failed"): void {
    const wasClosed = this.#breaker().kind === "closed";
    const [ended] = this.#open.splice(which % Math.max(1, this.#open.length), 1);
    if (typeof status === "number") ended?.permit.settle({ kind: "answered", status, tookMs: 1 });
    if (status === "failed") ended?.permit.settle({ kind: "failed" });
    ended?.permit.release();
    ended?.permit.release();
    const hasFailed = status === "failed" || status === 500 || status === 429;
    const opens = wasClosed && this.#breaker().kind === "open";
    if (opens || (ended?.isProbe && hasFailed)) this.#sleepsUntilMs = this.ms + SLEEP_MS;
  }
}

it("no limit is exceeded by any order of requests, answers, waits, edits and restarts", () => {
  fc.assert(
    fc.property(
      fc.subarray([...RULES], { minLength: 1 }),
      fc.array(stepArbitrary, { maxLength: 120, size: "max" }),
      (rules, steps) => {
        const run = new Run(rules);
        for (const step of steps) run.take(step);
      },
    ),
    { seed: FUZZ_SEED, numRuns: shareOf(8_000) },
  );
});
