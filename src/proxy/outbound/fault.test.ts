import { describe, expect, it } from "vitest";
import { callOf, fakeUpstream, jsonReply } from "../../../test/support/layer-call.ts";
import { ALL_OBJECTS } from "../../../test/support/policies.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import type { FaultRule } from "../../policy/policy.ts";
import { PolicyError } from "../policies/policy-refusal.ts";
import { fault } from "./fault.ts";

const POD = "/api/v1/namespaces/a/pods/x";
const origin = { kind: "FaultInjection", namespace: "shop", name: "storm", uid: "uid-1", rule: "slow" } as const;

function setup(changes: Partial<FaultRule>) {
  const world = runningPolicies({ faults: [{ origin, mode: "Enforce", match: ALL_OBJECTS, ...changes }] });
  const upstream = fakeUpstream(() => jsonReply({}));
  const handler = fault(world)(upstream);
  return { ...world, upstream, handler, send: (signal?: AbortSignal) => handler(callOf("GET", POD, signal && { signal })) };
}

describe("a delay", () => {
  const delay = { ms: 5_000, percent: 100 };

  it("holds the request, and then lets it pass", async () => {
    const { send, upstream, clock } = setup({ delay });
    const answer = send();
    await clock.advance(4_999);
    expect(upstream.calls).toHaveLength(0);
    await clock.advance(1);
    expect((await answer).status).toBe(200);
  });

  it("ends when the client leaves, and leaves no timer behind", async () => {
    const { send, upstream, clock } = setup({ delay });
    const client = new AbortController();
    const answer = send(client.signal);
    client.abort();
    await expect(answer).rejects.toMatchObject({ code: "ABORTED" });
    expect([clock.pending, upstream.calls.length]).toEqual([0, 0]);
  });

  it("is left out for more than 256 requests at once, and that is counted", async () => {
    const { send, upstream, clock, registry } = setup({ delay });
    const answers = Array.from({ length: 258 }, () => send());
    await clock.advance(0);
    expect(upstream.calls).toHaveLength(2);
    expect(await registry.metrics()).toMatch(/ctrlmesh_proxy_fault_delays_skipped_total 2/);
    await clock.advance(5_000);
    await Promise.all(answers);
  });
});

describe("an abort", () => {
  it.each([
    [503, "ServiceUnavailable"],
    [404, "NotFound"],
    [418, "InternalError"],
  ])("answers %i with a Status that names the rule", async (status, reason) => {
    const { send, upstream } = setup({ abort: { status, percent: 100 } });
    const error = await send().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PolicyError);
    expect(error).toMatchObject({
      errorCode: "FAULT_INJECTED",
      status: { code: status, reason, message: 'ctrlmesh: fault injected by FaultInjection shop/storm, rule "slow"' },
    });
    expect(upstream.calls).toHaveLength(0);
  });
});

it.each([
  ["is gone", undefined],
  ["is in the shadow", { mode: "Shadow" as const }],
])("an abort does not fire after a delay if its rule %s by then (D19)", async (_name, changes) => {
  const faults: Partial<FaultRule> = { delay: { ms: 5_000, percent: 100 }, abort: { status: 500, percent: 100 } };
  const { send, policies, clock } = setup(faults);
  const answer = send();
  await clock.advance(4_999);
  const rest = changes === undefined ? [] : [{ origin, match: ALL_OBJECTS, ...faults, ...changes }];
  policies.enforce({ limits: [], faults: rest, egress: [] }, "next");
  await clock.advance(1);
  expect((await answer).status).toBe(200);
});

it("a delayed request is marked with its delay and the rule, also if it is aborted then", async () => {
  const { handler, clock } = setup({ delay: { ms: 5_000, percent: 100 }, abort: { status: 500, percent: 100 } });
  const call = callOf("GET", POD);
  const answer = handler(call).catch((error: unknown) => error);
  await clock.advance(5_000);
  expect(await answer).toBeInstanceOf(PolicyError);
  expect(call.record.delay).toEqual({ seconds: 5, rule: "storm/slow" });
});

it("leases in the pod's namespace are exempt from a fault that does not name them (D6)", async () => {
  const world = runningPolicies({
    faults: [{ origin, mode: "Enforce", match: ALL_OBJECTS, abort: { status: 500, percent: 100 } }],
  });
  const send = async (namespace: string) => {
    const target = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/other-controller`;
    return fault(world)(fakeUpstream(() => jsonReply({})))(callOf("GET", target));
  };
  expect((await send("shop")).status).toBe(200);
  await expect(send("elsewhere")).rejects.toThrow("fault injected");
});

it("faults end 60 s after the manager is gone: nobody could take them back", async () => {
  const { send, manager } = setup({ abort: { status: 500, percent: 100 } });
  manager.awayMs = 59_999;
  await expect(send()).rejects.toThrow("fault injected");
  manager.awayMs = 60_000;
  expect((await send()).status).toBe(200);
});

it("a fault in the shadow is counted and changes nothing", async () => {
  const { send, registry } = setup({ mode: "Shadow", abort: { status: 500, percent: 100 } });
  expect((await send()).status).toBe(200);
  expect(await registry.metrics()).toMatch(
    /policy_decisions_total\{kind="FaultInjection",rule="storm\/slow",decision="abort",mode="Shadow"\} 1/,
  );
});
