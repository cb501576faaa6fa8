import { describe, expect, it } from "vitest";
import { proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import type { AppStatus, Phase } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import { createRegistry } from "../../base/metrics.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import type { App } from "../apps/app.ts";
import type { PolicyObject } from "../policies/policy-kind.ts";
import { createManagerMetrics } from "./metrics.ts";

const facts = (more: Partial<ProxyFacts>) => proxyFacts({ acknowledged: snapshot(table([], {}), { subset: "canary" }), ...more });
const proxies: Record<string, ProxyFacts> = {
  "shop/a": facts({}),
  "shop/b": facts({ connected: false }),
  "shop/c": facts({ outstanding: snapshot(table([], {})) }),
  "shop/d": facts({ problems: { route: ["no"] } }),
};
const status: AppStatus = {
  namespaces: { total: 3, moving: 0, held: 0, conflicting: 2 },
  subsets: [
    { name: "default", namespaces: 2, readyPods: 1 },
    { name: "canary", namespaces: 1, readyPods: 1 },
  ],
};

const policy = (Accepted: string, Synced: string): PolicyObject => ({
  metadata: {},
  status: {
    conditions: Object.entries({ Accepted, Synced }).map(([type, value]) => ({
      type,
      status: value as Condition["status"],
      reason: "",
      message: "",
      lastTransitionTime: "",
    })),
  },
});
const policies = [policy("True", "True"), policy("True", "Unknown"), policy("True", "False"), policy("False", "False")];

const APP = 'kind="VirtualApp",namespace="shop",name="app"';
const appsOf = (...apps: readonly App[]) => ({
  list: () => [...apps],
  get: (name: string) => apps.find(({ ref }) => ref.name === name),
});

function setup(isLeader = true, appStatus: AppStatus = status) {
  const metricsRegistry = createRegistry("manager", "0");
  const metrics = createManagerMetrics({ metricsRegistry });
  metrics.readFrom({
    registry: { pods: Object.keys(proxies), facts: (pod) => proxies[pod] },
    apps: appsOf(appOf({ metadata: { namespace: "shop", name: "app" }, status: appStatus })),
    policies: [{ kind: "CircuitBreaker", list: () => policies }],
    kinds: [],
    clusters: () => [],
    isLeader: () => isLeader,
    clock: { now: () => Date.parse("2026-01-02T00:00:00Z") },
  });
  const lines = async (name: string) => (await metricsRegistry.metrics()).split("\n").filter((line) => line.startsWith(name));
  return { metrics, lines, metricsRegistry };
}

describe("the manager's gauges", () => {
  it("count proxies by app, subset and state", async () => {
    const { lines } = setup();
    const label = (state: string) => `ctrlmesh_manager_proxies{${APP},subset="canary",state="${state}"} 1`;
    expect(await lines("ctrlmesh_manager_proxies")).toEqual(["synced", "disconnected", "pending", "rejected"].map(label));
  });

  it("count policies by kind and state, from the replica that leads alone", async () => {
    const { lines } = setup();
    const line = (state: string, count: number) => `ctrlmesh_manager_policies{kind="CircuitBreaker",state="${state}"} ${count}`;
    expect(await lines("ctrlmesh_manager_policies")).toEqual([line("enforced", 2), line("behind", 1), line("invalid", 1)]);
    expect(await setup(false).lines("ctrlmesh_manager_policies")).toEqual([]);
  });

  it("tell what the status says, from the replica that leads alone", async () => {
    const leader = setup();
    expect(await leader.lines("ctrlmesh_manager_owned_namespaces")).toEqual([
      `ctrlmesh_manager_owned_namespaces{${APP},subset="default"} 2`,
      `ctrlmesh_manager_owned_namespaces{${APP},subset="canary"} 1`,
    ]);
    expect(await leader.lines("ctrlmesh_manager_conflicting_namespaces")).toEqual([
      `ctrlmesh_manager_conflicting_namespaces{${APP}} 2`,
    ]);
    expect(await leader.lines("ctrlmesh_manager_leader")).toEqual(["ctrlmesh_manager_leader 1"]);
    const other = setup(false);
    expect(await other.lines("ctrlmesh_manager_owned_namespaces")).toEqual([]);
    expect(await other.lines("ctrlmesh_manager_leader")).toEqual(["ctrlmesh_manager_leader 0"]);
  });
});

describe("the time without a writer", () => {
  const [first, second] = status.subsets ?? [];
  const noWriter = async (appStatus: AppStatus, isLeader = true) =>
    setup(isLeader, appStatus).lines("ctrlmesh_manager_no_writer_now_seconds");
  const line = (seconds: number) => [`ctrlmesh_manager_no_writer_now_seconds{${APP}} ${seconds}`];

  it("is 0 while a pod can write everywhere", async () => {
    expect(await noWriter(status)).toEqual(line(0));
    expect(await noWriter({})).toEqual(line(0));
  });

  it("is that of the subset that has waited longest, also after a day", async () => {
    const waiting = (since: string, ago: string): AppStatus => ({
      subsets: [first, second]
        .flatMap((subset) => subset ?? [])
        .map((subset, at) => ({ ...subset, waitingSince: at ? ago : since })),
    });
    expect(await noWriter(waiting("2026-01-01T23:59:59.500Z", "2026-01-01T23:58:30Z"))).toEqual(line(90));
    expect(await noWriter(waiting("2026-01-01T00:00:00Z", "2026-01-01T23:58:30Z"))).toEqual(line(86_400));
  });

  it("is not negative if another manager's clock is ahead, and comes from the replica that leads alone", async () => {
    const ahead = { ...status, subsets: [{ name: "canary", namespaces: 1, readyPods: 1, waitingSince: "2026-01-02T00:00:09Z" }] };
    expect(await noWriter(ahead)).toEqual(line(0));
    expect(await noWriter(ahead, false)).toEqual([]);
  });
});

describe("the metrics of shards", () => {
  const ref = { kind: "ShardingConfig", namespace: "ops", name: "shop" };
  const shard = (name: string, namespaces: number) => ({ name, namespaces, readyPods: 1, pods: 2 });
  function families(isLeader = true) {
    const metricsRegistry = createRegistry("manager", "0");
    const metrics = createManagerMetrics({ metricsRegistry });
    const apps = [{ ref, object: { metadata: {}, status: { subsets: [shard("default", 0), shard("shop-1-normal", 7)] } } }];
    const ofApp = [appOf({ metadata: { namespace: "shop", name: "app" }, status })];
    const registry = { pods: [], facts: () => undefined };
    const list = () => [...apps, ...ofApp] as ReturnType<typeof appOf>[];
    const others = { policies: [], kinds: [], clusters: () => [], isLeader: () => isLeader, clock: { now: () => 0 } };
    metrics.readFrom({ registry, apps: { list, get: () => undefined }, ...others });
    const lines = async () =>
      (await metricsRegistry.metrics())
        .split("\n")
        .filter((line) => line.startsWith("ctrlmesh_manager_shard_"))
        .map((line) => line.replace('family_namespace="ops",family="shop",shard=', ""));
    return { apps, lines, metrics };
  }

  it("are namespaces, pods and moves of each shard, and of no other app or pods without a shard", async () => {
    const { lines, metrics } = families();
    metrics.moved(ref, new Map([["shop-1-normal", { gained: 3, lost: 1 }]]));
    metrics.moved(ref, new Map([["shop-1-normal", { gained: 1, lost: 0 }]]));
    expect(await lines()).toEqual([
      'ctrlmesh_manager_shard_namespaces{"shop-1-normal"} 7',
      'ctrlmesh_manager_shard_pods{"shop-1-normal"} 2',
      'ctrlmesh_manager_shard_ready_pods{"shop-1-normal"} 1',
      'ctrlmesh_manager_shard_moved_namespaces_total{"shop-1-normal",direction="gained"} 4',
      'ctrlmesh_manager_shard_moved_namespaces_total{"shop-1-normal",direction="lost"} 1',
    ]);
  });

  it("end with the family, and come from the replica that leads alone", async () => {
    const { apps, lines, metrics } = families();
    metrics.moved(ref, new Map([["shop-1-normal", { gained: 3, lost: 1 }]]));
    const [family] = apps.splice(0);
    expect(await lines()).toEqual([]);
    if (family !== undefined) apps.push(family);
    expect((await lines()).at(-1)).toBe('ctrlmesh_manager_shard_moved_namespaces_total{"shop-1-normal",direction="lost"} 0');
    expect(await families(false).lines()).toEqual([]);
  });
});

describe("a handover", () => {
  const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
  const running = (phase: Phase, since: string): AppStatus => ({ handover: { phase, since, done: 0, total: 1 } });
  const finished: AppStatus = {
    lastHandover: { from: "", to: "canary", namespaces: 1, finishedAt: at(3), noWriterSeconds: 2.5, result: "Moved" },
  };

  it("is measured by its phases, its result and the time without a writer, each once", async () => {
    const { metrics, lines } = setup();
    const [draining, granting] = [running("Draining", at(0)), running("Granting", at(2))];
    metrics.statusWritten(undefined, draining, Date.parse(at(0)));
    metrics.statusWritten(draining, draining, Date.parse(at(1)));
    metrics.statusWritten(draining, granting, Date.parse(at(2)));
    metrics.statusWritten(granting, finished, Date.parse(at(3)));
    metrics.statusWritten(finished, finished, Date.parse(at(9)));
    expect(await lines("ctrlmesh_manager_handover_phase_seconds_sum")).toEqual([
      'ctrlmesh_manager_handover_phase_seconds_sum{phase="Draining"} 2',
      'ctrlmesh_manager_handover_phase_seconds_sum{phase="Granting"} 1',
    ]);
    expect(await lines("ctrlmesh_manager_handovers_total")).toEqual([
      'ctrlmesh_manager_handovers_total{result="moved"} 1',
      'ctrlmesh_manager_handovers_total{result="undone"} 0',
    ]);
    expect(await lines("ctrlmesh_manager_no_writer_seconds_sum")).toEqual(["ctrlmesh_manager_no_writer_seconds_sum 2.5"]);
    expect(await lines("ctrlmesh_manager_no_writer_seconds_count")).toEqual(["ctrlmesh_manager_no_writer_seconds_count 1"]);
  });

  it("without anybody to take the namespaces measures no time", async () => {
    const { metrics, lines } = setup();
    const { noWriterSeconds: _, ...nobody } = finished.lastHandover ?? {
      from: "",
      to: "",
      namespaces: 0,
      finishedAt: at(0),
      result: "Moved" as const,
    };
    metrics.statusWritten(undefined, { lastHandover: nobody }, 0);
    expect(await lines("ctrlmesh_manager_no_writer_seconds_count")).toEqual(["ctrlmesh_manager_no_writer_seconds_count 0"]);
  });

  it("labels name objects of the mesh, but no tenant and no pod", async () => {
    const { metrics, metricsRegistry } = setup();
    metrics.snapshotAcknowledged(0.1);
    metrics.statusWritten(running("Draining", at(0)), finished, Date.parse(at(1)));
    const labels = new Set([...(await metricsRegistry.metrics()).matchAll(/[{,]([a-z_]+)="/g)].map(([, name]) => name));
    expect([...labels].sort()).toEqual([
      "component",
      "kind",
      "le",
      "name",
      "namespace",
      "phase",
      "result",
      "state",
      "subset",
      "version",
    ]);
  });
});
