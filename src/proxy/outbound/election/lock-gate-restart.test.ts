// The lock gate over a restart of the proxy, and for writes that wait in other layers.
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply } from "../../../../test/support/layer-call.ts";
import { group, objectLimit, snapshot, table } from "../../../../test/support/route-table.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import { silentLogger } from "../../../base/log.ts";
import { createRegistry } from "../../../base/metrics.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import type { ClosedGate, StoredLock } from "../../session/memory.ts";
import { NO_MEMORY } from "../../session/memory.ts";
import { isolate } from "../isolate/isolate.ts";
import { election } from "./election.ts";
import { createLockGate, lockGate } from "./lock-gate.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/shop-lock";

/** A process of the proxy; `lockBefore` is what the one before has left. */
function startProcess(lockBefore?: StoredLock) {
  const clock = createFakeClock();
  const enforcer = createEnforcer();
  const kept: (ClosedGate | undefined)[] = [];
  const leases: (number | undefined)[] = [];
  const keeper = {
    before: lockBefore,
    keepGate: (closed: ClosedGate | undefined) => void kept.push(closed),
    keepLease: (leaseMs: number | undefined) => void leases.push(leaseMs),
  };
  const gate = createLockGate(clock, keeper);
  const upstream = fakeUpstream(async ({ body, info }) =>
    info.verb === "get" && info.kind === "resource" && info.resource === "namespaces"
      ? jsonReply({ kind: "Namespace" })
      : jsonReply(body instanceof Uint8Array ? JSON.parse(Buffer.from(body).toString("utf8")) : {}),
  );
  const discovery = { scopeOf: async () => "namespaced" as const };
  const layers = [
    election({ session: enforcer, report: () => undefined, gate, clock, log: silentLogger() }),
    isolate(isolateDeps({ session: enforcer, clock, random: () => 0, registry: createRegistry("proxy", "test"), discovery })),
  ] as const;
  const handler = layers[0](layers[1](lockGate(gate)(upstream)));
  const body = (value: unknown) => ({ headers: { "content-type": "application/json" }, body: JSON.stringify(value) });
  const write = async (namespace = "a") => {
    try {
      const call = callOf("POST", `/api/v1/namespaces/${namespace}/pods`, body({ kind: "Pod", metadata: { name: "x" } }));
      return (await handler(call)).status;
    } catch (error) {
      if (error instanceof StatusError) return error.status.code;
      throw error;
    }
  };
  const renew = (seconds = 15) => {
    const spec = { holderIdentity: "pod-1", leaseDurationSeconds: seconds, renewTime: "2026-01-01T00:00:00.000000Z" };
    const lease = {
      kind: "Lease",
      apiVersion: "coordination.k8s.io/v1",
      metadata: { name: "shop-lock", namespace: "shop" },
      spec,
    };
    return handler(callOf("PUT", LEASE, body(lease)));
  };
  const enforce = (version: number, what: Routes, more: Partial<Snapshot> = {}) => enforcer.enforce(routes(version, what, more));
  return {
    clock,
    kept,
    leases,
    enforce,
    write,
    renew,
    writes: () => upstream.calls.filter((call) => call.method === "POST").length,
  };
}

const closed = { lock: "shop-lock---blue", leaseMs: 40_000 };

it("a closed gate is stored until it opens, by leading or by the end of the lease", async () => {
  const { clock, kept, enforce, renew } = startProcess();
  enforce(1, { blue: ["a"] }, { subset: "" });
  expect(kept).toEqual([]);
  enforce(2, { blue: ["a"] });
  expect(kept).toEqual([{ lock: "shop-lock---blue", leaseMs: 15_000 }]);
  await clock.advance(15_000);
  expect(kept.slice(1)).toEqual([undefined]);
  enforce(3, { blue: ["a"] }, { subset: "green" });
  await renew();
  expect(kept.slice(2)).toEqual([{ lock: "shop-lock---green", leaseMs: 15_000 }, undefined]);
});

it("a restart with a closed gate keeps it closed for the whole lease again, or until the pod leads", async () => {
  for (const opens of ["time", "lead"]) {
    const { clock, enforce, write, renew } = startProcess({
      lockName: "shop-lock",
      subset: "blue",
      closed,
      longestLeaseMs: undefined,
    });
    enforce(2, { blue: ["a"] });
    expect(await write()).toBe(503);
    await clock.advance(39_999);
    expect(await write()).toBe(503);
    if (opens === "time") await clock.advance(1);
    else await renew();
    expect(await write()).toBe(200);
  }
});

it("a restart closes the gate if the lock has another name than the stored one", async () => {
  const left = { lockName: "shop-lock", subset: "", closed: undefined, longestLeaseMs: undefined };
  const moved = startProcess(left);
  moved.enforce(2, { blue: ["a"] });
  expect(await moved.write()).toBe(503);
  const stayed = startProcess(left);
  stayed.enforce(2, { defaultSubset: ["a"] }, { subset: "" });
  expect(await stayed.write()).toBe(200);
});

it("a restart with an open gate keeps it open, and the stored state counts for the first routes only", async () => {
  const { clock, kept, enforce, write } = startProcess({
    lockName: "shop-lock",
    subset: "blue",
    closed,
    longestLeaseMs: undefined,
  });
  enforce(2, { blue: ["a"] });
  await clock.advance(40_000);
  enforce(3, { blue: ["a", "b"] });
  expect(await write()).toBe(200);
  expect(kept).toEqual([closed, undefined]);
  const next = startProcess({ lockName: "shop-lock", subset: "blue", closed: undefined, longestLeaseMs: undefined });
  next.enforce(4, { blue: ["a"] });
  expect(await next.write()).toBe(200);
});

it("the longest seen lease (OpenShift's has 137 s) outlasts a restart between the renewal and the renaming", async () => {
  const first = startProcess();
  first.enforce(1, { blue: ["a"] }, { subset: "" });
  await first.renew(137);
  await first.renew(40);
  expect(first.leases).toEqual([137_000]);
  const left = { lockName: "shop-lock", subset: "", closed: undefined, longestLeaseMs: 137_000 };
  for (const renewed of [undefined, 15]) {
    const second = startProcess(left);
    second.enforce(1, { blue: ["a"] }, { subset: "" });
    if (renewed !== undefined) await second.renew(renewed);
    second.enforce(2, { blue: ["a"] });
    expect(second.kept).toEqual([{ lock: "shop-lock---blue", leaseMs: 137_000 }]);
    expect(second.leases).toEqual([undefined]); // of the new lock nothing is known
    await second.clock.advance(137_000);
    second.enforce(3, { blue: ["a"] }, { subset: "green" });
    expect(second.kept.at(-1)).toEqual({ lock: "shop-lock---green", leaseMs: 15_000 });
  }
  const longer = startProcess(left);
  longer.enforce(1, { blue: ["a"] }, { subset: "" });
  await longer.renew(200);
  expect(longer.leases).toEqual([200_000]);
  const moved = startProcess(left);
  moved.enforce(2, { blue: ["a"] });
  expect(moved.kept).toEqual([{ lock: "shop-lock---blue", leaseMs: 137_000 }]);
});

it("a write that waited for the owner of its namespace is refused if the gate has closed meanwhile", async () => {
  const { clock, enforce, write, writes } = startProcess();
  enforce(1, { defaultSubset: ["a"] }, { subset: "" });
  const waiting = write("new");
  await clock.flush();
  enforce(2, { blue: ["a", "new"] });
  await clock.flush();
  expect(await waiting).toBe(503);
  expect(writes()).toBe(0);
});

describe("a write that reads its object first", () => {
  const POD = "/api/v1/namespaces/a/pods/x";
  const labels = { app: "x" };
  const meta = { apiVersion: "v1", kind: "Pod", metadata: { name: "x", namespace: "a", labels } };
  const json = (value: unknown, type = "application/json") => ({
    headers: { "content-type": type },
    body: JSON.stringify(value),
  });

  // The lock gets another name while the API server answers the question or the dry run before the write.
  it.each([
    ["DELETE", POD, {}, "GET"],
    ["PUT", POD, json(meta), "GET"],
    ["PATCH", POD, json({ spec: {} }, "application/merge-patch+json"), "GET"],
    ["PATCH", POD, json({ metadata: { labels } }, "application/merge-patch+json"), "PATCH"],
    ["GET", `${POD}/exec?command=rm`, {}, "GET"],
  ] as const)("%s %s is refused if the gate closes while the object is read", async (method, target, options, slow) => {
    const clock = createFakeClock();
    const enforcer = createEnforcer();
    const gate = createLockGate(clock, NO_MEMORY.lock);
    const looked = Promise.withResolvers<void>();
    const upstream = fakeUpstream(async (call) => {
      if (call.method === slow) await looked.promise;
      return jsonReply(meta);
    });
    const registry = createRegistry("proxy", "test");
    const discovery = { scopeOf: async () => "namespaced" as const };
    const inner = isolate(isolateDeps({ session: enforcer, clock, random: () => 0, registry, discovery }))(
      lockGate(gate)(upstream),
    );
    const handler = election({ session: enforcer, report: () => undefined, gate, clock, log: silentLogger() })(inner);
    const of = table([objectLimit("app=x", group("", "pods"))], { a: [] });
    enforcer.enforce(snapshot(of, { version: 1, digest: "1", lockName: "old" }));
    const answer = handler(callOf(method, target, options)).catch((error: unknown) => error);
    await clock.flush();
    const before = upstream.calls.length;
    enforcer.enforce(snapshot(of, { version: 2, digest: "2", lockName: "new" }));
    looked.resolve();
    expect(await answer).toMatchObject({ status: { code: 503 } });
    expect(upstream.calls.length).toBe(before);
  });
});
