import { describe, expect, it } from "vitest";
import {
  OPENED as opened,
  samplePolicy,
  shadowPolicy,
  samplePolicyStatus as status,
  policyTarget as target,
} from "../../../test/support/policy-target.ts";
import { policyStatusSchema } from "../../api/policy-status.ts";
import { NO_POLICIES } from "../../policy/policy.ts";
import type { PolicyStatusFacts } from "./policy-status.ts";
import type { TargetFacts } from "./target-facts.ts";

const condition = (changes: Partial<PolicyStatusFacts>, type: string) =>
  status(changes).conditions?.find((each) => each.type === type);

describe("the status of a policy", () => {
  it("lists pods with open breakers first, then those that are behind, each by name", () => {
    const targets = [
      target("c"),
      target("b", { isSynced: false }),
      target("z", { rules: [opened] }),
      target("a"),
      target("y", { rules: [opened] }),
    ];
    expect(status({ targets }).targetStatus?.map(({ podName }) => podName)).toEqual(["y", "z", "b", "a", "c"]);
    expect(status({ targets }).targets).toEqual({ total: 5, synced: 4, opened: 2 });
  });

  it("lists at most 64 pods and counts all of them", () => {
    const targets = Array.from({ length: 100 }, (_, at) => target(`pod-${at}`));
    expect(status({ targets }).targetStatus).toHaveLength(64);
    expect(status({ targets }).targets?.total).toBe(100);
  });

  it("does not depend on the order of the pods", () => {
    const targets = [target("a", { isSynced: false }), target("b"), target("c", { rules: [opened] })];
    expect(status({ targets: targets.toReversed() })).toEqual(status({ targets }));
  });

  it("says why a spec is refused, and that the previous one stays in force", () => {
    const problems = [{ path: "spec.rateLimitings[0].bucket", message: "required" }];
    expect(condition({ problems, specHash: "" }, "Accepted")).toMatchObject({
      status: "False",
      reason: "Invalid",
      message: "spec.rateLimitings[0].bucket: required",
    });
    expect(condition({ problems }, "Accepted")?.message).toBe(
      "spec.rateLimitings[0].bucket: required; the rules of the previous spec stay in force",
    );
  });

  it("says that a valid policy is switched off", () => {
    expect(condition({ policy: samplePolicy({ off: "spec.mode is Disabled" }) }, "Accepted")).toMatchObject({
      status: "True",
      reason: "Disabled",
      message: "spec.mode is Disabled",
    });
  });

  it("says that the time of a valid policy is over, and when it ended", () => {
    const endsMs = Date.parse("2026-11-22T12:00:00.000Z");
    expect(condition({ policy: samplePolicy({ endsMs }) }, "Accepted")).toMatchObject({
      status: "True",
      reason: "Expired",
      message: "ended by itself at 2026-11-22T12:00:00.000Z; an edit of the spec starts it again",
    });
    expect(condition({ policy: samplePolicy({ endsMs: endsMs + 1 }) }, "Accepted")).toMatchObject({ reason: "Valid" });
  });

  it("says that a pod has too many policies, so that a valid one is not in force there", () => {
    const targets = [target("a"), target("b", { isLeftOut: true })];
    expect(condition({ targets }, "Accepted")).toMatchObject({
      status: "False",
      reason: "TooManyRules",
      message:
        "not in force in pod b, where older policies or pods leave no room: the policies of a pod may have 1,024 rules, 256 divided buckets, 16,384 pairs of a resource and a namespace, and 2 MiB, and all different sets of a namespace 16 MiB; delete policies, make them smaller, or let more pods have the same ones",
    });
  });

  it("names the fields of a valid spec that have no effect", () => {
    expect(
      condition(
        { policy: samplePolicy({ notes: ["spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing"] }) },
        "Accepted",
      ),
    ).toMatchObject({
      status: "True",
      reason: "Valid",
      message: "the spec is valid; spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing",
    });
  });

  it("keeps the time at which a generation was first seen, also by another manager", () => {
    const previous = status({ now: "2026-11-22T11:00:00.000Z" });
    expect(status({ previous }).specSince).toBe("2026-11-22T11:00:00.000Z");
    expect(status({ previous, generation: 3 }).specSince).toBe("2026-11-22T12:00:00.000Z");
    const { specSince: _, ...older } = previous;
    expect(status({ previous: older }).specSince).toBe("2026-11-22T12:00:00.000Z");
  });

  it("says that the policy selects no pod", () => {
    expect(condition({}, "Synced")).toMatchObject({ status: "Unknown", reason: "NoTargets" });
  });

  it("cuts what a proxy says, since the API server refuses a longer status", () => {
    const problems = Array.from({ length: 3 }, () => "x".repeat(500));
    const [first] = status({ targets: [target("a", { isSynced: false, problems })] }).targetStatus ?? [];
    expect(policyStatusSchema.safeParse({ targetStatus: [first] }).error).toBeUndefined();
    expect(first?.message).toMatch(/^refused: x+; x+.*…$/);
  });

  it("says what the limits of several pods add up to", () => {
    const message = (count: number, policy = samplePolicy()) =>
      condition({ policy, targets: Array.from({ length: count }, (_, at) => target(`pod-${at}`)) }, "Synced")?.message;
    expect(message(3)).toBe("3 of 3 proxies enforce these rules; each counts by itself, so limits add up to 3 times");
    expect(message(1)).toBe("1 of 1 proxies enforce these rules");
    expect(message(3, samplePolicy({ rules: NO_POLICIES }))).toBe("3 of 3 proxies enforce these rules");
  });

  it("names a pod that is behind, and why", () => {
    const message = (facts: Partial<TargetFacts>) =>
      condition({ targets: [target("a"), target("b", { isSynced: false, ...facts })] }, "Synced")?.message;
    expect(message({})).toBe("1 of 2 proxies enforce these rules; pod b: the newest rules are on their way");
    expect(message({ isConnected: false })).toMatch(/the proxy is not connected: it keeps its rules$/);
    expect(message({ problems: ["limits[0]: unknown limiter"] })).toMatch(/refused: limits\[0\]: unknown limiter$/);
  });

  it("names a pod in which rules about other servers have no effect, and why", () => {
    const targets = [target("a"), target("b", { lacksEgress: true }), target("c", { lacksEgress: true, isSynced: false })];
    const without =
      "rules about other servers have no effect, since the pod was created without the annotation ctrlmesh.kruise.io/egress";
    expect(condition({ targets }, "Synced")).toMatchObject({ status: "False", reason: "ProxiesBehind" });
    expect(condition({ targets: targets.slice(0, 2) }, "Synced")).toMatchObject({
      status: "False",
      reason: "NoEgress",
      message: `1 of 2 proxies enforce these rules; pod b: ${without}`,
    });
    expect(status({ targets }).targets).toMatchObject({ total: 3, synced: 1 });
    expect(status({ targets }).targetStatus?.map(({ podName, message = "" }) => [podName, message])).toEqual([
      ["c", "the newest rules are on their way"],
      ["b", without],
      ["a", ""],
    ]);
  });

  it("says in every place that a policy in the shadow refuses nothing (D14a)", () => {
    const facts = { policy: shadowPolicy(), targets: [target("a")] };
    expect(status(facts).mode).toBe("Shadow");
    expect(condition(facts, "Accepted")?.message).toBe(
      "the spec is valid; mode Shadow: its rules are counted, and change no answer",
    );
    expect(condition(facts, "Synced")?.message).toBe("1 of 1 proxies count these rules (Shadow)");
    expect(condition(facts, "Ready")).toMatchObject({ status: "True", reason: "Shadow" });
    expect(condition({ ...facts, targets: [target("a", { rules: [opened] })] }, "Open")).toMatchObject({
      status: "True",
      message: expect.stringMatching(/^in the mode Shadow: rule "delete-pods" would refuse everything in pod a/),
    });
  });

  it("names the open rule, its pod, since when and why", () => {
    const targets = [target("a", { rules: [opened] }), target("b", { rules: [opened] })];
    expect(condition({ targets }, "Open")).toMatchObject({
      status: "True",
      reason: "Opened",
      message:
        'rule "delete-pods" refuses everything in pod a since 2026-11-22T10:00:00Z (5 failures in a row, the last with status 500); and in 1 more pod',
    });
    expect(condition({ targets: [target("a")] }, "Open")).toMatchObject({ status: "False", reason: "Closed" });
  });

  it("says that a breaker is half open, and counts it no more as open", () => {
    const targets = [target("a", { rules: [{ ...opened, state: "HalfOpen" }] })];
    expect(condition({ targets }, "Open")).toMatchObject({ status: "False", reason: "HalfOpen" });
    expect(condition({ targets }, "Open")?.message).toMatch(/^rule "delete-pods" tests the server in pod a since /);
    expect(status({ targets }).targets?.opened).toBe(0);
  });

  it("has a new time of Open with each further breaker that opens (D14c)", () => {
    const first = status({ targets: [target("a", { rules: [opened] })], now: "2026-11-22T11:00:00.000Z" });
    const timeOf = (targets: readonly TargetFacts[]) => condition({ previous: first, targets }, "Open")?.lastTransitionTime;
    expect(timeOf([target("a", { rules: [opened] })])).toBe("2026-11-22T11:00:00.000Z");
    expect(timeOf([target("a", { rules: [opened] }), target("b", { rules: [opened] })])).toBe("2026-11-22T12:00:00.000Z");
    expect(timeOf([target("a", { rules: [opened, { ...opened, name: "b" }] })])).toBe("2026-11-22T12:00:00.000Z");
  });

  it("does not call a proxy synced that has not been connected for a minute (D14b)", () => {
    const targets = [target("a"), target("b", { isConnected: false, isLost: true })];
    expect(status({ targets }).targets).toMatchObject({ total: 2, synced: 1 });
    expect(condition({ targets }, "Synced")).toMatchObject({
      status: "Unknown",
      reason: "ProxyDisconnected",
      message:
        "1 of 2 proxies enforce these rules; pod b: the proxy has not been connected for over a minute: it keeps its rules, and its state is the last that it reported",
    });
    expect(condition({ targets }, "Ready")).toMatchObject({ status: "Unknown", reason: "ProxyDisconnected" });
    expect(condition({ targets: [target("a", { isConnected: false })] }, "Synced")).toMatchObject({ status: "True" });
  });

  it("says of an invalid spec that a new manager has not seen valid what proxies keep (D3)", () => {
    const facts = { problems: [{ path: "spec", message: "required" }], policy: undefined };
    expect(condition(facts, "Accepted")?.message).toBe(
      "spec: required; proxies that have the rules of its previous spec keep them",
    );
    expect(condition(facts, "Synced")).toMatchObject({ status: "Unknown", reason: "SpecUnknown" });
    expect(condition({ ...facts, specHash: "" }, "Synced")).toMatchObject({ reason: "NoTargets" });
  });

  it("says that a pod keeps the rules for its subset while its app does not exist (D4)", () => {
    const keptBecause = "the app shop does not exist, so the subset of the pod is not known";
    expect(condition({ targets: [target("a", { keptBecause })] }, "Synced")).toMatchObject({
      status: "False",
      reason: "AppUnknown",
      message: `0 of 1 proxies enforce these rules; pod a: keeps the rules of this policy that it has, since ${keptBecause}`,
    });
  });

  it("notes a lock of the operator that its rules limit (D6)", () => {
    expect(condition({ targets: [target("a", { limitedLock: "configmaps op-lock" })] }, "Accepted")).toMatchObject({
      status: "True",
      reason: "NoLock",
      message:
        "the spec is valid; the rules also limit the operator's lock (configmaps op-lock) in pod a: name it in the app, so that it is exempt",
    });
  });

  it("closed rules of the first pods take no place of an open breaker in a later one", () => {
    const closed = Array.from({ length: 63 }, (_, at) => ({ name: `rule-${at}`, state: "Closed" }) as const);
    const targets = Array.from({ length: 20 }, (_, at) => target(`pod-${10 + at}`, { rules: [opened, ...closed] }));
    const listed = status({ targets }).targetStatus?.map(({ limitingSnapshots = [] }) => limitingSnapshots) ?? [];
    expect(listed.map(([first]) => first)).toEqual(targets.map(() => opened));
    expect(listed.flat()).toHaveLength(512);
  });

  it("lists at most 512 rules, those with open breakers first", () => {
    const rules = [opened, ...Array.from({ length: 63 }, (_, at) => ({ name: `r${at}`, state: "Closed" }) as const)];
    const targets = Array.from({ length: 64 }, (_, at) => target(`pod-${at}`, { rules }));
    const listed = status({ targets }).targetStatus?.flatMap(({ limitingSnapshots = [] }) => limitingSnapshots) ?? [];
    expect(listed).toHaveLength(512);
    expect(policyStatusSchema.safeParse(status({ targets })).error).toBeUndefined();
  });

  it("keeps the time of a condition whose status stays", () => {
    const previous = status({ now: "2026-11-22T11:00:00.000Z" });
    const times = status({ previous, targets: [target("a")] }).conditions?.map(({ type, lastTransitionTime }) => [
      type,
      lastTransitionTime,
    ]);
    expect(times).toEqual([
      ["Accepted", "2026-11-22T11:00:00.000Z"],
      ["Synced", "2026-11-22T12:00:00.000Z"],
      ["Open", "2026-11-22T11:00:00.000Z"],
      ["Ready", "2026-11-22T12:00:00.000Z"],
    ]);
  });

  it.each([
    [{ problems: [{ path: "spec", message: "required" }] }, "False", "Invalid"],
    [{ targets: [target("a", { isLeftOut: true, isSynced: false })] }, "False", "TooManyRules"],
    [{ targets: [target("a", { rules: [opened] }), target("b", { isSynced: false })] }, "False", "ProxiesBehind"],
    [{ targets: [target("a", { lacksEgress: true })] }, "False", "NoEgress"],
    [{ policy: samplePolicy({ off: "spec.mode is Disabled" }) }, "True", "Disabled"],
    [{}, "Unknown", "NoTargets"],
    [{ targets: [target("a", { rules: [opened] })] }, "True", "Opened"],
    [{ targets: [target("a")], policy: shadowPolicy() }, "True", "Shadow"],
    [{ targets: [target("a")] }, "True", "Valid"],
  ] as [Partial<PolicyStatusFacts>, string, string][])(
    "is summed up by its worst condition: %j is %s %s",
    (facts, is, reason) => {
      expect(condition(facts, "Ready")).toMatchObject({ status: is, reason });
    },
  );
});
