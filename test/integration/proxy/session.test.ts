import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { createSession } from "../../../src/proxy/session/create-session.ts";
import { INHERITED_WRITES_MS } from "../../../src/proxy/session/inherited-writes.ts";
import { LEASE_MS } from "../../../src/proxy/session/stream-ledger.ts";
import type { Snapshot } from "../../../src/route/snapshot.ts";
import { loadMeshContract } from "../../../src/wire/load-proto.ts";
import type { SnapshotMessage } from "../../../src/wire/messages.ts";
import { snapshotToWire } from "../../../src/wire/snapshot-codec.ts";
import { diffSnapshots } from "../../../src/wire/snapshot-delta.ts";
import { eventually } from "../../support/eventually.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { type ScriptedManager, startManager } from "../../support/scripted-manager.ts";
import { routes } from "../../support/test-routes.ts";

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

async function manager(port?: number): Promise<ScriptedManager> {
  const started = await startManager(port);
  stops.push(() => started.stop());
  return started;
}

async function proxy(endpoint: string, more: { podUid?: string } = {}, clock: Clock = systemClock) {
  const registry = createRegistry("proxy", "test");
  const session = createSession({
    config: { manager: endpoint, podNamespace: "shop", podName: "shop-0", podUid: "uid-1", dataDir, ...more },
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

const send = (to: ScriptedManager, snapshot: Snapshot, nonce: number, spoil: Partial<SnapshotMessage> = {}) =>
  to.send({ snapshot: { ...snapshotToWire(snapshot, nonce), ...spoil } });
const acks = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("ack" in message && message.ack ? [message.ack.nonce] : []));
const nacks = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("nack" in message && message.nack ? [message.nack] : []));
const registrations = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("registration" in message && message.registration ? [message.registration] : []));
const promises = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("promise" in message && message.promise ? [message.promise] : []));
const reports = (of: ScriptedManager) =>
  of.received.flatMap((message) => ("report" in message && message.report ? [message.report.leader] : []));

describe("a proxy's session", () => {
  it("registers first, enforces what it is sent, and acknowledges it", async () => {
    const boss = await manager();
    const { session, metric } = await proxy(boss.endpoint);
    expect(session.current).toBeUndefined();
    await eventually(() => boss.streams.length === 1 && registrations(boss).length === 1);
    expect(boss.received[0]).toMatchObject({
      registration: {
        pod: { namespace: "shop", name: "shop-0", uid: "uid-1" },
        version: 0,
        digest: "",
        proxyVersion: "9.9.9",
        enforced: null,
      },
    });
    send(boss, routes(3, { blue: ["a"] }), 11);
    await eventually(() => acks(boss).length === 1);
    expect(acks(boss)).toEqual([11]);
    expect(session.current?.snapshot).toEqual(routes(3, { blue: ["a"] }));
    expect(await metric("ctrlmesh_proxy_route_version")).toContain("ctrlmesh_proxy_route_version 3");
    expect(await metric("ctrlmesh_proxy_manager_connected")).toContain("ctrlmesh_proxy_manager_connected 1");
  });

  it("refuses an invalid snapshot with every problem and keeps the last good one", async () => {
    const boss = await manager();
    const { session, metric } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    send(boss, routes(1, { blue: ["a"] }), 1);
    send(boss, routes(2, {}), 2, { digest: "", table: null });
    send(boss, routes(3, {}, { podNamespace: "elsewhere" }), 3);
    await eventually(() => nacks(boss).length === 2);
    expect(nacks(boss)[0]?.problems.join()).toMatch(/digest.*table/);
    expect(nacks(boss)[1]?.problems.join()).toContain("elsewhere");
    expect(session.current?.snapshot.version).toBe(1);
    expect(await metric("ctrlmesh_proxy_snapshot_rejected_total")).toContain(
      'ctrlmesh_proxy_snapshot_rejected_total{reason="invalid"} 2',
    );
  });

  it("never goes back to an older version, but takes equal rules under any number", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    let changes = 0;
    session.onChange(() => changes++);
    send(boss, routes(5, { blue: ["a"] }), 1);
    send(boss, routes(4, { blue: ["b"] }), 2);
    send(boss, routes(5, { blue: ["a"] }, { version: 4 }), 3);
    send(boss, routes(5, { blue: ["a"] }, { version: 9 }), 4);
    await eventually(() => acks(boss).includes(4));
    expect(nacks(boss).map(({ nonce }) => nonce)).toEqual([2]);
    expect([changes, session.current?.snapshot.version]).toEqual([1, 9]);
  });

  it("acknowledges a loss only after the writes in flight there are done", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    send(boss, routes(1, { blue: ["a", "b"] }), 1);
    await eventually(() => acks(boss).length === 1);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    session.beginWrite("b", { group: "", resource: "pods" });
    send(boss, routes(2, { blue: ["b"], fenced: ["a"] }), 2);
    await eventually(() => session.current?.snapshot.version === 2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(acks(boss)).toEqual([1]);
    done();
    await eventually(() => acks(boss).length === 2);
    expect(acks(boss)).toEqual([1, 2]);
  });

  it("registers at once while writes are in flight in what it lost: as what it acknowledged last, and what it enforces since", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    send(boss, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(boss).length === 1);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    send(boss, routes(2, { blue: ["b"], rest: ["a"] }), 2);
    await eventually(() => session.current?.snapshot.version === 2);
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 2);
    expect(registrations(boss)[1]).toMatchObject({
      version: 2,
      digest: "digest-1",
      enforced: { version: 1, digest: "digest-1" },
      inDoubt: [{ version: 2, digest: "digest-2", subset: "blue" }],
    });
    // Route updates arrive meanwhile, and the one that is acknowledged is acknowledged as late as ever.
    send(boss, routes(2, { blue: ["b"], rest: ["a"] }), 3);
    send(boss, routes(3, { blue: ["b", "c"], rest: ["a"] }), 4);
    await eventually(() => session.current?.snapshot.version === 3);
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 3);
    expect(registrations(boss)[2]).toMatchObject({
      version: 3,
      enforced: { version: 1 },
      inDoubt: [{ version: 2 }, { version: 3 }],
    });
    send(boss, routes(3, { blue: ["b", "c"], rest: ["a"] }), 5);
    await new Promise((resolve) => setImmediate(resolve));
    expect(acks(boss)).toEqual([1]);
    done();
    await eventually(() => acks(boss).length === 2);
    expect(acks(boss)).toEqual([1, 5]);
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 4);
    expect(registrations(boss)[3]).toMatchObject({ version: 3, digest: "digest-3", enforced: { version: 3 }, inDoubt: [] });
  });

  it("tells as held what it could have acknowledged, though nobody was there to hear it", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    send(boss, routes(1, { blue: ["b"] }), 1);
    await eventually(() => session.current?.snapshot.version === 1);
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 2);
    expect(registrations(boss)[1]).toMatchObject({ version: 1, digest: "", enforced: null, inDoubt: [{ version: 1 }] });
    done();
    await eventually(async () => (await readFile(join(dataDir, "snapshot.json"), "utf8").catch(() => "")).includes("digest-1"));
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 3);
    expect(registrations(boss)[2]).toMatchObject({ version: 1, enforced: { version: 1 }, inDoubt: [] });
  });

  it("may hold anything once it cannot tell what it enforced while a write ran on", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    session.beginWrite("a", { group: "", resource: "pods" });
    for (let version = 1; version <= 5; version++) send(boss, routes(version, { blue: [`n${version}`] }), version);
    await eventually(() => session.current?.snapshot.version === 5);
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 2);
    const { inDoubt = [] } = registrations(boss)[1] ?? {};
    expect(inDoubt.map(({ version, table, tableHash }) => [version, table, tableHash?.length])).toEqual([
      [5, null, 32],
      [0, null, 0],
    ]);
  });

  it("serves on while the manager is away, and comes back to it", async () => {
    const first = await manager();
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
    const second = await manager(port);
    await eventually(() => registrations(second).length === 1);
    expect(registrations(second)[0]).toMatchObject({ version: 1, digest: "digest-1" });
  });

  it("follows a redirect to the leading replica", async () => {
    const [follower, leader] = [await manager(), await manager()];
    const { session } = await proxy(follower.endpoint);
    await eventually(() => follower.streams.length === 1);
    follower.send({ redirect: { endpoint: leader.endpoint } });
    await eventually(() => leader.streams.length === 1);
    send(leader, routes(1, { blue: ["a"] }), 1);
    await eventually(() => session.current?.snapshot.version === 1);
    expect(follower.streams).toHaveLength(0);
  });

  it("reports who leads when that changes, and again to a new manager", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    session.setLeader(true);
    session.setLeader(true);
    await eventually(() => reports(boss).length === 1);
    boss.streams.at(-1)?.end();
    await eventually(() => reports(boss).length === 2);
    session.setLeader(false);
    await eventually(() => reports(boss).length === 3);
    expect(reports(boss)).toEqual([true, true, false]);
  });

  it("reports what the API server says about its lock beside who leads, and again to a new manager", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    const lock = { lockName: "lock---blue", resource: "configmaps", deniedVerbs: ["get", "update"], reason: "no" };
    const locks = () => boss.received.flatMap((message) => ("report" in message && message.report ? [message.report] : []));
    session.setLockReview(lock);
    session.setLeader(true);
    await eventually(() => locks().length === 2);
    expect(locks()).toMatchObject([
      { leader: false, lock },
      { leader: true, lock },
    ]);
    boss.streams.at(-1)?.end();
    await eventually(() => locks().length === 3);
    session.setLockReview(null);
    await eventually(() => locks().length === 4);
    expect(locks().slice(2)).toMatchObject([
      { leader: true, lock },
      { leader: true, lock: null },
    ]);
  });

  it("restarted without a manager, enforces what it had stored", async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    send(boss, routes(6, { blue: ["a"] }), 1);
    await eventually(() => acks(boss).length === 1);
    await first.stop();
    boss.stop();
    const second = await proxy(boss.endpoint);
    expect(second.session.current?.snapshot).toEqual(routes(6, { blue: ["a"] }));
    await second.stop();
    const other = await proxy(boss.endpoint, { podUid: "uid-2" });
    expect(other.session.current).toBeUndefined();
  });

  it("takes a delta, stores the whole, and asks for the whole where a delta does not fit", async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    const rest = Array.from({ length: 50 }, (_, index) => `n${index}`);
    const [one, two, three] = [1, 2, 3].map((version) => routes(version, { blue: ["a", `b${version}`], rest }));
    if (one === undefined || two === undefined || three === undefined) throw new Error("three snapshots were expected");
    const delta = (from: Snapshot, to: Snapshot, nonce: number) => {
      const difference = diffSnapshots(from, to);
      if (difference === undefined) throw new Error("a delta was expected");
      boss.send({ delta: { ...difference, nonce } });
    };
    send(boss, one, 1);
    delta(one, two, 2);
    delta(one, three, 3); // its base is not in force any more
    await eventually(() => nacks(boss).length === 1);
    expect(nacks(boss)[0]).toMatchObject({ nonce: 3, problems: [], needsSnapshot: true });
    await eventually(() => acks(boss).includes(2));
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 2);
    expect(registrations(boss)[1]).toMatchObject({
      takesDeltas: true,
      version: 2,
      enforced: { digest: "digest-2" },
      inDoubt: [],
    });
    const { tableHash = Buffer.alloc(0) } = registrations(boss)[1]?.enforced ?? {};
    boss.send({ welcome: { epoch: 1, wantedTables: [tableHash, Buffer.alloc(32)] } });
    await eventually(() => promises(boss).length === 1);
    const [told, ...others] = promises(boss)[0]?.tables ?? [];
    expect([
      createHash("sha256")
        .update(told ?? "")
        .digest(),
      others,
    ]).toEqual([tableHash, []]);
    const table = loadMeshContract().routeTable.decode(Buffer.from(told ?? []));
    expect(table.classes.flatMap((row) => row.namespaces)).toHaveLength(52);
    boss.send({ welcome: { epoch: 2, wantedTables: [tableHash] } }); // out of order: nothing is kept for it
    await eventually(() => promises(boss).length === 2);
    expect(promises(boss)[1]).toMatchObject({ epoch: 2, tables: [] });
    await first.stop();
    boss.stop();
    const second = await proxy(boss.endpoint);
    expect(second.session.current?.snapshot.version).toBe(2);
    expect(second.session.current?.view("", "pods").ownershipOf("b2")).toBe("own");
    expect(second.session.current?.view("", "pods").ownershipOf("b1")).toBe("unknown");
  });

  it("promises to follow a leader that welcomes it, and no older one, over a restart as well", async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await eventually(() => registrations(boss).length === 1);
    expect(registrations(boss)[0]).toMatchObject({ takesEpochs: true, epoch: 0 });
    boss.send({ welcome: { epoch: 5 } });
    await eventually(() => promises(boss).length === 1);
    await first.stop();
    await proxy(boss.endpoint);
    await eventually(() => registrations(boss).length === 2);
    expect(registrations(boss)[1]).toMatchObject({ epoch: 5 });
    boss.send({ welcome: { epoch: 4 } });
    await eventually(() => registrations(boss).length === 3); // it has left
    boss.send({ welcome: { epoch: 6 } });
    await eventually(() => promises(boss).length === 2);
    expect(promises(boss).map(({ epoch }) => epoch)).toEqual([5, 6]);
  });

  it("follows a leader although it cannot write its folder, and says so", async () => {
    await writeFile(join(dataDir, "file"), "");
    dataDir = join(dataDir, "file");
    const boss = await manager();
    const { session, metric } = await proxy(boss.endpoint);
    await eventually(() => registrations(boss).length === 1);
    boss.send({ welcome: { epoch: 5 } });
    await eventually(() => boss.received.some((message) => "promise" in message && message.promise));
    send(boss, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(boss).length === 1);
    expect(session.current?.snapshot.version).toBe(1);
    expect(await metric("ctrlmesh_proxy_promise_unstored")).toEqual(["ctrlmesh_proxy_promise_unstored 1"]);
    dataDir = join(dataDir, "..");
  });

  it("says no registration for a lease, if it holds routes and does not know what was promised", async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await eventually(() => registrations(boss).length === 1);
    boss.send({ welcome: { epoch: 5 } });
    await eventually(() => boss.received.some((message) => "promise" in message && message.promise));
    send(boss, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(boss).length === 1);
    await first.stop();
    await rm(join(dataDir, "stream"));
    const clock = createFakeClock();
    const { session } = await proxy(boss.endpoint, {}, clock);
    expect(session.current?.snapshot.version).toBe(1);
    await clock.advance(LEASE_MS - 1);
    expect([registrations(boss).length, clock.pending]).toEqual([1, 1]);
    await clock.advance(1);
    await eventually(() => registrations(boss).length === 2);
  });

  it("numbers its streams, over a restart as well", async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    boss.streams.at(-1)?.end();
    await eventually(() => registrations(boss).length === 2);
    await first.stop();
    await proxy(boss.endpoint);
    await eventually(() => registrations(boss).length === 3);
    const [one = 0, two = 0, three = 0] = registrations(boss).map(({ stream }) => stream ?? 0);
    expect(one).toBeGreaterThan(1e12);
    expect(two).toBeGreaterThan(one);
    expect(three).toBeGreaterThan(two);
  });

  it("reports what is held, and the writes that its acknowledgement waits for", async () => {
    const boss = await manager();
    const { session } = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    const counts = () =>
      boss.received.flatMap((message) =>
        "report" in message && message.report ? [[message.report.held, message.report.drainingWrites]] : [],
      );
    send(boss, routes(1, { blue: ["a"] }), 1);
    await eventually(() => acks(boss).length === 1);
    const release = session.beginHold("new");
    await eventually(() => counts().length === 1);
    const done = session.beginWrite("a", { group: "", resource: "pods" });
    send(boss, routes(2, { rest: ["a"] }), 2);
    await eventually(() => counts().length === 2);
    release();
    await eventually(() => counts().length === 3);
    done();
    await eventually(() => counts().length === 4);
    expect(counts()).toEqual([
      [1, 0],
      [1, 1],
      [0, 1],
      [0, 0],
    ]);
  });

  it("restarted while the gate of its lock is closed, knows that it is, and after it was opened, that it is not", async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    const closed = { lock: "shop-lock---blue", leaseMs: 15_000 };
    first.session.onChange(() => first.session.keepGate(closed));
    first.session.onChange(() => first.session.keepLease(137_000));
    send(boss, routes(6, { blue: ["a"] }), 1);
    await eventually(() => acks(boss).length === 1);
    await first.stop();
    const second = await proxy(boss.endpoint);
    expect(second.session.lockBefore).toEqual({ lockName: "shop-lock", subset: "blue", closed, longestLeaseMs: 137_000 });
    second.session.keepGate(undefined);
    second.session.keepLease(undefined);
    await eventually(async () => (await readFile(join(dataDir, "snapshot.json"), "utf8")).includes('"closed":null'));
    await second.stop();
    const third = await proxy(boss.endpoint);
    expect(third.session.lockBefore).toEqual({ lockName: "shop-lock", subset: "blue", closed: undefined });
    expect(third.session.current?.snapshot).toEqual(routes(6, { blue: ["a"] }));
  });

  describe("restarted, sent a loss", () => {
    const before = routes(6, { blue: ["a", "b"] });
    const loss = routes(7, { blue: ["b"], fenced: ["a"] });

    // The process before, which has the namespace a.
    async function first() {
      const boss = await manager();
      const started = await proxy(boss.endpoint);
      await eventually(() => boss.streams.length === 1);
      send(boss, before, 1);
      await eventually(() => acks(boss).length === 1);
      return { boss, ...started };
    }
    async function next(boss: ScriptedManager, registration: number) {
      const clock = createFakeClock();
      const started = await proxy(boss.endpoint, {}, clock);
      await eventually(() => registrations(boss).length === registration);
      send(boss, loss, registration);
      await eventually(() => started.session.current?.snapshot.version === 7);
      return { clock, ...started };
    }
    const isStored = async () => (await readFile(join(dataDir, "snapshot.json"), "utf8")).includes("digest-7");
    // What comes after the loss is answered, and the disk has been written to meanwhile: an ACK at once would be here.
    const settled = async (boss: ScriptedManager) => {
      for (const nonce of [91, 92]) {
        send(boss, loss, nonce, { digest: "", table: null });
        await eventually(() => nacks(boss).some((nack) => nack.nonce === nonce));
        await writeFile(join(dataDir, "other"), "", { flush: true });
      }
    };

    it("acknowledges it at once if the process before had ended cleanly, whose word is gone then", async () => {
      const { boss, stop } = await first();
      await stop();
      expect(await readdir(dataDir)).toContain("clean-end");
      await next(boss, 2);
      await eventually(() => acks(boss).includes(2));
      expect(await readdir(dataDir)).not.toContain("clean-end");
    });

    it("acknowledges it once the writes of a killed process are over, and tells until then that it holds what that held", async () => {
      const { boss } = await first();
      const { clock } = await next(boss, 2);
      await settled(boss);
      expect([acks(boss), await isStored()]).toEqual([[1], false]);
      expect(registrations(boss)[1]).toMatchObject({ version: 6, enforced: { digest: "digest-6" }, inDoubt: [{ table: null }] });
      await clock.advance(INHERITED_WRITES_MS);
      await eventually(() => acks(boss).includes(2));
      expect(await isStored()).toBe(true);
    });

    it("does not take an end for clean that left a write under way", async () => {
      const { boss, session, stop } = await first();
      session.beginWrite("a", { group: "", resource: "pods" });
      await stop();
      await next(boss, 2);
      await settled(boss);
      expect(acks(boss)).toEqual([1]);
    });

    it("does not take an end for clean of a process that waited for the writes of one before it", async () => {
      const { boss } = await first();
      const { stop } = await next(boss, 2);
      await stop();
      await next(boss, 3);
      await settled(boss);
      expect(acks(boss)).toEqual([1]);
    });

    it("lets nothing through once it has left its word", async () => {
      const { session, stop } = await first();
      expect(session.current).toBeDefined();
      await stop();
      expect(session.current).toBeUndefined();
    });
  });

  it("restarted with a half-written file, has no routes rather than wrong ones", async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    send(boss, routes(6, { blue: ["a"] }), 1);
    await eventually(() => acks(boss).length === 1);
    await first.stop();
    const path = join(dataDir, "snapshot.json");
    const text = await readFile(path, "utf8");
    await writeFile(path, text.slice(0, text.length - 20));
    const second = await proxy(boss.endpoint);
    expect(second.session.current).toBeUndefined();
    await eventually(() => registrations(boss).length === 2);
    expect(registrations(boss)[1]).toMatchObject({ version: 0, enforced: null });
  });

  it("stops at once while the manager cannot be reached", async () => {
    const boss = await manager();
    boss.stop();
    const { stop } = await proxy(boss.endpoint);
    await stop();
  });
});
