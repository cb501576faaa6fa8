import { describe, expect, it } from "vitest";
import { compileHere } from "../../../../test/support/compile.ts";
import { CALLER } from "../../../../test/support/review-caller.ts";
import { sampleCircuitBreaker, sampleTrafficPolicy } from "../../../../test/support/traffic-objects.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import { POLICY_KINDS } from "../../policies/add.ts";
import { createVirtualAppSource } from "../../virtual-app/virtual-app-source.ts";
import type { AdmissionRequest } from "../server/admission-review.ts";
import { createMoveCounter, createMoveLimit } from "./edit-moves.ts";
import { type CountMoves, checkedPolicies, checkedSources, createValidateWebhook } from "./validate-webhook.ts";

const PLACE = { namespace: "ops", name: "shop" };
const NAMES = ["canary-1", "team-a", "team-b", "team-c"];
const namespaces = (names: readonly string[]) => names.map((name) => ({ name, labels: {} }));
const withRegex = (namespaceRegex: string, more: object = {}) =>
  sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match: [{ namespaceRegex }] }], ...more } });

async function warningsOf(before: object, after: object, countMoves: CountMoves | undefined = counter(NAMES)) {
  const [kind] = checkedSources({ sources: [createVirtualAppSource()], apps: { list: () => [] }, countMoves });
  return (await kind?.judgeEdit(before, after, PLACE, CALLER))?.warnings;
}

function counter(names: readonly string[] | undefined): CountMoves {
  return createMoveCounter({ compile: compileHere, namespaces: () => names && namespaces(names), limit: createMoveLimit() });
}

describe("the check of an edit that moves namespaces", () => {
  const from = withRegex("^canary-");

  it("warns if it moves half of the namespaces or more, with the count", async () => {
    expect(await warningsOf(from, withRegex("^team-"))).toEqual([
      "moves 4 of 4 namespaces to other owners; pods that lose namespaces are restarted one after the other; spec.route.paused: true stops it",
    ]);
    expect((await warningsOf(from, withRegex("^(canary|team-[ab]$)")))?.[0]).toMatch(/^moves 2 of 4 /);
  });

  it("does not warn of fewer moves, of an equal rule in another form, and while the app is paused", async () => {
    expect(await warningsOf(from, withRegex("^(canary|team-a)"))).toEqual([]);
    expect(await warningsOf(from, withRegex("^canary-."))).toEqual([]);
    expect(await warningsOf(from, withRegex("^team-", { paused: true }))).toEqual([]);
  });

  it("counts moves of one resource only, and namespaces that a limit excludes", async () => {
    const resources = [{ apiGroups: ["apps"], resources: ["*"] }];
    const limited = sampleVirtualApp({ route: { globalLimits: [{ namespaceRegex: "^x$", resources }] }, subsets: [] });
    expect((await warningsOf(sampleVirtualApp({ route: {}, subsets: [] }), limited))?.[0]).toMatch(/^moves 4 of 4 /);
  });

  it("tells a caller nothing about the namespaces, unless the counts are switched on", async () => {
    const [kind] = checkedSources({ sources: [createVirtualAppSource()], apps: { list: () => [] } });
    const verdict = await kind?.judgeEdit(from, withRegex("^team-"), PLACE, CALLER);
    expect(verdict).toEqual({ problems: [], warnings: [] });
  });

  it("has one count at a time for each caller, who must still be there", async () => {
    const countMoves = counter(NAMES);
    const edit = () => warningsOf(from, withRegex("^team-"), countMoves);
    expect((await Promise.all([edit(), edit()])).map((warnings) => warnings?.length)).toEqual([1, 0]);
    const signals: (AbortSignal | undefined)[] = [];
    const observed = createMoveCounter({
      limit: createMoveLimit(),
      namespaces: () => namespaces(NAMES),
      compile: async (_route, _namespaces, _limitMs, options) => void signals.push(options?.signal),
    });
    expect(await warningsOf(from, withRegex("^team-"), observed)).toEqual([]);
    expect(signals).toEqual([CALLER.signal]);
  });

  it("has no count while the namespaces are not known, or if the count takes too long", async () => {
    expect(await warningsOf(from, withRegex("^team-"), counter(undefined))).toEqual([]);
    const dear = createMoveCounter({
      compile: async () => undefined,
      limit: createMoveLimit(),
      namespaces: () => namespaces(NAMES),
    });
    expect(await warningsOf(from, withRegex("^team-"), dear)).toEqual([]);
  });
});

const review = createValidateWebhook(checkedPolicies(POLICY_KINDS));
const breakers = { group: "ctrlmesh.kusionstack.io", version: "v1alpha1", resource: "circuitbreakers" };
const ask = (more: Partial<AdmissionRequest>) =>
  review({ uid: "u", resource: breakers, operation: "CREATE", namespace: "ops", name: "guard", ...more }, CALLER);
const bad = sampleCircuitBreaker({ recoverPolicy: undefined });

describe("the validating webhook of the policy kinds", () => {
  it("refuses an invalid policy with its problems", async () => {
    const worse = sampleCircuitBreaker({ recoverPolicy: "SleepingWindow", bucket: undefined });
    expect(await ask({ object: worse })).toMatchObject({
      allowed: false,
      reason: "Invalid",
      message: expect.stringMatching(/^CircuitBreaker guard has 2 problems: spec\.rateLimitings\[0\]\.recoverPolicy: /),
    });
  });

  it("allows a valid one, with a warning for each field without effect", async () => {
    expect(await ask({ object: sampleCircuitBreaker() })).toEqual({ allowed: true, warnings: [] });
    const resource = { ...breakers, group: "ctrlmesh.kruise.io", resource: "trafficpolicies" };
    const object = sampleTrafficPolicy({ circuitBreaking: { webhook: {} } });
    expect(await ask({ resource, object })).toEqual({
      allowed: true,
      warnings: ["spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing"],
    });
  });

  it("allows an edit of an invalid policy that adds no problem", async () => {
    expect(await ask({ operation: "UPDATE", object: bad, oldObject: bad })).toEqual({
      allowed: true,
      warnings: [expect.stringContaining("not corrected yet: spec.rateLimitings[0].recoverPolicy: required")],
    });
    const worse = sampleCircuitBreaker({ recoverPolicy: undefined }, { mode: "On" });
    expect(await ask({ operation: "UPDATE", object: worse, oldObject: bad })).toMatchObject({
      allowed: false,
      message: expect.stringContaining("has 1 problem: spec.mode"),
    });
  });
});
