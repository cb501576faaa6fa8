import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { egressRule, limitRule } from "../../../test/support/policies.ts";
import { EGRESS_LISTEN_ENV, INJECTED_LABEL, PROXY_CONTAINER } from "../../api/injected-pod.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { NO_REPORTS, type PolicyReportMessage } from "../../mesh/contract/messages.ts";
import type { PolicyResource } from "../../mesh/contract/policy-type.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import type { LimitRule } from "../../policy/policy.ts";
import { createStore } from "../../runtime/store.ts";
import type { App } from "../apps/app.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import type { PolicyKind, PolicyObject, TargetPod } from "./policy-kind.ts";
import { createPoliciesReconciler } from "./reconciler.ts";

const { signal } = new AbortController();
const REQUEST = { namespace: "", name: "shop" };
const RULES = { group: "test", version: "v1", resource: "rules", kind: "Rule", namespaced: true };

interface RuleObject extends PolicyObject {
  readonly spec: {
    readonly max: number;
    readonly app?: string;
    readonly except?: string;
    readonly endsMs?: number;
    readonly count?: number;
    readonly egress?: boolean;
  };
}

/** A kind with a bound of requests at once; a negative one is not valid. */
const KIND: PolicyKind<RuleObject> = {
  resource: RULES,
  compile({ metadata, spec }) {
    if (spec.max < 0) return { ok: false, problems: [{ path: "spec.max", message: "must not be negative" }] };
    const { name = "", uid = "" } = metadata;
    const origin = { kind: "TrafficPolicy", namespace: "shop", name, uid, rule: "max" } as const;
    const rule = limitRule({ kind: "in-flight", max: spec.max }, { origin });
    const limits: LimitRule[] = spec.egress ? [] : Array.from({ length: spec.count ?? 1 }, () => rule);
    const egress = spec.egress ? [{ ...egressRule("Allow", [{ host: "a.example" }]), origin }] : [];
    return {
      ok: true,
      value: {
        rules: { limits, faults: [], egress },
        off: "",
        endsMs: spec.endsMs,
        isFor: ({ app }: TargetPod) =>
          app === "" && spec.app !== undefined ? "unsure" : app === (spec.app ?? app) && app !== spec.except,
        notes: [],
      },
    };
  },
};

function setUp() {
  const [client, clock] = [createFakeKubeClient(), createFakeClock()];
  const store = createStore<RuleObject>((error) => {
    throw error;
  });
  const pods: Pod[] = [];
  const listed = { isApp: true, hasSynced: true, isListed: true };
  const published = new Map<string, PolicyResource>();
  const reports = new Map<string, PolicyReportMessage>();
  /** The apps whose routes proxies have acknowledged, by pod. */
  const routes = new Map<string, string>();
  const events: string[] = [];
  const registry = {
    publish: (pod: string, _type: unknown, resource: unknown) => void published.set(pod, resource as PolicyResource),
    facts: (pod: string) =>
      ({
        ...NO_REPORTS,
        capabilities: new Set(pod === "shop/old-0" ? [] : ["type:policy"]),
        connected: true,
        acknowledged: routes.has(pod) ? { app: { name: routes.get(pod) } } : undefined,
        problems: {},
        ...(reports.has(pod) && { policies: reports.get(pod) }),
      }) as unknown as ProxyFacts,
  } as unknown as ProxyRegistry;
  const options = {
    kinds: [{ kind: KIND as PolicyKind, store }],
    ...{
      apps: {
        get: (name: string) => (["", "gone"].includes(name) ? undefined : ({ pods: { subsetOf: () => "" } } as unknown as App)),
        list: () => (listed.isApp ? [{} as App] : []),
        get hasSynced() {
          return listed.hasSynced;
        },
      },
      pods: { list: () => (listed.isListed ? pods : undefined) },
      registry,
      client,
      clock,
    },
    events: { event: (_object: unknown, type: string, reason: string) => void events.push(`${type} ${reason}`) },
  };
  const first = createPoliciesReconciler(options);
  const ref = (name: string) => ({ namespace: "shop", name });
  return {
    client,
    clock,
    published,
    reports,
    events,
    listed,
    restartManager: (other: Clock = clock) => createPoliciesReconciler({ ...options, clock: other }),
    pod: (name: string, app: string) =>
      void pods.push({ metadata: { namespace: "shop", name, uid: name, labels: { [INJECTED_LABEL]: app } } } as unknown as Pod),
    edit(name: string, change: (pod: Pod) => Pod) {
      const at = pods.findIndex(({ metadata }) => metadata.name === name);
      pods.splice(at, 1, ...pods.slice(at, at + 1).map(change));
    },
    routes,
    put(name: string, spec: RuleObject["spec"]) {
      const before = client.read<RuleObject>(RULES, ref(name));
      const generation = (before?.metadata.generation ?? 0) + 1;
      const object = { ...before, metadata: { ...before?.metadata, ...ref(name), generation }, spec } as RuleObject;
      client.put(RULES, object);
    },
    status: (name: string) => client.read<RuleObject>(RULES, ref(name))?.status,
    max: (pod: string) =>
      published.get(`shop/${pod}`)?.limits.map(({ limiter }) => (limiter.kind === "in-flight" ? limiter.max : -1)),
    /** The proxies enforce what was published. */
    acknowledge(...opened: string[]) {
      for (const [pod, { digest, limits }] of published) {
        const rules = limits.map(({ origin }) => ({
          uid: origin.uid,
          rule: origin.rule,
          opened: opened.includes(pod),
          sinceMs: 1_000,
          halfOpen: false,
          cause: "",
        }));
        reports.set(pod, { digest, rules });
      }
    },
    /** The watch catches up. */
    async reconcile(reconciler = first) {
      store.replace((await client.list(RULES, {})).items as RuleObject[]);
      client.calls.length = 0;
      const result = await reconciler.reconcile(REQUEST, signal);
      return { ...result, writes: client.calls.filter(({ verb }) => verb === "patch").length };
    },
  };
}

let world: ReturnType<typeof setUp>;
beforeEach(() => {
  world = setUp();
  world.pod("a-0", "a");
  world.pod("b-0", "b");
});

it("a tenant's many pods that all have different policies do not hold up the event loop", async () => {
  for (let at = 0; at < 60; at++) {
    world.pod(`p-${at}`, `p-${at}`);
    world.put(`o-${at}`, { max: 1, count: 17, except: `p-${at}` });
  }
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await world.reconcile(world.restartManager(systemClock));
  isOver = true;
  expect(world.max("p-0")).toHaveLength(59 * 17);
  expect(turns).toBeGreaterThan(30);
});

describe("the policies of a namespace", () => {
  it("reach each pod that they are for, and pods of no policy get an empty set", async () => {
    world.put("one", { max: 1, app: "a" });
    await world.reconcile();
    expect([world.max("a-0"), world.max("b-0")]).toEqual([[1], []]);
  });

  it("are not sent to a proxy of an older version, unless there are some for it", async () => {
    world.pod("old-0", "old");
    await world.reconcile();
    expect(world.published.has("shop/old-0")).toBe(false);
    world.put("one", { max: 1 });
    await world.reconcile();
    expect(world.max("old-0")).toEqual([1]);
  });

  it("come in the order of their names, so that every manager makes the same digest", async () => {
    world.put("two", { max: 2 });
    world.put("one", { max: 1 });
    await world.reconcile();
    expect(world.max("a-0")).toEqual([1, 2]);
    expect(world.published.get("shop/a-0")?.digest).toBe(world.published.get("shop/b-0")?.digest);
  });

  it("lose the rules of a deleted object, also those that an earlier manager gave", async () => {
    world.put("one", { max: 1 });
    await world.reconcile();
    world.acknowledge();
    world.client.remove(RULES, { namespace: "shop", name: "one" });
    await world.reconcile(world.restartManager());
    expect(world.max("a-0")).toEqual([]);
  });

  it("keep the newest valid spec of an object that becomes invalid", async () => {
    world.put("one", { max: 1 });
    await world.reconcile();
    world.put("one", { max: -1 });
    await world.clock.advance(1_000);
    await world.reconcile();
    expect(world.max("a-0")).toEqual([1]);
    expect(world.status("one")?.conditions?.[0]).toMatchObject({
      status: "False",
      message: expect.stringContaining("stay in force"),
    });
    expect(world.events).toEqual(["Warning PolicyRejected"]);
  });
});

describe("a pod whose label of the injection is gone", () => {
  const unlabelled = (pod: Pod): Pod => ({
    metadata: { ...pod.metadata, labels: {} },
    spec: { containers: [{ name: PROXY_CONTAINER }] },
  });

  it("is still limited, as long as its proxy runs: its routes name the app", async () => {
    world.put("one", { max: 1, app: "a" });
    await world.reconcile();
    world.acknowledge();
    world.edit("a-0", unlabelled);
    world.routes.set("shop/a-0", "a");
    world.put("two", { max: 2, app: "a" });
    await world.reconcile();
    expect(world.max("a-0")).toEqual([1, 2]);
    expect(world.status("two")?.targets?.total).toBe(1);
    world.client.remove(RULES, { namespace: "shop", name: "one" });
    await world.reconcile();
    expect(world.max("a-0")).toEqual([2]);
  });

  it("keeps what it has while nobody knows its app", async () => {
    world.put("one", { max: 1, app: "a" });
    await world.reconcile();
    world.acknowledge();
    world.edit("a-0", unlabelled);
    await world.reconcile();
    expect(world.published.get("shop/a-0")).toMatchObject({ limits: [], keep: [expect.any(String)] });
  });

  it("counts no more without a proxy, and so does a pod that has ended", async () => {
    world.put("one", { max: 1 });
    world.edit("a-0", (pod) => ({ ...unlabelled(pod), spec: {} }) as Pod);
    const terminated = [{ name: "op", state: { terminated: { exitCode: 1 } } }];
    world.edit("b-0", (pod) => ({ ...pod, status: { phase: "Failed", containerStatuses: terminated } }) as unknown as Pod);
    await world.reconcile();
    expect(world.status("one")?.targets?.total).toBe(0);
  });
});

describe("the status of a policy", () => {
  it("says who enforces it, and is not written again for equal facts", async () => {
    world.put("one", { max: 1 });
    expect((await world.reconcile()).writes).toBe(1);
    expect(world.status("one")?.targets).toEqual({ total: 2, synced: 0, opened: 0 });
    world.acknowledge();
    await world.clock.advance(1_000);
    expect((await world.reconcile()).writes).toBe(1);
    expect(world.status("one")?.targets).toEqual({ total: 2, synced: 2, opened: 0 });
    await world.clock.advance(60_000);
    expect((await world.reconcile()).writes).toBe(0);
  });

  it("says that a policy stays out of a pod that older ones fill, and the pod keeps these", async () => {
    world.put("new", { max: 2, app: "a", count: 100 });
    world.put("a-old", { max: 1, count: 1_000 });
    await world.reconcile();
    world.acknowledge();
    await world.clock.advance(1_000);
    await world.reconcile();
    expect(new Set(world.max("a-0"))).toEqual(new Set([1]));
    expect(world.status("new")).toMatchObject({
      targets: { total: 1, synced: 0 },
      conditions: [{ reason: "TooManyRules" }, {}, {}, { type: "Ready", reason: "TooManyRules" }],
    });
    expect(world.status("a-old")).toMatchObject({
      targets: { total: 2, synced: 2 },
      conditions: [{ reason: "Valid" }, {}, {}, {}],
    });
  });

  it("is written at most once a second, and the last state is not lost", async () => {
    world.put("one", { max: 1 });
    await world.reconcile();
    world.acknowledge("shop/a-0");
    const early = await world.reconcile();
    expect(early).toMatchObject({ writes: 0, requeueAfterMs: 1_000 });
    await world.clock.advance(1_000);
    await world.reconcile();
    expect(world.status("one")?.targets).toEqual({ total: 2, synced: 2, opened: 1 });
    expect(world.status("one")?.targetStatus?.[0]).toMatchObject({
      podName: "a-0",
      limitingSnapshots: [{ name: "max", state: "Opened", lastTransitionTime: "1970-01-01T00:00:01.000Z" }],
    });
    world.acknowledge();
    await world.clock.advance(1_000);
    await world.reconcile();
    expect(world.events).toEqual(["Warning BreakerOpened", "Normal BreakerClosed"]);
  });
});

it("fifty proxies whose breakers open and close all the time cost a write a second, and the pods keep their order", async () => {
  const names = Array.from({ length: 50 }, (_, at) => `flapping-${String(at).padStart(2, "0")}`);
  for (const name of names) world.pod(name, "a");
  world.put("one", { max: 1, app: "a" });
  await world.reconcile();
  let writes = 0;
  for (let tick = 0; tick < 100; tick++) {
    const open = names.filter((_, at) => (at + tick) % 2 === 0);
    world.acknowledge(...[...open].sort(() => (tick % 2 === 0 ? 1 : -1)).map((name) => `shop/${name}`));
    writes += (await world.reconcile()).writes;
    const { targetStatus = [], targets } = world.status("one") ?? {};
    if (tick > 20) expect(targets).toEqual({ total: 51, synced: 51, opened: 25 });
    const opened = targetStatus.filter(({ limitingSnapshots = [] }) => limitingSnapshots.some(({ state }) => state === "Opened"));
    const listed = targetStatus.map(({ podName }) => podName);
    expect(listed.slice(0, opened.length)).toEqual(opened.map(({ podName }) => podName).sort());
    expect(listed.slice(opened.length)).toEqual(listed.slice(opened.length).sort());
    await world.clock.advance(100);
  }
  expect(writes).toBeGreaterThan(5);
  expect(writes).toBeLessThanOrEqual(11);
});

describe("a policy with rules about other servers alone", () => {
  it("is sent also to a proxy of an older version, which says that it does not take it", async () => {
    world.pod("old-0", "old");
    world.put("one", { max: 1, egress: true });
    await world.reconcile();
    expect(world.published.get("shop/old-0")?.egress).toHaveLength(1);
  });

  it("names the pods that do not send such requests to their proxy", async () => {
    const containers = [{ name: PROXY_CONTAINER, env: [{ name: EGRESS_LISTEN_ENV, value: "127.0.0.1:15002" }] }];
    world.edit("a-0", (pod) => ({ ...pod, spec: { initContainers: containers } }));
    world.put("one", { max: 1, egress: true });
    await world.reconcile();
    world.acknowledge();
    await world.clock.advance(1_000);
    await world.reconcile();
    expect(world.status("one")?.conditions?.[1]).toMatchObject({
      type: "Synced",
      status: "False",
      reason: "NoEgress",
      message: expect.stringMatching(/^1 of 2 proxies enforce these rules; pod b-0: .* ctrlmesh\.kruise\.io\/egress$/),
    });
    world.put("two", { max: 1 });
    await world.clock.advance(1_000);
    await world.reconcile();
    world.acknowledge();
    await world.clock.advance(1_000);
    await world.reconcile();
    expect(world.status("two")?.conditions?.[1]).toMatchObject({ status: "True" });
  });
});

describe("the status of a policy in a namespace", () => {
  it("without an app says that it selects no pod", async () => {
    Object.assign(world.listed, { isListed: false, isApp: false });
    world.put("one", { max: 1 });
    await world.reconcile();
    expect(world.status("one")?.conditions).toMatchObject([
      { type: "Accepted", status: "True" },
      { type: "Synced", reason: "NoTargets" },
      { type: "Open", status: "False" },
      { type: "Ready", reason: "NoTargets" },
    ]);
  });

  it("waits until the apps and the pods are known, so that a new manager says nothing wrong", async () => {
    world.put("one", { max: 1 });
    for (const state of [{ isApp: false, hasSynced: false }, { isApp: true }]) {
      Object.assign(world.listed, { isListed: false, hasSynced: true, ...state });
      expect((await world.reconcile()).writes).toBe(0);
    }
  });

  it("says at the moment of its end that a policy has expired", async () => {
    world.put("one", { max: 1, endsMs: world.clock.now() + 5_000 });
    await world.reconcile();
    world.acknowledge();
    await world.clock.advance(1_000);
    await world.reconcile();
    expect(world.status("one")?.conditions?.[0]).toMatchObject({ reason: "Valid" });
    expect(await world.reconcile()).toMatchObject({ writes: 0, requeueAfterMs: 4_000 });
    await world.clock.advance(4_000);
    expect(await world.reconcile()).toEqual({ writes: 1 });
    expect(world.status("one")?.conditions?.[0]).toMatchObject({ status: "True", reason: "Expired" });
  });
});
