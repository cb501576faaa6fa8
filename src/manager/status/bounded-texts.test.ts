import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { policyTarget, samplePolicyStatus, shadowPolicy } from "../../../test/support/policy-target.ts";
import { canarySpec, createStatusWorld } from "../../../test/support/status-world.ts";
import { policyStatusSchema } from "../../api/policy-status.ts";
import { shardingStatusSchema } from "../../api/sharding-status.ts";
import { plainTexts } from "../../base/plain-text.ts";
import { StatusError, type StatusReason } from "../../kube/status.ts";
import { NO_REPORTS } from "../../mesh/contract/messages.ts";
import { judgeLabels } from "../labels/label-state.ts";
import { labelsStatus } from "../labels/labels-status.ts";
import { evict } from "../restart/evictor.ts";
import { withReport } from "../server/proxy-reports.ts";
import { rejectedStatus } from "./app-status.ts";
import { withBoundedTexts } from "./bounded-texts.ts";

/** Text from outside: of any length, with line breaks, control characters and half characters. */
const hostile = fc
  .tuple(fc.array(fc.constantFrom("x", "\n", "\u001b[31m", "\u202e", "🦊", "\ud800", '"'), { minLength: 1 }), fc.nat(40_000))
  .map(([parts, length]) => parts.join("").repeat(length).slice(0, length));
const texts = fc.array(hostile, { minLength: 1, maxLength: 40 });
/** A name is checked by the API server, and may be as long as a name of its kind. */
const longName = fc.integer({ min: 1, max: 253 }).map((length) => "n".repeat(length));
const NOW = "2026-01-01T00:00:00Z";
const OF_PODS = [
  { group: "", resource: "pods" },
  { group: "", resource: "secrets" },
];
const RUNS = { numRuns: 100, seed: 1 };

/** Every text of a field `message`, with the length at which it would have been cut. */
function messagesOf(value: unknown, maxChars = 1_024): [text: string, maxChars: number][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    key === "message"
      ? [[String(each), maxChars] as [string, number]]
      : messagesOf(each, key === "conditions" ? 8_192 : maxChars),
  );
}

/** A message that is cut as a whole may have lost its remedy, which stands at its end. */
function expectWhole(status: unknown) {
  const messages = messagesOf(status);
  expect(messages.length).toBeGreaterThan(0);
  for (const [text, maxChars] of messages) {
    expect(text.length, text.slice(0, 80)).toBeLessThan(maxChars);
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(text.isWellFormed()).toBe(true);
  }
}

const refused = (reason: StatusReason, message: string, causes: readonly string[]) => {
  const details = { causes: causes.map((each) => ({ reason: "DisruptionBudget", message: each })) };
  const client = { createSubresource: () => Promise.reject(new StatusError(reason, message, details)) };
  return client as unknown as Parameters<typeof evict>[0];
};

describe("a status with texts from outside", () => {
  it("of an app has whole messages that the API server stores", async () => {
    const reason = fc.constantFrom<StatusReason>("TooManyRequests", "Forbidden", "NotFound", "InternalError", "Timeout");
    const trouble = fc.subarray(["problems", "lock", "restart", "away", "bare"] as const, { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(longName, texts, reason, trouble, async (name, said, why, troubles) => {
        const [text = ""] = said;
        const has = (each: (typeof troubles)[number]) => troubles.includes(each);
        const world = createStatusWorld(canarySpec(["pilot"]), ["prod", "pilot"], [appPod(name), appPod("c", "canary")]);
        world.settle();
        world.spec = canarySpec([]);
        world.generation++;
        const lock = { lockName: "lock---canary", resource: "leases.coordination.k8s.io", deniedVerbs: ["get"], reason: text };
        world.reports.set("c", {
          ...(has("lock") && withReport(NO_REPORTS, { lock })),
          ...(has("problems") && { problems: { route: plainTexts(said) } }), // the registry keeps no others
          ...(has("away") && { connected: false }),
        });
        if (has("bare")) world.pods.set("b", appPod("b", "", { proxy: "none" }));
        const pod = { namespace: "s".repeat(63), name, uid: "u" };
        const eviction = await evict(refused(why, text, said), pod, new AbortController().signal);
        if (has("restart") && "message" in eviction) {
          const { message } = eviction;
          world.restart = { subset: "", pod: name, uid: "u", since: NOW, left: 1, reason: "EvictionFailed", message };
        }
        const facts = { total: 2, labelled: 1, policy: { isInForce: true }, isListed: true };
        const state = judgeLabels({ ...facts, optedOut: undefined, failure: text });
        world.labelsAfter = () => labelsStatus(OF_PODS, () => state, undefined);
        world.reconcile();
        world.nowMs += 400_000;
        const status = world.reconcile();
        expect(shardingStatusSchema.parse(status)).toEqual(status);
        expectWhole(status);
        expect((status as { labels?: { message?: string } }).labels?.message).toMatch(/ \(and 1 more of 2 resources\)$/);
        const of = { generation: 3, previous: status, now: NOW, injection: undefined };
        expectWhole(rejectedStatus({ ...of, message: plainTexts(said).join("; ") }));
      }),
      RUNS,
    );
  });

  it("of a policy has whole messages that the API server stores", () => {
    fc.assert(
      fc.property(longName, texts, fc.boolean(), (name, said, isValid) => {
        const rules = Array.from({ length: 64 }, (_, at) => ({ name: `${at}`.padEnd(253, "r"), state: "Opened" as const }));
        const notes = Array.from({ length: 4_096 }, (_, at) => `spec.rateLimitings[${at}].properties has no effect`);
        const status = samplePolicyStatus({
          problems: isValid ? [] : said.map((message) => ({ path: "spec", value: message, message })),
          policy: { ...shadowPolicy(), notes },
          targets: [policyTarget(name, { isSynced: false, problems: plainTexts(said), rules })],
        });
        expect(policyStatusSchema.parse(status)).toEqual(status);
        expectWhole({ conditions: status.conditions });
      }),
      RUNS,
    );
  });

  it("is cut where a message is too long all the same", () => {
    const message = "x\n".repeat(40_000);
    const status = withBoundedTexts({
      observedGeneration: 1,
      conditions: [{ type: "Ready", message }],
      labels: { total: 1, message },
    });
    expect(status).toMatchObject({ observedGeneration: 1, labels: { total: 1 } });
    expect(messagesOf(status).map(([text]) => [text.length, text.at(-1)])).toEqual([
      [8_192, "…"],
      [1_024, "…"],
    ]);
  });
});
