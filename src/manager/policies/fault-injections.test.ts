import { describe, expect, it } from "vitest";
import { egressRequest, policyRequest } from "../../../test/support/policies.ts";
import { PODS_RULE, sampleFaultInjection } from "../../../test/support/traffic-objects.ts";
import type { FaultInjection } from "../../api/fault-injection.ts";
import { createMatcher } from "../../policy/matcher.ts";
import { faultInjections } from "./fault-injections.ts";

function compile(fault: object = {}, spec: object = {}, status?: object) {
  const compiled = faultInjections.compile({
    ...sampleFaultInjection({ ...fault }, { ...spec }),
    status,
  } as unknown as FaultInjection);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  return compiled.value.rules.faults;
}

describe("the rules of a FaultInjection", () => {
  it("makes a rule with the place and the name of the fault", () => {
    expect(compile()).toEqual([
      {
        origin: { kind: "FaultInjection", namespace: "ops", name: "guard", uid: "uid-1", rule: "slow" },
        mode: "Enforce",
        match: { resources: [{ ...PODS_RULE, clusterScope: true }], urls: [], http: [] },
        delay: { ms: 300, percent: 50 },
      },
    ]);
  });

  it("names a fault without a name after its place", () => {
    const delay = { fixedDelay: "1s" };
    const rules = compile({}, { httpFault: [{ name: "one", delay }, { delay }] });
    expect(rules.map(({ origin }) => origin.rule)).toEqual(["one", "httpFault[1]"]);
  });

  it("never fires without a percentage", () => {
    const [rule] = compile({ delay: { fixedDelay: "1s" }, abort: { httpStatus: 503 } });
    expect(rule).toMatchObject({ delay: { ms: 1_000, percent: 0 }, abort: { status: 503, percent: 0 } });
  });

  it.each([0, 200])("takes the status %i for no abort", (httpStatus) => {
    expect(compile({ abort: { httpStatus, percent: "100" } })[0]).not.toHaveProperty("abort");
  });

  it.each(["GET /api/v1/nodes/n", "DELETE /api/v1/namespaces/a/pods/p", "GET /healthz", "GET /"])(
    "without a match is about every request: %s",
    (line) => {
      for (const match of [undefined, {}, { resources: [] }]) {
        expect(createMatcher(compile({ match })).match(policyRequest(line))).toHaveLength(1);
      }
    },
  );

  it("about other servers is about these alone, and with resources about both", () => {
    const httpMatch = [
      { host: { exact: "A.example" }, path: { exact: "/V1" }, method: "GET", headers: [{ name: "X-Test", value: "1" }] },
      { host: { regex: "^b[.]example$" } },
    ];
    const [rule] = compile({ match: { httpMatch } });
    expect(rule?.match).toEqual({
      resources: [],
      urls: [],
      http: [
        {
          host: { exact: "a.example" },
          path: { exact: "/V1" },
          method: "GET",
          headers: [{ name: "X-Test", value: "1" }],
        },
        { host: { regex: "^b[.]example$" }, headers: [] },
      ],
    });
    const both = createMatcher(compile({ match: { httpMatch, resources: [PODS_RULE] } }));
    expect(both.match(egressRequest("GET http://a.example/V1", { "x-test": "1" }))).toHaveLength(1);
    expect(both.match(egressRequest("CONNECT b.example:443"))).toHaveLength(1);
    expect(both.match(policyRequest("DELETE /api/v1/namespaces/a/pods/p"))).toHaveLength(1);
    expect(both.match(policyRequest("GET /healthz"))).toEqual([]);
  });

  it("without a match is about no other server", () => {
    expect(createMatcher(compile({ match: undefined })).match(egressRequest("GET http://a.example/"))).toEqual([]);
  });

  it("compiles every field of the time, with the defaults of those that are absent", () => {
    const days = { daysOfWeek: [0, 6], daysOfMonth: [1], months: [12] };
    expect(compile({ effectiveTime: { startTime: "22:30:05", endTime: "06:00:00", ...days } })[0]?.effective).toEqual({
      startSecond: 81_005,
      endSecond: 21_600,
      ...days,
    });
    expect(compile({ effectiveTime: {} })[0]?.effective).toEqual({
      startSecond: 0,
      endSecond: 0,
      daysOfWeek: [],
      daysOfMonth: [],
      months: [],
    });
  });

  it("counts in the shadow, and ends at its time", () => {
    const status = { observedGeneration: 1, specSince: "1969-12-31T23:59:59.007Z" };
    const [rule] = compile({}, { mode: "Shadow", maxDuration: "1s" }, status);
    expect(rule).toMatchObject({ mode: "Shadow", untilMs: 7 });
  });
});
