import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { PODS_RULE, policyProblemsOf, sampleFaultInjection } from "../../test/support/traffic-objects.ts";
import type { KubeObject } from "../kube/types.ts";
import { type FaultInjection, validateFaultInjection } from "./fault-injection.ts";
import type { PolicyStatus } from "./policy-status.ts";

const problems = (fault: object, spec: object = {}) =>
  policyProblemsOf("FaultInjection", sampleFaultInjection({ ...fault }, { ...spec }));
const FAULT = "spec.httpFault[0]";

describe("the type FaultInjection", () => {
  it("is a Kubernetes object with the status of a policy", () => {
    expectTypeOf<FaultInjection>().toExtend<KubeObject>();
    expectTypeOf<NonNullable<FaultInjection["status"]>>().toEqualTypeOf<PolicyStatus>();
  });
});

describe("validateFaultInjection", () => {
  it("returns an object with every field unchanged", () => {
    const httpMatch = [
      {
        host: { exact: "a.example" },
        path: { regex: "/v.*" },
        method: "GET",
        headers: [{ name: "x-test", value: "1" }],
      },
    ];
    const effectiveTime = {
      startTime: "22:00:00",
      endTime: "06:00:00",
      daysOfWeek: [0, 6],
      daysOfMonth: [1, 31],
      months: [1, 12],
    };
    const object = sampleFaultInjection(
      { abort: { httpStatus: 503, percent: "12.5" }, match: { resources: [PODS_RULE], httpMatch }, effectiveTime },
      { mode: "Enforce", disabled: false, maxDuration: "1h" },
    );
    expect(validateFaultInjection(object)).toEqual({ ok: true, value: object });
  });

  it.each([
    ["a fault without a name, a match and a percentage", { name: undefined, match: undefined, delay: { fixedDelay: "1s" } }],
    ["days without times", { effectiveTime: { daysOfWeek: [1] } }],
    ["a range over night", { effectiveTime: { startTime: "22:00:00", endTime: "06:00:00" } }],
    ["the status 0, which means no abort", { abort: { httpStatus: 0, percent: "0" } }],
    ["the status 200, which means no abort", { abort: { httpStatus: 200, percent: "100" } }],
    ["a percentage with a fraction", { delay: { fixedDelay: "1s", percent: "0.001" } }],
  ])("accepts %s", (_, fault) => expect(problems(fault)).toEqual([]));

  it("reports all problems at once", () => {
    expect(
      problems(
        {
          name: "a\nb",
          delay: { fixedDelay: "31s", percent: 10 },
          abort: { httpStatus: 302, percent: "101" },
          match: { relatedResources: [] },
          effectiveTime: { startTime: "24:00:00", daysOfWeek: [7], daysOfMonth: [0], months: [13] },
        },
        { selector: {}, maxDuration: "1ms", disabled: "true" },
      ),
    ).toEqual([
      'spec.disabled: "true": must be true or false, not a string',
      'spec.maxDuration: "1ms": must be from 1s to 720h',
      `${FAULT}.name: "a\\nb": must be a text of one line, without a space at either end`,
      `${FAULT}.delay.fixedDelay: "31s": must be from 1ms to 30s`,
      `${FAULT}.delay.percent: 10: must be a string from "0" to "100", in quotes`,
      `${FAULT}.abort.httpStatus: 302: must be from 400 to 599; 0 and 200 mean no abort`,
      `${FAULT}.abort.percent: "101": must be a number from "0" to "100" such as "12.5", without a sign`,
      `${FAULT}.match.relatedResources: unknown field; did you mean "resources"?`,
      `${FAULT}.effectiveTime.startTime: "24:00:00": must be a time of the day such as "22:30:00"`,
      `${FAULT}.effectiveTime.daysOfWeek[0]: 7: must be at most 6`,
      `${FAULT}.effectiveTime.daysOfMonth[0]: 0: must be at least 1`,
      `${FAULT}.effectiveTime.months[0]: 13: must be at most 12`,
      "spec.selector: must have at least one term: an empty selector matches everything",
      `${FAULT}.effectiveTime: set both startTime and endTime, or neither`,
    ]);
  });

  it("refuses a fault that does nothing, no faults at all, and two faults of one name", () => {
    expect(problems({ delay: undefined })).toEqual([`${FAULT}: does nothing: set delay or abort`]);
    expect(problems({}, { httpFault: [] })).toEqual(["spec.httpFault: must not be empty"]);
    const fault = { name: "slow", delay: { fixedDelay: "1s" } };
    expect(problems({}, { httpFault: [fault, fault, { delay: { fixedDelay: "1s" } }] })).toEqual([
      'spec.httpFault[1].name: "slow": is already the name of spec.httpFault[0]',
    ]);
  });

  it("refuses the name that a fault without a name has in messages", () => {
    expect(problems({ name: "httpFault[1]" })).toEqual([
      `${FAULT}.name: "httpFault[1]": is kept for a fault without a name; use another`,
    ]);
  });

  it("bounds the rules of all faults together", () => {
    const resources = Array.from({ length: 64 }, (_, index) => `r${index}`);
    const namespaces = Array.from({ length: 256 }, (_, index) => `n${index}`);
    const large = { ...PODS_RULE, resources, namespaces };
    expect(problems({ match: { resources: [large, large] } })).toEqual([expect.stringContaining("at most 16384 are allowed")]);
  });

  it("never throws, for any input", () => {
    const json = fc.jsonValue({ maxDepth: 6 }).filter((value) => value !== undefined);
    const whole = JSON.stringify(sampleFaultInjection());
    const leaves = whole.match(/"[^"]*"(?=[,\]}])/g) ?? [];
    fc.assert(
      fc.property(json, fc.constantFrom(...leaves), (value, leaf) => {
        expect(Array.isArray(policyProblemsOf("FaultInjection", value))).toBe(true);
        expect(Array.isArray(problems({ effectiveTime: value }, { httpFault: value }))).toBe(true);
        expect(Array.isArray(problems({ match: { httpMatch: [value, { host: value, path: { regex: value } }] } }))).toBe(true);
        const changed = JSON.parse(whole.replace(leaf, () => JSON.stringify(value)));
        expect(Array.isArray(policyProblemsOf("FaultInjection", changed))).toBe(true);
      }),
      { interruptAfterTimeLimit: 1_500 },
    );
  });
});
