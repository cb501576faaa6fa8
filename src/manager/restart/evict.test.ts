import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeTransport, type FakeAnswer } from "../../../test/support/fake-transport.ts";
import { createKubeClient } from "../../kube/client/client.ts";
import { createStatus, type StatusDetails, type StatusReason } from "../../kube/status.ts";
import { evict } from "./evictor.ts";

const POD = { namespace: "ops", name: "shop-0", uid: "uid-1" };

const refusal = (reason: StatusReason, message: string, details?: StatusDetails): FakeAnswer => {
  const body = createStatus(reason, message, details);
  return { statusCode: body.code, body };
};

async function evictAgainst(answer: () => FakeAnswer | Promise<FakeAnswer>, signal = new AbortController().signal) {
  const clock = createFakeClock();
  const transport = createFakeTransport(answer);
  const connection = { server: "https://api.test", token: () => "", userAgent: "test" };
  const client = createKubeClient(connection, { transport, clock, random: () => 0 });
  return { eviction: await evict(client, POD, signal), requests: transport.requests };
}

describe("evict", () => {
  it("requests the eviction of the pod with this uid and no other", async () => {
    const { eviction, requests } = await evictAgainst(() => ({ statusCode: 201, body: { kind: "Status", status: "Success" } }));
    expect(eviction).toEqual({ kind: "accepted" });
    expect(requests).toMatchObject([{ method: "POST", path: "/api/v1/namespaces/ops/pods/shop-0/eviction" }]);
    expect(JSON.parse(String(requests[0]?.body))).toEqual({
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { namespace: "ops", name: "shop-0" },
      deleteOptions: { preconditions: { uid: "uid-1" } },
    });
  });
  it("counts a missing pod as gone, also if another pod has its name", async () => {
    const noPod = () => refusal("NotFound", 'pods "shop-0" not found', { kind: "pods", name: "shop-0" });
    expect((await evictAgainst(noPod)).eviction).toEqual({ kind: "gone" });
    expect((await evictAgainst(() => refusal("Conflict", "precondition failed"))).eviction).toEqual({ kind: "gone" });
  });
  it("distinguishes a missing API from a missing pod", async () => {
    const { eviction } = await evictAgainst(() => refusal("NotFound", "the server could not find the requested resource"));
    expect(eviction).toMatchObject({
      kind: "refused",
      reason: "EvictionFailed",
      message: expect.stringContaining("could not find"),
    });
  });
  it("names the budget that refuses, and does not wait", async () => {
    const details = { retryAfterSeconds: 10, causes: [{ reason: "DisruptionBudget", message: "shop needs 2 healthy pods" }] };
    const { eviction, requests } = await evictAgainst(() => refusal("TooManyRequests", "it would violate the budget.", details));
    expect(eviction).toEqual({
      kind: "refused",
      reason: "PodDisruptionBudget",
      message: "pod shop-0 may not be evicted now: it would violate the budget. (shop needs 2 healthy pods)",
      retryAfterMs: 10_000,
    });
    expect(requests).toHaveLength(1);
  });
  it("names the missing permission", async () => {
    const { eviction } = await evictAgainst(() => refusal("Forbidden", "nope"));
    expect(eviction).toMatchObject({
      reason: "EvictionForbidden",
      message: expect.stringContaining("allow it to create pods/eviction in namespace ops (nope)"),
    });
  });
  it("returns any other failure as a refusal", async () => {
    const two = await evictAgainst(() => refusal("InternalError", "more than one PodDisruptionBudget"));
    expect(two.eviction).toMatchObject({ reason: "EvictionFailed", message: expect.stringContaining("more than one") });
  });
  it("returns unknown without an answer: the pod may be ending", async () => {
    const away = await evictAgainst(() => Promise.reject(new Error("socket hang up")));
    expect(away.eviction).toMatchObject({ kind: "unknown", message: expect.stringContaining("shop-0") });
    const late = await evictAgainst(() => refusal("Timeout", "the API server gave up"));
    expect(late.eviction).toMatchObject({ kind: "unknown", message: expect.stringContaining("gave up") });
  });
  it("ends when its caller aborts", async () => {
    const giveUp = new AbortController();
    const evicting = evictAgainst(() => {
      giveUp.abort(new Error("the lease is lost"));
      throw new Error("aborted");
    }, giveUp.signal);
    await expect(evicting).rejects.toThrow("the lease is lost");
  });
});
