// Several managers as processes, a hundred simulated proxies, localkube: what happens to leaders must not show in who owns what. The
// same at full size, with times: bench/proxies.ts.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LEASES } from "../../../src/kube/client/resources.ts";
import { LEASE_NAME } from "../../../src/manager/context/leadership.ts";
import { type FleetWorld, namespaceOf, startFleetWorld } from "../../fleet/fleet-world.ts";
import type { Child } from "../../support/child-process.ts";
import { eventually } from "../../support/eventually.ts";
import { memoryOf } from "../../support/process-memory.ts";
import { itNightly } from "../../support/requirements.ts";
import { openProxy } from "../../support/scripted-proxy.ts";
import { claimsOf } from "../../support/updates.ts";

const PROXIES = 100;

/** The tag of a field and the length of its bytes. */
function lengthOf(tag: number, bytes: Buffer): Buffer {
  const length: number[] = [];
  let left = bytes.length;
  for (; left > 127; left >>>= 7) length.push((left & 127) | 128);
  return Buffer.from([tag, ...length, left]);
}

/** How long the start of hundreds of proxies may take on a busy machine. */
const START_MS = 180_000;

describe("managers that come and go", () => {
  let world: FleetWorld;
  beforeAll(async () => {
    world = await startFleetWorld({ proxies: PROXIES, namespaces: 200, apps: 2, leaseMs: 4_000, identity: "none" });
    await world.fleet.served();
  }, START_MS);
  afterAll(() => world?.stop());

  const leader = (): Promise<Child> => eventually(async () => (await world.leader()) ?? false, 30_000);
  /** A replica beside the leader, that knows it. */
  const standBy = async () => {
    const child = await world.addManager();
    await eventually(async () => (await fetch(`${String(child.ready.health)}/readyz`)).ok);
    return child;
  };
  const snapshots = async () => {
    const { wholes, deltas } = await world.fleet.counts();
    return wholes + deltas;
  };

  it("tell all proxies of a namespace that moves, by deltas", async () => {
    const before = await world.fleet.counts();
    const known = world.fleet.ownerKnown(namespaceOf(1), "canary");
    await world.relabel(namespaceOf(1), "canary");
    await known;
    const after = await world.fleet.counts();
    expect(after.wholes).toBe(before.wholes);
    expect(after.deltas).toBeGreaterThanOrEqual(before.deltas + PROXIES);
  });

  it("do not end the streams of others because one proxy says that it follows a newer leader", async () => {
    const endpoint = String((await leader()).ready.grpc);
    const [pod = null] = world.pods;
    const read = async () => (await world.client.get(LEASES, { namespace: "ctrlmesh-system", name: LEASE_NAME })).spec;
    const [{ epoch }, before] = [await world.fleet.counts(), await read()];
    const liar = openProxy(endpoint);
    liar.send({
      registration: { pod, proxyVersion: "", capabilities: [], streamNumber: 1, epoch: epoch + 10_000, route: claimsOf() },
    });
    await eventually(() => liar.ended !== undefined);
    expect(liar.ended?.details).toMatch(/follows a newer leader/);
    await eventually(async () => (await read())?.renewTime !== before?.renewTime);
    expect(await read()).toMatchObject({ leaseTransitions: before?.leaseTransitions });
    expect((await world.fleet.counts()).epoch).toBe(epoch);
  });

  it("do not take a gigabyte for 20 MB from a pod that does not exist", async () => {
    const child = await leader();
    const pod = Buffer.concat([Buffer.from([0x0a, 9, 0x0a, 3]), Buffer.from("ops"), Buffer.from([0x12, 2]), Buffer.from("no")]);
    const routes = Buffer.alloc(20_000_000).fill(Buffer.from([0x1a, 0])); // ten million empty routes in doubt
    const registration = Buffer.concat([pod, lengthOf(0x32, routes), routes]);
    const before = memoryOf(child.pid).peakMb;
    const liar = openProxy(String(child.ready.grpc));
    liar.sendBytes(Buffer.concat([lengthOf(0x0a, registration), registration]));
    await eventually(() => liar.ended !== undefined, 30_000);
    expect(memoryOf(child.pid).peakMb - before).toBeLessThan(400);
  });

  it("change nobody's route when a leader is killed and another one takes over", async () => {
    const old = await leader();
    await standBy();
    const [{ epoch }, before] = [await world.fleet.counts(), await snapshots()];
    await world.kill(old);
    await world.fleet.served(epoch + 1);
    const known = world.fleet.ownerKnown(namespaceOf(2), "canary");
    expect(await snapshots()).toBe(before);
    await world.relabel(namespaceOf(2), "canary");
    await known;
  });

  it("hand over in order when a leader is told to end", async () => {
    const old = await leader();
    await standBy();
    const { epoch } = await world.fleet.counts();
    expect(await old.stop()).toBe(0);
    await world.fleet.served(epoch + 1);
  });

  it("say nothing any more when they were stopped, and wake up believing that they lead", async () => {
    const old = await leader();
    const next = await standBy();
    const before = await world.fleet.counts();
    old.kill("SIGSTOP");
    await eventually(async () => (await world.metric(next, "ctrlmesh_manager_leader")) === 1, 20_000);
    // What it finds when it wakes up: a change to tell its proxies, which are still connected to it, and a lease that is over.
    await world.relabel(namespaceOf(3), "canary");
    const known = world.fleet.ownerKnown(namespaceOf(3), "canary");
    old.kill("SIGCONT");
    await known;
    await world.fleet.served(before.epoch + 1);
    await eventually(() => old.exited, 20_000);
    const after = await world.fleet.counts();
    expect(after.snapshotsOf[before.epoch]).toBe(before.snapshotsOf[before.epoch]);
    expect(after.epoch).toBe(before.epoch + 1);
  });

  itNightly("grant nothing while a proxy may still follow an older leader", async () => {
    const old = await leader();
    const next = await standBy();
    const { epoch } = await world.fleet.counts();
    old.kill("SIGSTOP");
    await eventually(async () => (await world.metric(next, "ctrlmesh_manager_leader")) === 1, 20_000);
    const [served, known] = [world.fleet.served(epoch + 1), world.fleet.ownerKnown(namespaceOf(4), "canary")];
    await world.relabel(namespaceOf(4), "canary");
    expect(await served).toBeLessThanOrEqual(await known); // every proxy had come over before the last one was told
    await world.kill(old);
  });
});
