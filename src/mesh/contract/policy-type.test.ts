import { describe, expect, it } from "vitest";
import { limitRule } from "../../../test/support/policies.ts";
import type { EgressRule, FaultRule, HttpRule, LimiterSpec, LimitRule, PolicySet, TimeWindow } from "../../policy/policy.ts";
import { POLICY, policiesDigest } from "./policy-type.ts";
import { ResourceInvalidError } from "./resource-type.ts";

const HEAD = { version: 3, digest: "d" };
const EFFECTIVE: Required<TimeWindow> = { startSecond: 1, endSecond: 2, daysOfWeek: [0], daysOfMonth: [31], months: [12] };
const { origin, match } = limitRule({ kind: "deny" });
const HTTP: Required<HttpRule> = {
  host: { exact: "example.com" },
  port: 8443,
  path: { regex: "^/v1/" },
  method: "GET",
  headers: [{ name: "x-tenant", value: "a" }, { name: "x-any" }],
};
// A field that is added to a rule does not compile without a value here.
const LIMIT: Required<LimitRule> = { origin, mode: "Shadow", match, limiter: { kind: "deny" }, recovery: "once" };
const FAULT: Required<FaultRule> = {
  origin,
  mode: "Enforce",
  match: { resources: [], urls: [{ url: "/healthz", methods: ["GET"] }], http: [HTTP] },
  delay: { ms: 1, percent: 12.5 },
  abort: { status: 503, percent: 100 },
  effective: EFFECTIVE,
  untilMs: 7,
};
const TRIGGER = { consecutive: 1, percent: 50, minimumRequests: 2, windowMs: 3, slowerThanMs: 4 };
const DELETES = { percent: 10, atLeast: 1, intervalMs: 2, namespaces: ["a"] };
const LIMITERS: { readonly [K in LimiterSpec["kind"]]: Required<Extract<LimiterSpec, { kind: K }>> } = {
  deny: { kind: "deny" },
  exempt: { kind: "exempt" },
  bucket: { kind: "bucket", perSecond: 0.5, burst: 3, per: "Object" },
  deletes: { kind: "deletes", ...DELETES },
  "in-flight": { kind: "in-flight", max: 1 },
  backoff: { kind: "backoff", baseMs: 1, maxMs: 2, failures: 3 },
  breaker: { kind: "breaker", bucket: { perSecond: 1, burst: 2 }, deletes: DELETES, trigger: TRIGGER, sleepMs: 5 },
};
const EGRESS: Required<EgressRule> = {
  origin,
  mode: "Enforce",
  effect: "Allow",
  methods: ["GET"],
  hosts: [{ host: "example.com" }, { host: "10.0.0.1", port: 443 }, { regex: "^.*[.]example[.]com$" }],
};
const SET: PolicySet = {
  limits: Object.values(LIMITERS).map((limiter) => ({ ...LIMIT, limiter })),
  faults: [FAULT],
  egress: [EGRESS],
};

function problemsOf(body: unknown, head = HEAD): readonly string[] {
  try {
    POLICY.decode(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), head);
    return [];
  } catch (error) {
    if (error instanceof ResourceInvalidError) return error.problems;
    throw error;
  }
}

describe("policies as bytes", () => {
  it("name the objects whose rules stay as they are, which the digest is about too (D3)", () => {
    const kept = { ...HEAD, ...SET, keep: ["uid-1"] };
    expect(POLICY.decode(POLICY.encode(kept), HEAD)).toEqual(kept);
    expect(policiesDigest(kept)).not.toBe(policiesDigest(SET));
    expect(policiesDigest({ ...SET, keep: [] })).toBe(policiesDigest(SET));
    expect(problemsOf({ keep: [1] })).toEqual(["keep: must be a list of uids"]);
  });

  it("decode to equal policies, with every field of every rule", () => {
    expect(POLICY.decode(POLICY.encode({ ...HEAD, ...SET }), HEAD)).toEqual({ ...HEAD, ...SET });
  });

  it("are refused with every problem at once", () => {
    const [limit] = SET.limits;
    const limits = [
      { ...limit, mode: "Maybe" },
      { ...limit, limiter: { kind: "magic" } },
      { ...limit, extra: 1 },
    ];
    expect(problemsOf({ limits, faults: [], egress: [] }, { version: 0, digest: "" })).toHaveLength(2);
    expect(problemsOf({ limits }).join("\n")).toMatch(
      /^rule "guard\/rule": mode: .*\nrule "guard\/rule": limiter\.kind: .*\nrule "guard\/rule": Unrecognized /,
    );
    expect(problemsOf({ limits: [{}] })).toEqual([expect.stringMatching(/^limits\.0: origin: .*, mode: /)]);
  });

  it.each(["(", "(?=a)", "a".repeat(513)])("are refused with the expression %s", (regex) => {
    const hosts = problemsOf({ ...SET, egress: [{ ...EGRESS, hosts: [{ regex }] }] });
    const http = problemsOf({ ...SET, faults: [{ ...FAULT, match: { ...match, http: [{ host: { regex }, headers: [] }] } }] });
    for (const problems of [hosts, http]) expect(problems).toHaveLength(1);
  });

  it.each(["", "{", "null", "[]"])("are refused if they are %j", (body) => {
    expect(problemsOf(body).length).toBeGreaterThan(0);
  });

  it("have no rule about reviews that counts, since a flood of invented reviews would open it for the API server", () => {
    const all = { apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], scope: "*" as const };
    const about = { ...match, admissions: [all] };
    for (const [kind, limiter] of Object.entries(LIMITERS)) {
      const problems = problemsOf({ limits: [{ ...LIMIT, match: about, limiter }], faults: [], egress: [] });
      expect(problems).toEqual(
        kind === "deny" ? [] : [expect.stringContaining('limiter: must have kind "deny" if match.admissions is set')],
      );
    }
  });

  it("have a digest of their content alone, and another one after each change", () => {
    const digests = [SET, { ...SET, faults: [] }, { ...SET, egress: [] }, { ...SET, limits: SET.limits.slice(1) }].map(
      policiesDigest,
    );
    expect(new Set(digests).size).toBe(4);
    expect(policiesDigest({ ...HEAD, ...SET } as PolicySet)).toBe(digests[0]);
  });
});
