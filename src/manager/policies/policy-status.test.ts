import { describe, expect, it } from "vitest";
import { policyStatusSchema } from "../../api/policy-status.ts";
import { type PolicyStatusFacts, policyStatus, type TargetFacts } from "./policy-status.ts";

const target = (name: string, changes: Partial<TargetFacts> = {}): TargetFacts => ({
  name,
  ip: "10.0.0.1",
  isSynced: true,
  isLeftOut: false,
  isConnected: true,
  lacksEgress: false,
  enforced: "abc",
  problems: [],
  rules: [],
  ...changes,
});
const opened = { name: "delete-pods", state: "Opened", lastTransitionTime: "2026-11-22T10:00:00.000Z" } as const;
const status = (changes: Partial<PolicyStatusFacts>) =>
  policyStatus({
    generation: 2,
    specHash: "hash",
    problems: [],
    off: "",
    endsMs: undefined,
    isLimit: false,
    isShadow: false,
    notes: [],
    targets: [],
    previous: undefined,
    now: "2026-11-22T12:00:00.000Z",
    ...changes,
  });
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
    expect(condition({ off: "spec.mode is Disabled" }, "Accepted")).toMatchObject({
      status: "True",
      reason: "Disabled",
      message: "spec.mode is Disabled",
    });
  });

  it("says that the time of a valid policy is over, and when it ended", () => {
    const endsMs = Date.parse("2026-11-22T12:00:00.000Z");
    expect(condition({ endsMs }, "Accepted")).toMatchObject({
      status: "True",
      reason: "Expired",
      message: "ended by itself at 2026-11-22T12:00:00.000Z; an edit of the spec starts it again",
    });
    expect(condition({ endsMs: endsMs + 1 }, "Accepted")).toMatchObject({ reason: "Valid" });
  });

  it("says that a pod has too many policies, so that a valid one is not in force there", () => {
    const targets = [target("a"), target("b", { isLeftOut: true })];
    expect(condition({ targets }, "Accepted")).toMatchObject({
      status: "False",
      reason: "TooManyRules",
      message:
        "not in force in pod b, where older policies or pods leave no room: the policies of a pod may have 4,096 rules, 65,536 pairs of a resource and a namespace, and 8 MiB, and all different sets of a namespace 16 MiB; delete policies, make them smaller, or let more pods have the same ones",
    });
  });

  it("names the fields of a valid spec that have no effect", () => {
    expect(
      condition({ notes: ["spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing"] }, "Accepted"),
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
    const message = (count: number, isLimit = true) =>
      condition({ isLimit, targets: Array.from({ length: count }, (_, at) => target(`pod-${at}`)) }, "Synced")?.message;
    expect(message(3)).toBe("3 of 3 proxies enforce these rules; each counts by itself, so limits add up to 3 times");
    expect(message(1)).toBe("1 of 1 proxies enforce these rules");
    expect(message(3, false)).toBe("3 of 3 proxies enforce these rules");
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

  it("says that a rule in the shadow refuses nothing", () => {
    expect(condition({ isShadow: true, targets: [target("a", { rules: [opened] })] }, "Open")).toMatchObject({
      status: "True",
      message: 'in the mode Shadow: rule "delete-pods" would refuse everything in pod a',
    });
  });

  it("names the open rule and its pod", () => {
    expect(condition({ targets: [target("a", { rules: [opened] }), target("b", { rules: [opened] })] }, "Open")).toMatchObject({
      status: "True",
      message: 'rule "delete-pods" refuses everything in pod a, and in 1 more pod',
    });
    expect(condition({ targets: [target("a")] }, "Open")).toMatchObject({ status: "False", reason: "Closed" });
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
    ]);
  });
});
