import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import type { ResourceMessage } from "../../../src/mesh/contract/messages.ts";
import { claimedRoute, routeDigest } from "../../../src/mesh/contract/route-type.ts";
import { INHERITED_WRITES_MS } from "../../../src/mesh/link/proxy-routes.ts";
import type { Snapshot } from "../../../src/mesh/ownership/snapshot.ts";
import { createSession } from "../../../src/proxy/session/create-session.ts";
import { LEASE_MS } from "../../../src/proxy/session/stream-ledger.ts";
import { createStateFolder } from "../../../src/proxy/state/state-folder.ts";
import { eventually } from "../../support/eventually.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { tableFromBytes } from "../../support/route-table.ts";
import { type ManagerOptions, type ScriptedManager, startManager } from "../../support/scripted-manager.ts";
import { routes } from "../../support/test-routes.ts";
import { CAPABILITIES, deltaUpdate, wholeUpdate } from "../../support/updates.ts";

let dataDir = "";
let stops: (() => unknown)[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "session-"));
  stops = [];
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function runManager(port?: number, options?: ManagerOptions): Promise<ScriptedManager> {
  const started = await startManager(port, options);
  stops.push(() => started.stop());
  return started;
}

async function proxy(endpoint: string, more: { podUid?: string } = {}, clock: Clock = systemClock) {
  const registry = createRegistry("proxy", "test");
  const session = createSession({
    config: { manager: endpoint, podNamespace: "shop", podName: "shop-0", podUid: "uid-1", ...more },
    state: createStateFolder(dataDir, silentLogger()),
    log: silentLogger(),
    clock,
    random: () => 0.5,
    registry,
    proxyVersion: "9.9.9",
    backoff: { baseMs: 20, maxMs: 50 },
  });
  let stopped = false;
  const stop = async () => {
    if (!stopped) await session.stop();
    stopped = true;
  };
  stops.push(stop);
  await session.start(new AbortController().signal);
  const metric = async (name: string) =>
    (await registry.getSingleMetricAsString(name)).split("\n").filter((line) => !line.startsWith("#"));
  return { session, stop, metric };
}

/** As a proxy reads stored routes: the digest is computed. */
const restored = (snapshot: Snapshot): Snapshot => ({ ...snapshot, digest: routeDigest(snapshot) });

const send = (to: ScriptedManager, snapshot: Snapshot, nonce: number, spoil: Partial<ResourceMessage> = {}) =>
  to.send({ update: wholeUpdate(snapshot, nonce, spoil) });
const welcome = (epoch: number, ...wantedTables: Uint8Array[]) => ({ welcome: { epoch, wantedTables, types: [] } });
const NO_BODY = { digest: "", body: Buffer.alloc(0) };
const acks = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("ack" in message && message.ack ? [message.ack.nonce] : []));
const nacks = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("nack" in message && message.nack ? [message.nack] : []));
const registrations = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("registration" in message && message.registration ? [message.registration] : []));
const promises = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("promise" in message && message.promise ? [message.promise] : []));
/** Leadership, lock access, backlog, unnamed lock, policies, webhook problem, shares of budgets. */
const KINDS_OF_REPORT = 8;
const reports = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("report" in message && message.report ? [message.report] : []));
const leaders = (of: ScriptedManager) => reports(of).flatMap((report) => ("leader" in report ? [report.leader] : []));

describe("a proxy's session", () => {
  it("registers first, enforces the snapshot that it receives, and acknowledges it", async () => {
    const manager = await runManager();
    const { session, metric } = await proxy(manager.endpoint);
    expect(session.current).toBeUndefined();
    await eventually(() => manager.streams.length === 1 && registrations(manager).length === 1);
    expect(manager.received[0]).toMatchObject({
      registration: {
        pod: { namespace: "shop", name: "shop-0", uid: "uid-1" },
        proxyVersion: "9.9.9",
        capabilities: CAPABILITIES,
        epoch: 0,
        route: { version: 0, acknowledged: null, inDoubt: [], mayHoldMore: false },
      },
    });
    send(manager, routes(3, { blue: ["a"] }), 11);
    await eventually(() => acks(manager).length === 1);
    expect(acks(manager)).toEqual([11]);
    expect(session.current?.snapshot).toEqual(routes(3, { blue: ["a"] }));
    expect(await metric("ctrlmesh_proxy_route_version")).toContain("ctrlmesh_proxy_route_version 3");
    expect(await metric("ctrlmesh_proxy_manager_connected")).toContain("ctrlmesh_proxy_manager_connected 1");
  });

  it("rejects an invalid snapshot with every problem and keeps the last good one", async () => {
    const manager = await runManager();
    const { session, metric } = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    send(manager, routes(1, { blue: ["a"] }), 1);
    send(manager, routes(2, {}), 2, NO_BODY);
    send(manager, routes(3, {}, { podNamespace: "elsewhere" }), 3);
    await eventually(() => nacks(manager).length === 2);
    expect(nacks(manager)[0]?.problems.join()).toMatch(/digest.*body/);
    expect(nacks(manager)[1]?.problems.join()).toContain("elsewhere");
    expect(session.current?.snapshot.version).toBe(1);
    expect(await metric("ctrlmesh_proxy_snapshot_rejected_total")).toContain(
      'ctrlmesh_proxy_snapshot_rejected_total{reason="invalid"} 2',
    );
  });

  it("never goes back to an older version, but accepts equal rules under any version", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    let changes = 0;
    session.onChange(() => changes++);
    send(manager, routes(5, { blue: ["a"] }), 1);
    send(manager, routes(4, { blue: ["b"] }), 2);
    send(manager, routes(5, { blue: ["a"] }, { version: 4 }), 3);
    send(manager, routes(5, { blue: ["a"] }, { version: 9 }), 4);
    await eventually(() => acks(manager).includes(4));
    expect(nacks(manager).map(({ nonce }) => nonce)).toEqual([2]);
    expect([changes, session.current?.snapshot.version]).toEqual([1, 9]);
  });

  it("acknowledges the loss of a namespace only after the writes in flight there have ended", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    send(manager, routes(1, { blue: ["a", "b"] }), 1);
    await eventually(() => acks(manager).length === 1);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    session.beginWrite("b", { group: "", resource: "pods" });
    send(manager, routes(2, { blue: ["b"], fenced: ["a"] }), 2);
    await eventually(() => session.current?.snapshot.version === 2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(acks(manager)).toEqual([1]);
    done();
    await eventually(() => acks(manager).length === 2);
    expect(acks(manager)).toEqual([1, 2]);
  });

  it("registers without waiting for writes in lost namespaces, with the last acknowledged snapshot and those in doubt", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    send(manager, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(manager).length === 1);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    send(manager, routes(2, { blue: ["b"], defaultSubset: ["a"] }), 2);
    await eventually(() => session.current?.snapshot.version === 2);
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 2);
    expect(registrations(manager)[1]?.route).toMatchObject({
      version: 2,
      acknowledged: { type: "routes", version: 1, digest: "digest-1" },
      inDoubt: [{ version: 2, digest: "digest-2" }],
    });
    // Route updates arrive meanwhile. They do not make the acknowledgement come earlier.
    send(manager, routes(2, { blue: ["b"], defaultSubset: ["a"] }), 3);
    send(manager, routes(3, { blue: ["b", "c"], defaultSubset: ["a"] }), 4);
    await eventually(() => session.current?.snapshot.version === 3);
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 3);
    expect(registrations(manager)[2]?.route).toMatchObject({
      version: 3,
      acknowledged: { version: 1 },
      inDoubt: [{ version: 2 }, { version: 3 }],
    });
    send(manager, routes(3, { blue: ["b", "c"], defaultSubset: ["a"] }), 5);
    await new Promise((resolve) => setImmediate(resolve));
    expect(acks(manager)).toEqual([1]);
    done();
    await eventually(() => acks(manager).length === 2);
    expect(acks(manager)).toEqual([1, 5]);
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 4);
    expect(registrations(manager)[3]?.route).toMatchObject({ version: 3, acknowledged: { version: 3 }, inDoubt: [] });
  });

  it("registers a snapshot as enforced if it became ready to acknowledge after its stream had ended", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    send(manager, routes(1, { blue: ["b"] }), 1);
    await eventually(() => session.current?.snapshot.version === 1);
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 2);
    expect(registrations(manager)[1]?.route).toMatchObject({ version: 1, acknowledged: null, inDoubt: [{ version: 1 }] });
    done();
    await eventually(async () => (await readFile(join(dataDir, "snapshot.json"), "utf8").catch(() => "")).includes("digest-1"));
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 3);
    expect(registrations(manager)[2]?.route).toMatchObject({ version: 1, acknowledged: { version: 1 }, inDoubt: [] });
  });

  it("registers mayHoldMore if more snapshots are in doubt than it remembers", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    session.beginWrite("a", { group: "", resource: "pods" });
    for (let version = 1; version <= 5; version++) send(manager, routes(version, { blue: [`n${version}`] }), version);
    await eventually(() => session.current?.snapshot.version === 5);
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 2);
    expect(registrations(manager)[1]?.route).toMatchObject({ inDoubt: [{ version: 5 }], mayHoldMore: true });
  });

  it("keeps its routes while the manager is away, and registers again when the manager is back", async () => {
    const first = await runManager();
    const port = Number(first.endpoint.split(":")[1]);
    const { session, metric } = await proxy(first.endpoint);
    await eventually(() => first.streams.length === 1);
    send(first, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(first).length === 1);
    first.stop();
    await eventually(async () =>
      (await metric("ctrlmesh_proxy_manager_connected")).includes("ctrlmesh_proxy_manager_connected 0"),
    );
    expect(session.current?.snapshot.version).toBe(1);
    const second = await runManager(port);
    await eventually(() => registrations(second).length === 1);
    expect(registrations(second)[0]?.route).toMatchObject({ version: 1, acknowledged: { digest: "digest-1" } });
  });

  it("follows a redirect to the leading replica", async () => {
    const [follower, leader] = [await runManager(), await runManager()];
    const { session } = await proxy(follower.endpoint);
    await eventually(() => follower.streams.length === 1);
    follower.send({ redirect: { endpoint: leader.endpoint } });
    await eventually(() => leader.streams.length === 1);
    send(leader, routes(1, { blue: ["a"] }), 1);
    await eventually(() => session.current?.snapshot.version === 1);
    expect(follower.streams).toHaveLength(0);
  });

  it("reports its leadership when that changes, and again on a new stream", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    // A stream starts with a report of each kind.
    await eventually(() => leaders(manager).length === 1);
    session.report("leader", true);
    session.report("leader", true);
    await eventually(() => leaders(manager).length === 2);
    manager.streams.at(-1)?.end();
    await eventually(() => leaders(manager).length === 3);
    session.report("leader", false);
    await eventually(() => leaders(manager).length === 4);
    expect(leaders(manager)).toEqual([false, true, true, false]);
  });

  it("reports the verbs that the API server denies on its lock beside its leadership, and again on a new stream", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => reports(manager).length === KINDS_OF_REPORT);
    const lock = { lockName: "lock---blue", resource: "configmaps", deniedVerbs: ["get", "update"], reason: "no" };
    session.report("lock", lock);
    session.report("leader", true);
    await eventually(() => reports(manager).length === KINDS_OF_REPORT + 2);
    expect(reports(manager).slice(-2)).toMatchObject([{ lock }, { leader: true }]);
    manager.streams.at(-1)?.end();
    await eventually(() => reports(manager).length === 2 * KINDS_OF_REPORT + 2);
    expect(reports(manager).slice(-KINDS_OF_REPORT)).toMatchObject([
      { leader: true },
      { lock },
      { backlog: {} },
      { unnamedLock: { resource: "" } },
      { policies: { digest: "" } },
      { webhookProblem: "" },
      { clusters: { unreachable: [] } },
      { shares: { version: 0 } },
    ]);
    session.report("lock", null);
    await eventually(() => reports(manager).length === 2 * KINDS_OF_REPORT + 3);
    expect(reports(manager).at(-1)).toMatchObject({ lock: { resource: "" } });
  });

  it("reports a lock that the app does not name", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => reports(manager).length === KINDS_OF_REPORT);
    const unnamedLock = { lockName: "op", resource: "configmaps" };
    session.report("unnamedLock", unnamedLock);
    await eventually(() => reports(manager).length === KINDS_OF_REPORT + 1);
    expect(reports(manager).at(-1)).toMatchObject({ unnamedLock });
  });

  it("enforces the stored snapshot after a restart without a manager, but not that of another pod", async () => {
    const manager = await runManager();
    const first = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    send(manager, routes(6, { blue: ["a"] }), 1);
    await eventually(() => acks(manager).length === 1);
    await first.stop();
    manager.stop();
    const second = await proxy(manager.endpoint);
    expect(second.session.current?.snapshot).toEqual(restored(routes(6, { blue: ["a"] })));
    await second.stop();
    const other = await proxy(manager.endpoint, { podUid: "uid-2" });
    expect(other.session.current).toBeUndefined();
  });

  it("applies a delta, stores the whole snapshot, and asks for a whole snapshot if a delta does not fit", async () => {
    const manager = await runManager(0, { epoch: undefined });
    const first = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    const defaultSubset = Array.from({ length: 50 }, (_, index) => `n${index}`);
    const [one, two, three] = [1, 2, 3].map((version) => routes(version, { blue: ["a", `b${version}`], defaultSubset }));
    if (one === undefined || two === undefined || three === undefined) throw new Error("three snapshots were expected");
    const delta = (from: Snapshot, to: Snapshot, nonce: number) => manager.send({ update: deltaUpdate(from, to, nonce) });
    await eventually(() => registrations(manager).length === 1);
    manager.send(welcome(1));
    send(manager, one, 1);
    delta(one, two, 2);
    delta(one, three, 3); // its base is no longer enforced
    await eventually(() => nacks(manager).length === 1);
    expect(nacks(manager)[0]).toMatchObject({ nonce: 3, problems: [], needsWhole: true });
    await eventually(() => acks(manager).includes(2));
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 2);
    const { acknowledged = null, ...claims } = registrations(manager)[1]?.route ?? {};
    expect({ acknowledged, ...claims }).toMatchObject({ version: 2, acknowledged: { digest: "digest-2" }, inDoubt: [] });
    const [tableHash = Buffer.alloc(0)] = acknowledged ? claimedRoute(acknowledged).tableHashes : [];
    manager.send(welcome(1, tableHash, Buffer.alloc(32)));
    await eventually(() => promises(manager).length === 2);
    const [told, ...others] = promises(manager)[1]?.tables ?? [];
    expect([
      createHash("sha256")
        .update(told ?? "")
        .digest(),
      others,
    ]).toEqual([tableHash, []]);
    expect(tableFromBytes(told ?? Buffer.alloc(0)).classOf.size).toBe(52);
    manager.send(welcome(2, tableHash)); // out of order: the proxy has no table to send
    await eventually(() => promises(manager).length === 3);
    expect(promises(manager)[2]).toMatchObject({ epoch: 2, tables: [] });
    await first.stop();
    manager.stop();
    const second = await proxy(manager.endpoint);
    expect(second.session.current?.snapshot.version).toBe(2);
    expect(second.session.current?.view("", "pods").ownershipOf("b2")).toBe("own");
    expect(second.session.current?.view("", "pods").ownershipOf("b1")).toBe("unknown");
  });

  it("promises to follow a leader that welcomes it, and follows no older leader, even after a restart", async () => {
    const manager = await runManager(0, { epoch: undefined });
    const first = await proxy(manager.endpoint);
    await eventually(() => registrations(manager).length === 1);
    expect(registrations(manager)[0]).toMatchObject({ epoch: 0 });
    manager.send(welcome(5));
    await eventually(() => promises(manager).length === 1);
    await first.stop();
    await proxy(manager.endpoint);
    await eventually(() => registrations(manager).length === 2);
    expect(registrations(manager)[1]).toMatchObject({ epoch: 5 });
    manager.send(welcome(4));
    await eventually(() => registrations(manager).length === 3); // the proxy has left this leader
    manager.send(welcome(6));
    await eventually(() => promises(manager).length === 2);
    expect(promises(manager).map(({ epoch }) => epoch)).toEqual([5, 6]);
  });

  it("follows a leader although it cannot write to its folder, and a metric shows this", async () => {
    await writeFile(join(dataDir, "file"), "");
    dataDir = join(dataDir, "file");
    const manager = await runManager(0, { epoch: undefined });
    const { session, metric } = await proxy(manager.endpoint);
    await eventually(() => registrations(manager).length === 1);
    manager.send(welcome(5));
    await eventually(() => manager.received.some((message) => "promise" in message && message.promise));
    send(manager, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(manager).length === 1);
    expect(session.current?.snapshot.version).toBe(1);
    expect(await metric("ctrlmesh_proxy_promise_unstored")).toEqual(["ctrlmesh_proxy_promise_unstored 1"]);
    dataDir = join(dataDir, "..");
  });

  it.each([
    ["it has routes and its promise is lost", 1, () => rm(join(dataDir, "stream"))],
    ["a full disk has left neither routes nor promise", undefined, () => emptyState()],
  ])("waits one lease before it registers if %s", async (_, version, lose) => {
    const manager = await runManager(0, { epoch: undefined });
    const first = await proxy(manager.endpoint);
    await eventually(() => registrations(manager).length === 1);
    manager.send(welcome(5));
    await eventually(() => manager.received.some((message) => "promise" in message && message.promise));
    send(manager, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(manager).length === 1);
    await first.stop();
    await lose();
    const clock = createFakeClock();
    const { session } = await proxy(manager.endpoint, {}, clock);
    expect(session.current?.snapshot.version).toBe(version);
    await clock.advance(LEASE_MS - 1);
    expect([registrations(manager).length, clock.pending]).toEqual([1, 1]);
    await clock.advance(1);
    await eventually(() => registrations(manager).length === 2);
  });

  async function emptyState(): Promise<void> {
    await rm(join(dataDir, "snapshot.json"));
    await writeFile(join(dataDir, "stream"), "");
  }

  it("gives each stream a higher number than the stream before, even after a restart", async () => {
    const manager = await runManager();
    const first = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    manager.streams.at(-1)?.end();
    await eventually(() => registrations(manager).length === 2);
    await first.stop();
    await proxy(manager.endpoint);
    await eventually(() => registrations(manager).length === 3);
    const [one = 0, two = 0, three = 0] = registrations(manager).map(({ streamNumber }) => streamNumber ?? 0);
    expect(one).toBeGreaterThan(1e12);
    expect(two).toBeGreaterThan(one);
    expect(three).toBeGreaterThan(two);
  });

  it("reports the number of held namespaces, and of the writes that its acknowledgement waits for", async () => {
    const manager = await runManager();
    const { session } = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    const counts = () =>
      manager.received.flatMap((message) =>
        "report" in message && "backlog" in message.report
          ? [[message.report.backlog.heldNamespaces, message.report.backlog.drainingWrites]]
          : [],
      );
    send(manager, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(manager).length === 1);
    const release = session.beginHold("new");
    await eventually(() => counts().length === 2);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    send(manager, routes(2, { defaultSubset: ["a"] }), 2);
    await eventually(() => counts().length === 3);
    release();
    await eventually(() => counts().length === 4);
    done();
    await eventually(() => counts().length === 5);
    expect(counts()).toEqual([
      [0, 0],
      [1, 0],
      [1, 1],
      [0, 1],
      [0, 0],
    ]);
  });

  it("remembers after a restart whether the lock gate was closed or open", async () => {
    const manager = await runManager();
    const first = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    const closed = { lock: "shop-lock---blue", leaseMs: 15_000 };
    first.session.onChange(() => first.session.memory.lock.keepGate(closed));
    first.session.onChange(() => first.session.memory.lock.keepLease(137_000));
    send(manager, routes(6, { blue: ["a"] }), 1);
    await eventually(() => acks(manager).length === 1);
    await first.stop();
    const second = await proxy(manager.endpoint);
    expect(second.session.memory.lock.before).toEqual({ lockName: "shop-lock", subset: "blue", closed, longestLeaseMs: 137_000 });
    second.session.memory.lock.keepGate(undefined);
    second.session.memory.lock.keepLease(undefined);
    await eventually(async () => (await readFile(join(dataDir, "snapshot.json"), "utf8")).includes('"closed":null'));
    await second.stop();
    const third = await proxy(manager.endpoint);
    expect(third.session.memory.lock.before).toEqual({ lockName: "shop-lock", subset: "blue", closed: undefined });
    expect(third.session.current?.snapshot).toEqual(restored(routes(6, { blue: ["a"] })));
  });

  describe("that receives the loss of a namespace after a restart", () => {
    const before = routes(6, { blue: ["a", "b"] });
    const loss = routes(7, { blue: ["b"], fenced: ["a"] });

    // The previous process, which has the namespace a.
    async function first() {
      const manager = await runManager();
      const started = await proxy(manager.endpoint);
      await eventually(() => manager.streams.length === 1);
      send(manager, before, 1);
      await eventually(() => acks(manager).length === 1);
      return { manager, ...started };
    }
    async function next(manager: ScriptedManager, registration: number) {
      const clock = createFakeClock();
      const started = await proxy(manager.endpoint, {}, clock);
      await eventually(() => registrations(manager).length === registration);
      send(manager, loss, registration);
      await eventually(() => started.session.current?.snapshot.version === 7);
      return { clock, ...started };
    }
    const isStored = async () => (await readFile(join(dataDir, "snapshot.json"), "utf8")).includes("digest-7");
    // Later snapshots are answered and the disk is written to meanwhile. So an ACK that did not wait has arrived by then.
    const expectNoEarlyAck = async (manager: ScriptedManager) => {
      for (const nonce of [91, 92]) {
        send(manager, loss, nonce, NO_BODY);
        await eventually(() => nacks(manager).some((nack) => nack.nonce === nonce));
        await writeFile(join(dataDir, "other"), "", { flush: true });
      }
    };

    it("acknowledges the loss at once if the previous process ended cleanly, and removes the mark of the clean end", async () => {
      const { manager, stop } = await first();
      await stop();
      expect(await readdir(dataDir)).toContain("clean-end");
      await next(manager, 2);
      await eventually(() => acks(manager).includes(2));
      expect(await readdir(dataDir)).not.toContain("clean-end");
    });

    it("acknowledges the loss once the writes of a killed process have ended, and registers the old snapshot until then", async () => {
      const { manager } = await first();
      const { clock } = await next(manager, 2);
      await expectNoEarlyAck(manager);
      expect([acks(manager), await isStored()]).toEqual([[1], false]);
      expect(registrations(manager)[1]).toMatchObject({
        route: { version: 6, acknowledged: { digest: routeDigest(before) }, inDoubt: [], mayHoldMore: true },
      });
      await clock.advance(INHERITED_WRITES_MS);
      await eventually(() => acks(manager).includes(2));
      expect(await isStored()).toBe(true);
    });

    it("does not count an end as clean if a write was in flight", async () => {
      const { manager, session, stop } = await first();
      session.beginWrite("a", { group: "", resource: "pods" });
      await stop();
      await next(manager, 2);
      await expectNoEarlyAck(manager);
      expect(acks(manager)).toEqual([1]);
    });

    it("does not count an end as clean if that process was still waiting for writes of an earlier one", async () => {
      const { manager } = await first();
      const { stop } = await next(manager, 2);
      await stop();
      await next(manager, 3);
      await expectNoEarlyAck(manager);
      expect(acks(manager)).toEqual([1]);
    });

    it("has no routes once it has written the mark of its clean end", async () => {
      const { session, stop } = await first();
      expect(session.current).toBeDefined();
      await stop();
      expect(session.current).toBeUndefined();
    });
  });

  it("has no routes rather than wrong ones after a restart with a half-written file", async () => {
    const manager = await runManager();
    const first = await proxy(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    send(manager, routes(6, { blue: ["a"] }), 1);
    await eventually(() => acks(manager).length === 1);
    await first.stop();
    const path = join(dataDir, "snapshot.json");
    const text = await readFile(path, "utf8");
    await writeFile(path, text.slice(0, text.length - 20));
    const second = await proxy(manager.endpoint);
    expect(second.session.current).toBeUndefined();
    await eventually(() => registrations(manager).length === 2);
    expect(registrations(manager)[1]).toMatchObject({ route: { version: 0, acknowledged: null } });
  });

  it("stops at once while the manager cannot be reached", async () => {
    const manager = await runManager();
    manager.stop();
    const { stop } = await proxy(manager.endpoint);
    await stop();
  });
});
