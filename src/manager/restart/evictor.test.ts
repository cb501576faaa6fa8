import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../base/log.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { createEvictor, isEvicting } from "./evictor.ts";

const app = { namespace: "ops", name: "shop" };
const source = { kind: "VirtualApp", metadata: app };
const pod = { name: "a", uid: "uid-a" };
const { signal } = new AbortController();

function setUp() {
  const clock = createFakeClock();
  const recorded: string[] = [];
  const world = { answer: (): unknown => undefined };
  const evictor = createEvictor({
    client: { createSubresource: async () => world.answer() },
    pods: { get: (name) => ({ metadata: { namespace: "ops", name } }) },
    events: { event: ({ kind }: KubeObject, _type, reason) => void recorded.push(`${kind} ${reason}`) },
    clock,
    random: () => 1,
    log: silentLogger(),
  });
  return { clock, evictor, recorded, world };
}

const refuses = () => {
  throw new StatusError("TooManyRequests", "no");
};

describe("an evictor", () => {
  it("remembers the refusal of this pod only, and waits longer after each", async () => {
    const { clock, evictor, world } = setUp();
    world.answer = refuses;
    await evictor.evict({ app, by: "restart", source, pod }, signal);
    expect(evictor.attemptOn(app, "uid-a", "restart")?.refusal?.retryAtMs).toBe(clock.now() + 1_000);
    expect(evictor.attemptOn(app, "uid-b", "restart")?.refusal).toBeUndefined();
    expect(evictor.attemptOn({ ...app, name: "other" }, "uid-a", "restart")?.refusal).toBeUndefined();
    await evictor.evict({ app, by: "restart", source, pod }, signal);
    expect(evictor.attemptOn(app, "uid-a", "restart")?.refusal?.retryAtMs).toBe(clock.now() + 2_000);
    await evictor.evict({ app, by: "restart", source, pod: { name: "b", uid: "uid-b" } }, signal);
    expect(evictor.attemptOn(app, "uid-b", "restart")?.refusal?.retryAtMs).toBe(clock.now() + 1_000);
  });

  it("remembers the refusals of a restart and of a rollout apart", async () => {
    const { clock, evictor, world } = setUp();
    world.answer = refuses;
    const restart = { app, by: "restart", source, pod } as const;
    const rollout = { app, by: "rollout", source, pod: { name: "b", uid: "uid-b" } } as const;
    await evictor.evict(restart, signal);
    await evictor.evict(rollout, signal);
    expect(evictor.attemptOn(app, "uid-a", "restart")?.refusal?.retryAtMs).toBe(clock.now() + 1_000);
    expect(evictor.attemptOn(app, "uid-a", "restart")).toMatchObject({ uid: "uid-a", refusals: 1 });
    expect(evictor.attemptOn(app, "uid-a", "rollout")?.refusal).toBeUndefined();
    await evictor.evict(restart, signal);
    expect(evictor.attemptOn(app, "uid-a", "restart")?.refusals).toBe(2);
    expect(evictor.attemptOn(app, "uid-b", "rollout")).toMatchObject({ uid: "uid-b", refusals: 1 });
    evictor.forget(app);
    expect([evictor.attemptOn(app, "uid-a", "restart"), evictor.attemptOn(app, "uid-b", "rollout")]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("keeps the answer of a request that the other part overlapped", async () => {
    const { evictor, world } = setUp();
    let refuse = (_: unknown): void => undefined;
    world.answer = () => new Promise((_, reject) => (refuse = reject));
    const answered = evictor.evict({ app, by: "restart", source, pod }, signal);
    world.answer = () => undefined;
    await evictor.evict({ app, by: "rollout", source, pod: { name: "b", uid: "uid-b" } }, signal);
    refuse(new StatusError("TooManyRequests", "no"));
    await answered;
    expect(evictor.attemptOn(app, "uid-a", "restart")?.refusal).toMatchObject({ reason: "PodDisruptionBudget" });
  });

  it("makes a restart and a rollout that are both refused wait as long as each would alone", async () => {
    const { clock, evictor, world } = setUp();
    const evictions: string[] = [];
    world.answer = refuses;
    const tries = [
      { app, by: "restart", source, pod },
      { app, by: "rollout", source, pod: { name: "b", uid: "uid-b" } },
    ] as const;
    for (const endMs = clock.now() + 60_000; clock.now() < endMs; await clock.advance(100)) {
      for (const request of tries) {
        const refusal = evictor.attemptOn(app, request.pod.uid, request.by)?.refusal;
        if (refusal !== undefined && refusal.retryAtMs > clock.now()) continue;
        evictions.push(request.by);
        await evictor.evict(request, signal);
      }
    }
    // After 0, 1, 3, 7, 15, 30 and 45 seconds.
    expect(evictions.filter((by) => by === "restart")).toHaveLength(7);
    expect(evictions.filter((by) => by === "rollout")).toHaveLength(7);
  });

  it("counts the pod as terminating while the answer is not here, and for ten seconds after it was accepted", async () => {
    const { clock, evictor, world } = setUp();
    let accept = (_: unknown): void => undefined;
    world.answer = () => new Promise((resolve) => (accept = resolve));
    const answered = evictor.evict({ app, by: "restart", source, pod }, signal);
    expect(evictor.attemptOn(app, "uid-a", "restart")?.endsUntilMs).toBe(clock.now() + 10_000);
    await clock.advance(3_000);
    accept(undefined);
    await answered;
    expect(evictor.attemptOn(app, "uid-a", "restart")?.endsUntilMs).toBe(clock.now() + 10_000);
  });

  it("sends an Event about the pod if it has a reason for people, and only if the eviction was accepted", async () => {
    const { evictor, recorded, world } = setUp();
    await evictor.evict({ app, by: "restart", source, pod }, signal);
    expect(recorded).toEqual([]);
    world.answer = refuses;
    await evictor.evict({ app, by: "restart", source, pod, why: "why" }, signal);
    expect(recorded).toEqual([]);
    world.answer = () => undefined;
    await evictor.evict({ app, by: "restart", source, pod, why: "why" }, signal);
    expect(recorded).toEqual(["Pod EvictedPod"]);
  });

  it("keeps nothing of an app that is forgotten while the answer is not here", async () => {
    const { evictor, world } = setUp();
    let accept = (_: unknown): void => undefined;
    world.answer = () => new Promise((resolve) => (accept = resolve));
    const answered = evictor.evict({ app, by: "restart", source, pod }, signal);
    evictor.forget(app);
    accept(undefined);
    await answered;
    expect(evictor.attemptOn(app, "uid-a", "restart")).toBeUndefined();
  });
});

it("the stored status says which part evicts a pod, so that the other part waits", () => {
  const restart = { subset: "", pod: "a", uid: "u", since: "2026-01-01T00:00:00Z", left: 1, reason: "Evicting" };
  expect(isEvicting({ restart }, "restart")).toBe(true);
  expect(isEvicting({ restart }, "rollout")).toBe(false);
  expect(isEvicting({ rollout: { done: 0, total: 1, waitingFor: "Evicting" } }, "rollout")).toBe(true);
  expect(isEvicting({ rollout: { done: 0, total: 1, waitingFor: "NotReady" } }, "rollout")).toBe(false);
  expect(isEvicting(undefined, "restart")).toBe(false);
});
