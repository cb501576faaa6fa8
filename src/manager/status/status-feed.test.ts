import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import type { AppStatus, LastHandover } from "../../api/app-status.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { createStore } from "../../runtime/store.ts";
import type { SourceObject } from "../apps/app.ts";
import { createStatusFeed, type MakeStatus } from "./status-feed.ts";

const REF = { namespace: "ops", name: "shop" };
const signal = new AbortController().signal;
const last: LastHandover = { from: "", to: "v2", namespaces: 3, finishedAt: "2026-01-01T00:00:00.000Z", result: "Moved" };
/** The same as written: the default subset is `default`. */
const writtenLast: LastHandover = { ...last, from: "default" };

function setup() {
  const client = createFakeKubeClient();
  const told: string[] = [];
  const observed: [AppStatus | undefined, AppStatus][] = [];
  const sample = sampleVirtualApp() as unknown as VirtualApp;
  const object = client.put(VIRTUAL_APPS, { ...sample, metadata: { ...sample.metadata, uid: "u1", generation: 1 } });
  const clock = createFakeClock();
  const store = createStore<SourceObject>((error) => {
    throw error;
  });
  store.replace([object], object.metadata.resourceVersion);
  const statuses = createStatusFeed({
    resource: VIRTUAL_APPS,
    client,
    store,
    events: { event: (_object, _type, reason) => void told.push(reason) },
    clock,
    observed: { statusWritten: (before, after) => void observed.push([before, after]) },
  });
  const ref = { kind: VIRTUAL_APPS.kind, ...REF };
  const feed = {
    ...statuses,
    previous: (of: VirtualApp) => statuses.previous({ ref, object: of }),
    write: (of: VirtualApp, make: MakeStatus, end: AbortSignal) => statuses.write({ ref, object: of }, make, end),
  };
  const written = () => client.read<VirtualApp>(VIRTUAL_APPS, REF)?.status;
  /** The object as the watch brings it. */
  const put = (change: object, status?: AppStatus) => {
    const now = client.read<VirtualApp>(VIRTUAL_APPS, REF) ?? object;
    return client.put(VIRTUAL_APPS, {
      ...now,
      metadata: { ...now.metadata, ...change },
      ...(status === undefined ? {} : { status }),
    });
  };
  return { client, feed, clock, told, observed, object, written, put };
}

describe("a status", () => {
  it("is written once, with its Events and metrics, and is the previous status even before the watch brings it", async () => {
    const { feed, told, observed, object, written } = setup();
    const make = () => ({ observedGeneration: 1, lastHandover: last });
    expect(await feed.write(object, make, signal)).toEqual({ isWritten: true });
    expect(written()).toEqual({ observedGeneration: 1, lastHandover: writtenLast });
    expect(feed.previous(object)).toEqual(make());
    await feed.write(object, make, signal);
    expect(told).toEqual(["MovedNamespaces"]);
    expect(observed.map(([before]) => before?.observedGeneration)).toEqual([undefined, 1]);
  });

  it("has the time at which it must be computed again", async () => {
    const { feed, object } = setup();
    const awaySince = "2026-01-01T00:00:00Z";
    const make = () => ({ proxies: { total: 1, connected: 0, synced: 0, awaySince } });
    expect(await feed.write(object, make, signal)).toEqual({ isWritten: true, requeueAfterMs: 60_000 });
  });

  it("is not written for each held request, but from time to time", async () => {
    const { feed, clock, put, written } = setup();
    const versions = new Set<string | undefined>();
    for (let count = 0; count < 100; count++) {
      const make = () => ({ namespaces: { total: 1, moving: 0, held: count % 10 } });
      const { requeueAfterMs } = await feed.write(put({}), make, signal);
      versions.add(JSON.stringify(written()));
      if (count === 99) expect(requeueAfterMs).toBeLessThanOrEqual(5_000);
      await clock.advance(100);
    }
    expect(versions.size).toBeLessThanOrEqual(3);
    await clock.advance(5_000);
    expect(await feed.write(put({}), () => ({ namespaces: { total: 1, moving: 0, held: 0 } }), signal)).toEqual({
      isWritten: true,
    });
    expect(written()?.namespaces?.held).toBe(0);
  });

  it("is not written over an object with a newer spec", async () => {
    const { feed, told, object, written, put } = setup();
    put({ generation: 2 }, { observedGeneration: 2 });
    const make = () => ({ observedGeneration: 1, lastHandover: last });
    expect(await feed.write(object, make, signal)).toEqual({ isWritten: false });
    expect(written()).toEqual({ observedGeneration: 2 });
    expect(told).toEqual([]);
  });

  it("is computed from the status that another manager has written meanwhile, and keeps its entries", async () => {
    const { feed, object, written, put } = setup();
    const restart = { subset: "default", pod: "a", uid: "u", since: "2026-01-01T00:00:00Z", left: 1, reason: "Evicting" };
    put({}, { restart });
    const make = (previous: AppStatus | undefined) => ({ ...previous, routeVersion: 4 });
    expect(await feed.write(object, make, signal)).toEqual({ isWritten: true });
    expect(written()).toEqual({ restart, routeVersion: 4 });
  });

  it("is corrected at the next reconcile if another writer has overwritten it for the same spec", async () => {
    const { client, feed, object, written, put } = setup();
    const make = () => ({ observedGeneration: 1, lastHandover: last });
    await feed.write(object, make, signal);
    const brought = client.read<VirtualApp>(VIRTUAL_APPS, REF) ?? object;
    await feed.write(brought, make, signal);
    await feed.write(put({}, { observedGeneration: 1 }), make, signal);
    expect(written()).toEqual({ observedGeneration: 1, lastHandover: writtenLast });
  });

  it("is also corrected if another writer has overwritten it before the watch brought either write", async () => {
    const { feed, object, written, put } = setup();
    const make = () => ({ observedGeneration: 1, lastHandover: last });
    await feed.write(object, make, signal);
    await feed.write(put({}, { observedGeneration: 1 }), make, signal);
    expect(written()).toEqual({ observedGeneration: 1, lastHandover: writtenLast });
  });

  it("is computed from this manager's last write, even if the watch brings another writer's earlier write", async () => {
    const { feed, object, written, put } = setup();
    const brought = put({}, { routeVersion: 1 }); // by the controller of injections
    await feed.write(object, () => ({ routeVersion: 2 }), signal);
    expect(feed.previous(brought)).toEqual({ routeVersion: 2 });
    await feed.write(brought, () => ({ routeVersion: 1 }), signal);
    expect(written()).toEqual({ routeVersion: 1 });
  });

  it("is computed from this manager's last write, for every earlier version that the watch brings", async () => {
    const { client, feed, object } = setup();
    const versions = [1, 2, 3].map((routeVersion) => () => ({ routeVersion }));
    const brought = [object];
    for (const make of versions) {
      await feed.write(object, make, signal);
      brought.push(client.read<VirtualApp>(VIRTUAL_APPS, REF) ?? object);
    }
    expect(brought.map((each) => feed.previous(each))).toEqual(brought.map(() => ({ routeVersion: 3 })));
  });

  it("is not written if the app is gone, or was created again under its name", async () => {
    const { client, feed, object, written } = setup();
    client.remove(VIRTUAL_APPS, REF);
    expect(await feed.write(object, () => ({ routeVersion: 4 }), signal)).toEqual({ isWritten: false });
    const { resourceVersion: _, ...metadata } = object.metadata;
    client.put(VIRTUAL_APPS, { ...object, metadata: { ...metadata, uid: "u2" } });
    expect(await feed.write(object, () => ({ routeVersion: 4 }), signal)).toEqual({ isWritten: false });
    expect(written()).toBeUndefined();
  });
});

describe("a status that only says that proxies acknowledge", () => {
  const row = (type: string, status: "True" | "False", reason: string) => ({
    type,
    status,
    reason,
    message: "",
    lastTransitionTime: "",
  });
  const status = (version: number, synced: number): AppStatus => ({
    routeVersion: version,
    ownersHashes: [`hash-${version}`],
    proxies: { total: 3, connected: 3, synced },
    conditions: [
      row("Ready", "True", "InSync"),
      synced === 3 ? row("Converged", "True", "InSync") : row("Converged", "False", "ProxiesBehind"),
    ],
  });

  it("is written when all have, or after 5 seconds; its hashes are known at once", async () => {
    const { feed, object, written, clock, put, observed } = setup();
    await feed.write(object, () => status(1, 3), signal);
    observed.length = 0;
    const later = put({});
    expect(await feed.write(later, () => status(2, 1), signal)).toEqual({ isWritten: true, requeueAfterMs: 5_000 });
    expect(written()).toEqual(status(1, 3));
    expect(feed.previous(later)).toEqual({ ...status(1, 3), ownersHashes: ["hash-2"] });
    expect(observed).toEqual([[status(1, 3), status(1, 3)]]);
    await clock.advance(4_000);
    expect(await feed.write(later, () => status(2, 2), signal)).toEqual({ isWritten: true, requeueAfterMs: 1_000 });
    await clock.advance(1_000);
    expect(await feed.write(later, () => status(2, 2), signal)).toEqual({ isWritten: true });
    expect(written()).toEqual(status(2, 2));
    expect(await feed.write(put({}), () => status(2, 3), signal)).toEqual({ isWritten: true });
    expect(written()).toEqual(status(2, 3));
  });

  it("waits for its own 5 seconds, whenever the last one was written", async () => {
    const { feed, object, written, clock, put } = setup();
    await feed.write(object, () => status(1, 3), signal);
    await feed.write(put({}), () => status(2, 1), signal);
    await clock.advance(4_000);
    await feed.write(put({}), () => status(2, 3), signal);
    expect(await feed.write(put({}), () => status(3, 1), signal)).toEqual({ isWritten: true, requeueAfterMs: 5_000 });
    expect(written()).toEqual(status(2, 3));
  });
});
