import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { VIRTUAL_APP_WORDS } from "../../../test/support/source-words.ts";
import { createLogger } from "../../base/log.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { createEvictor, type EvictorOptions } from "./evictor.ts";
import type { RestartStep } from "./restart-plan.ts";
import type { RestartRecord } from "./restart-record.ts";
import { createRestarter, type RestarterOptions } from "./restarter.ts";

const APP = { namespace: "ops", name: "shop" };
const ALL = [{ resources: [], visible: true }];
const showing: RouteTable = {
  ...table([subset("canary")], { lost: [0] }),
  retained: [{ namespaces: new Set(["lost"]), rules: ALL }],
};

const pod = (name: string, more: Partial<AppPod> = {}) => appPod(name, "", { namespace: "ops", ...more });
const known = (routes: RouteTable, leader = false) => proxyFacts({ acknowledged: snapshot(routes), leader });

/** A restarter of three pods, of which "a" leads, with a scripted API server. */
function setUp({ settleMs = 0 } = {}) {
  const clock = createFakeClock();
  const told: string[] = [];
  const evicted: string[] = [];
  const answered: string[] = [];
  const world = {
    pods: [pod("a"), pod("b"), pod("c")],
    desired: showing,
    answer: (): unknown => undefined,
    scale: (): unknown => ({ spec: { replicas: 2 } }),
    leader: "a",
    isLeading: true,
    subsets: [""],
  };
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "u", controller: true };
  const options: Omit<EvictorOptions & RestarterOptions, "evictor"> = {
    client: {
      async createSubresource(_resource, { name }) {
        evicted.push(name);
        return world.answer();
      },
      request: async () => world.scale(),
    },
    pods: { get: (name) => ({ metadata: { namespace: "ops", name, ownerReferences: [owner] } }) as Pod },
    events: {
      event: ({ kind, metadata }, _type, reason, message) => void told.push(`${kind} ${metadata.name} ${reason}: ${message}`),
    },
    isLeader: () => world.isLeading,
    onAnswer: ({ name }) => void answered.push(name),
    settleMs,
    clock,
    random: () => 0,
    log: createLogger({ name: "test", level: "silent" }),
  };
  const evictor = createEvictor(options);
  const restarter = createRestarter({ ...options, evictor });
  const { signal } = new AbortController();
  let previous: RestartRecord | undefined;
  const next = async (): Promise<RestartStep> => {
    const step = await restarter.next(
      {
        app: APP,
        pods: world.pods,
        factsOf: (key) => known(showing, key === `ops/${world.leader}`),
        plan: { rulesFor: () => snapshot(world.desired), desired: world.desired, subsets: world.subsets, isDissolving: false },
        previous,
        isPaused: false,
        words: VIRTUAL_APP_WORDS,
        hasLock: true,
      },
      signal,
    );
    previous = step.kind === "none" ? undefined : step.record;
    return step;
  };
  const turn = async () => {
    const result = restarter.carryOut({ ref: APP, object: { kind: "VirtualApp", metadata: APP } }, await next(), signal);
    await clock.flush(); // the eviction is answered concurrently
    return result;
  };
  const put = (record: RestartRecord) => {
    previous = record;
  };
  return { world, clock, told, evicted, answered, evictor, restarter, next, turn, put, record: () => previous };
}

describe("a restarter", () => {
  it("evicts one pod, and no other pod before the watch has shown its end", async () => {
    const { world, turn, evicted, record } = setUp();
    expect(await turn()).toEqual({});
    expect(await turn()).toEqual({ requeueAfterMs: 10_000 });
    expect(evicted).toEqual(["b"]);
    expect(record()).toMatchObject({ pod: "b", reason: "Evicting", left: 3 });
    world.pods = [pod("a"), pod("b", { terminating: true }), pod("c")];
    await turn();
    expect(evicted).toEqual(["b"]);
  });
  it("evicts no pod while the watch has not shown the end of one that a rollout has evicted", async () => {
    const { turn, evicted, evictor, clock } = setUp();
    const source = { kind: "VirtualApp", metadata: APP };
    const request = { app: APP, by: "rollout", source, pod: { name: "b", uid: pod("b").uid } } as const;
    await evictor.evict(request, new AbortController().signal);
    await turn();
    expect(evicted).toEqual(["b"]);
    await clock.advance(10_000);
    await turn();
    expect(evicted).toEqual(["b", "b"]);
  });
  it("evicts no other pod when the edit is undone while the watch lags", async () => {
    const { world, next, turn, evicted } = setUp();
    await turn();
    world.desired = table([], {});
    expect(await next()).toMatchObject({ kind: "wait", record: { pod: "b" } });
    expect(evicted).toEqual(["b"]);
  });
  it("continues when the new pod is ready, and reports the finished restart", async () => {
    const { world, turn, evicted, told } = setUp();
    await turn();
    world.pods = [pod("a"), pod("b2", { ready: false, controlled: false }), pod("c")];
    await turn();
    expect(evicted).toEqual(["b"]);
    const why = "ctrlmesh evicts pod b: its subset has lost namespaces that it retains (VirtualApp shop)";
    expect(told).toEqual([`Pod b EvictedPod: ${why}`, `ReplicaSet rs EvictedPod: ${why}`]);
    told.length = 0;
    world.pods = [pod("a"), pod("b2", { controlled: false }), pod("c")];
    await turn();
    expect(evicted).toEqual(["b", "c"]);
    expect(told).toContain(
      "VirtualApp shop RestartedPod: restarted pod b of the default subset, which retained namespaces that its subset has lost; 2 left",
    );
  });
  it("reports a refusal at once, and requests again with backoff until it is accepted", async () => {
    const { world, clock, turn, evicted, record } = setUp();
    world.answer = () => {
      throw new StatusError("TooManyRequests", "the budget says no");
    };
    expect(await turn()).toEqual({});
    expect(await turn()).toEqual({ requeueAfterMs: 500 });
    expect(record()).toMatchObject({ reason: "PodDisruptionBudget", message: expect.stringContaining("the budget says no") });
    await clock.advance(500);
    expect(await turn()).toEqual({});
    expect(await turn()).toEqual({ requeueAfterMs: 1_000 });
    world.answer = () => undefined;
    await clock.advance(1_000);
    expect(await turn()).toEqual({});
    await turn();
    expect(evicted).toEqual(["b", "b", "b"]);
    expect(record()).toMatchObject({ reason: "Evicting" });
  });
  it("never waits longer than 15 seconds between two refusals, unless the server asks for more", async () => {
    const { world, clock, turn } = setUp();
    world.answer = () => {
      throw new StatusError("TooManyRequests", "no");
    };
    for (let attempt = 0; attempt < 8; attempt++) {
      await turn();
      await clock.advance(15_000);
    }
    await turn();
    expect(await turn()).toEqual({ requeueAfterMs: 7_500 });
    await clock.advance(7_500);
    world.answer = () => {
      throw new StatusError("TooManyRequests", "no", { retryAfterSeconds: 60 });
    };
    await turn();
    expect(await turn()).toEqual({ requeueAfterMs: 60_000 });
  });
  it("continues if the workload was scaled down according to its scale, and waits if the scale is not known", async () => {
    const { world, clock, turn, evicted } = setUp();
    await turn();
    world.pods = [pod("a"), pod("c")];
    expect(await turn()).toEqual({ requeueAfterMs: 10_000 });
    await clock.advance(10_000);
    world.scale = () => {
      throw new StatusError("Forbidden", "no");
    };
    expect(await turn()).toEqual({ requeueAfterMs: 10_000 });
    world.scale = () => ({ spec: { replicas: 3 } });
    expect(await turn()).toEqual({ requeueAfterMs: 10_000 });
    expect(evicted).toEqual(["b"]);
    world.scale = () => ({ spec: { replicas: 2 } });
    await turn();
    expect(evicted).toEqual(["b", "c"]);
  });
  it("of a new leader continues from the record", async () => {
    const first = setUp();
    await first.turn();
    const { restarter, told } = setUp();
    const facts = {
      app: APP,
      factsOf: (key: string) => known(showing, key === "ops/a"),
      plan: { rulesFor: () => snapshot(showing), desired: showing, subsets: [""], isDissolving: false },
      previous: first.record(),
      isPaused: false,
      words: VIRTUAL_APP_WORDS,
      hasLock: true,
    };
    const { signal } = new AbortController();
    const gone = await restarter.next({ ...facts, pods: [pod("a"), pod("c")] }, signal);
    expect(gone).toMatchObject({ kind: "wait", record: { pod: "b", reason: "NotReady", expected: 3 } });
    const still = await restarter.next({ ...facts, pods: [pod("a"), pod("b"), pod("c")] }, signal);
    expect(still).toMatchObject({ kind: "evict", record: { pod: "b" } });
    expect(told).toEqual([]);
  });
});

describe("a restarter with an uncertain eviction", () => {
  it("stays with the pod whose eviction timed out, even if the order has changed: the pod may be ending", async () => {
    const { world, clock, turn, evicted, record } = setUp();
    world.leader = "c";
    world.answer = () => {
      world.answer = () => undefined;
      throw new Error("timeout");
    };
    await turn();
    world.leader = "a";
    await turn();
    expect(record()).toMatchObject({ pod: "a", reason: "EvictionFailed", message: expect.stringContaining("timeout") });
    expect(evicted).toEqual(["a"]);
    await clock.advance(5_000);
    await turn();
    expect(evicted).toEqual(["a", "a"]);
  });
  it("evicts no other pod after a timeout followed by another edit", async () => {
    const { world, clock, turn, evicted } = setUp();
    world.answer = () => {
      throw new Error("timeout");
    };
    await turn();
    world.pods = [pod("a"), pod("b", { controlled: false }), pod("c")]; // "b" needs none any more
    await turn();
    expect(evicted).toEqual(["b"]);
    await clock.advance(5_000);
    await turn();
    expect(evicted).toEqual(["b", "c"]);
  });
  it.each(["accepted", "Conflict"] as const)("requests the eviction again if the pod stays alive (%s)", async (how) => {
    const { world, clock, turn, evicted } = setUp();
    world.answer = () => {
      if (how !== "accepted") throw new StatusError(how, "precondition failed");
    };
    await turn();
    await turn();
    await clock.advance(9_999);
    await turn();
    expect(evicted).toEqual(["b"]);
    await clock.advance(1);
    await turn();
    expect(evicted).toEqual(["b", "b"]);
  });
  it("requests again if the API is missing, and reports that", async () => {
    const { world, clock, turn, evicted, record } = setUp();
    world.answer = () => {
      throw new StatusError("NotFound", "the server could not find the requested resource");
    };
    await turn();
    await turn();
    expect(record()).toMatchObject({ reason: "EvictionFailed" });
    await clock.advance(1_000);
    await turn();
    expect(evicted).toEqual(["b", "b"]);
  });
  it("does not block while the API server is slow, and requests nothing else meanwhile", async () => {
    const { world, turn, evicted, answered } = setUp();
    let answer = () => {};
    world.answer = () => new Promise<void>((resolve) => (answer = resolve));
    expect(await turn()).toEqual({});
    world.leader = "b";
    expect(await turn()).toEqual({ requeueAfterMs: 10_000 });
    expect(evicted).toEqual(["b"]);
    expect(answered).toEqual([]);
    answer();
    await turn();
    expect(answered).toEqual(["shop"]);
    expect(evicted).toEqual(["b"]);
  });
  it("reports the end of a pod whose eviction was refused and that somebody else deletes", async () => {
    const { world, turn, record } = setUp();
    world.answer = () => {
      throw new StatusError("TooManyRequests", "no");
    };
    await turn();
    world.pods = [pod("a"), pod("b", { terminating: true }), pod("c")];
    await turn();
    expect(record()).toMatchObject({ pod: "b", reason: "Evicting" });
  });
  it("evicts no pod after a loss of the leadership between the record and the eviction", async () => {
    const { world, turn, evicted } = setUp();
    world.isLeading = false;
    await turn();
    expect(evicted).toEqual([]);
  });
});

describe("a restarter whose evicted pod has no replacement in its subset", () => {
  const ofCanary: RestartRecord = {
    subset: "canary",
    pod: "x",
    uid: "uid-x",
    since: "2026-01-01T00:00:00Z",
    expected: 1,
    left: 3,
    reason: "Evicting",
  };
  it("continues after a minute if the pod's workload is not known", async () => {
    const { world, clock, turn, evicted, put } = setUp();
    world.subsets = ["", "canary"];
    put(ofCanary);
    await turn();
    await clock.advance(59_999);
    await turn();
    expect(evicted).toEqual([]);
    await clock.advance(1);
    await turn();
    expect(evicted).toEqual(["b"]);
  });
  it("reads the scale of the evicted pod's workload: deleted, scaled to none, or short by one", async () => {
    const { world, clock, turn, evicted } = setUp();
    world.subsets = ["canary", ""];
    world.pods = [pod("a"), pod("b", { subset: "canary" }), pod("c")];
    await turn();
    expect(evicted).toEqual(["b"]);
    world.pods = [pod("a"), pod("c")];
    world.scale = () => ({ spec: { replicas: 3 } });
    await turn();
    for (let minute = 0; minute < 10; minute++) {
      await clock.advance(60_000);
      await turn();
    }
    expect(evicted).toEqual(["b"]);
    world.scale = () => {
      throw new StatusError("NotFound", "gone", { kind: "replicasets", name: "rs" });
    };
    world.pods = [];
    await clock.advance(10_000);
    expect(await turn()).toEqual({});
  });
  it("counts the workload's pods in every subset", async () => {
    const { world, clock, turn, evicted } = setUp();
    world.subsets = ["canary", ""];
    world.scale = () => ({ spec: { replicas: 4 } });
    world.pods = [pod("a"), pod("b", { subset: "canary" }), pod("c"), pod("d", { subset: "canary", ready: true })];
    world.leader = "d";
    await turn();
    world.pods = [pod("a"), pod("b2"), pod("c"), pod("d", { subset: "canary" })];
    await turn();
    expect(evicted).toEqual(["b"]);
    await clock.advance(10_000);
    await turn();
    expect(evicted).toEqual(["b", "d"]);
  });
  it("continues after ten seconds if the spec no longer has the subset", async () => {
    const { clock, turn, evicted, put } = setUp();
    put(ofCanary);
    await turn();
    expect(evicted).toEqual([]);
    await clock.advance(10_000);
    await turn();
    expect(evicted).toEqual(["b"]);
  });
});

describe("a restarter before a roll", () => {
  it("evicts no pod before the need has lasted long enough, and waits again if the need was gone meanwhile", async () => {
    const { world, clock, turn, evicted, record } = setUp({ settleMs: 20_000 });
    expect(await turn()).toEqual({ requeueAfterMs: 20_000 });
    expect(record()).toMatchObject({ reason: "Settling", left: 3 });
    await clock.advance(19_000);
    world.desired = table([], {});
    await turn();
    expect(record()).toBeUndefined();
    world.desired = showing;
    expect(await turn()).toEqual({ requeueAfterMs: 20_000 });
    await clock.advance(20_000);
    await turn();
    expect(evicted).toEqual(["b"]);
  });
  it("waits longer with every roll of a subset in the last half hour, so that a flapping label does not roll it without end", async () => {
    const { world, clock, turn, evicted, record } = setUp({ settleMs: 20_000 });
    const waits: number[] = [];
    world.pods = [pod("a-0")];
    for (let roll = 1; roll <= 6; roll++) {
      const { requeueAfterMs = 0 } = await turn();
      expect(record()).toMatchObject({ reason: "Settling" });
      waits.push(requeueAfterMs / 1_000);
      await clock.advance(requeueAfterMs);
      await turn();
      expect(evicted).toHaveLength(roll);
      world.pods = [pod(`a-${roll}`)]; // and it retains something again
    }
    expect(waits).toEqual([20, 40, 80, 160, 240, 240]);
    await clock.advance(1_800_000);
    world.desired = table([], {});
    await turn();
    world.desired = showing;
    expect(await turn()).toEqual({ requeueAfterMs: 20_000 });
  });
});
