import { beforeEach, describe, expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { silentLogger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { HelloMessage } from "../../wire/messages.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import { createProxyRegistry, type ProxyRegistry, type ProxyStream } from "./proxy-registry.ts";

const POD = "shop/app-0";
const routes = table([subset("canary")], { pilot: [0] });
const version = (number: number): Snapshot => snapshot(routes, { version: number, digest: `digest-${number}` });

interface FakeStream extends ProxyStream {
  readonly sent: [number, number][];
  readonly ended: string[];
}

function stream(): FakeStream {
  const sent: [number, number][] = [];
  const ended: string[] = [];
  return {
    sent,
    ended,
    send: ({ version: number }, nonce) => void sent.push([number, nonce]),
    end: (reason) => void ended.push(reason),
  };
}

function hello(enforced?: Snapshot, uid = "uid-1"): HelloMessage {
  return {
    pod: { namespace: "shop", name: "app-0", uid },
    version: enforced?.version ?? 0,
    digest: enforced?.digest ?? "",
    proxyVersion: "test",
    enforced: enforced === undefined ? null : snapshotToWire(enforced, 0),
    inDoubt: [],
  };
}

let registry: ProxyRegistry;
let proxy: FakeStream;
beforeEach(() => {
  registry = createProxyRegistry({ log: silentLogger() });
  proxy = stream();
});

describe("what a proxy is sent", () => {
  it("is never a snapshot from before its hello: that was decided without knowing what it holds", () => {
    registry.publish(POD, version(1));
    expect(registry.facts(POD)).toBeUndefined();
    registry.connected(POD, hello(), proxy);
    expect(proxy.sent).toEqual([]);
    registry.publish(POD, version(2));
    expect(proxy.sent).toEqual([[2, 1]]);
  });
  it("is one snapshot at a time, coalesced to the newest", () => {
    registry.connected(POD, hello(), proxy);
    for (const number of [1, 2, 3, 4]) registry.publish(POD, version(number));
    expect(proxy.sent).toEqual([[1, 1]]);
    registry.acked(POD, proxy, 1);
    expect(proxy.sent).toEqual([
      [1, 1],
      [4, 2],
    ]);
  });
  it("is nothing when the rules are the ones that it enforces already", () => {
    registry.connected(POD, hello(version(7)), proxy);
    registry.publish(POD, { ...version(8), digest: "digest-7" });
    expect(proxy.sent).toEqual([]);
    expect(registry.facts(POD)?.enforced?.version).toBe(7);
  });
  it("is not a refused snapshot a second time, until there is another", () => {
    registry.connected(POD, hello(version(1)), proxy);
    registry.publish(POD, version(2));
    registry.nacked(POD, proxy, { nonce: 1, version: 2, problems: ["table: missing"] });
    registry.publish(POD, version(2));
    expect(proxy.sent).toHaveLength(1);
    expect(registry.facts(POD)).toMatchObject({ problems: ["table: missing"], enforced: { version: 1 }, outstanding: undefined });
    registry.publish(POD, version(3));
    expect(proxy.sent).toHaveLength(2);
  });
});

describe("what is known of a proxy", () => {
  it("is what it says at hello, over what was believed before", () => {
    registry.connected(POD, hello(), proxy);
    registry.publish(POD, version(2));
    registry.acked(POD, proxy, 1);
    const again = stream();
    registry.connected(POD, hello(version(1)), again);
    expect(registry.facts(POD)).toMatchObject({ enforced: { version: 1 }, unresolved: false });
    expect(proxy.ended).toEqual(["the pod has opened a newer stream"]);
    registry.publish(POD, version(2));
    expect(again.sent).toEqual([[2, 2]]);
  });
  it("stays when the stream breaks: a lost connection is not a lost claim", () => {
    registry.connected(POD, hello(version(1)), proxy);
    registry.publish(POD, version(2));
    registry.disconnected(POD, proxy);
    expect(registry.facts(POD)).toMatchObject({ connected: false, enforced: { version: 1 }, outstanding: { version: 2 } });
  });
  it("is unresolved while a proxy enforces something that it could not tell", () => {
    registry.connected(POD, { ...hello(version(5)), enforced: null }, proxy);
    expect(registry.facts(POD)).toMatchObject({ unresolved: true, enforced: undefined, version: 5 });
    registry.publish(POD, version(6));
    registry.acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ unresolved: false, enforced: { version: 6 } });
  });
  it("holds what it is in doubt about until it acknowledges, and is sent the newest again for that", () => {
    const pending = { ...hello(version(1)), version: 2, inDoubt: [snapshotToWire(version(2), 0)] };
    registry.connected(POD, pending, proxy);
    expect(registry.facts(POD)?.inDoubt.map((row) => row.version)).toEqual([2]);
    registry.publish(POD, { ...version(3), digest: "digest-1" });
    expect(proxy.sent).toEqual([[3, 1]]);
    registry.acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ inDoubt: [], enforced: { version: 3 } });
  });
  it("takes no report of a lock that none can be, and no more of the reason than a condition has room for", () => {
    const lock = { lockName: "lock---canary", resource: "configmaps", deniedVerbs: ["get", "get"], reason: "r\n".repeat(30_000) };
    registry.connected(POD, hello(version(1)), proxy);
    const told = (more: object) => {
      registry.reported(POD, proxy, { leader: true, lock: { ...lock, ...more } });
      return registry.facts(POD)?.lock;
    };
    expect(told({})).toEqual({ ...lock, deniedVerbs: ["get"], reason: "r ".repeat(128) });
    expect(told({ resource: "secrets" })).toBeNull();
    told({});
    expect(told({ deniedVerbs: ["get", "*"] })).toBeNull();
    expect(told({ resource: "endpoints", deniedVerbs: [], reason: "" })).toMatchObject({ resource: "endpoints" });
    expect(registry.facts(POD)?.leader).toBe(true);
  });

  it("keeps what it told of its lock's permission over a lost connection, but not over another pod of the same name", () => {
    const lock = { lockName: "lock---canary", resource: "leases.coordination.k8s.io", deniedVerbs: ["get"], reason: "" };
    registry.connected(POD, hello(version(1)), proxy);
    expect(registry.facts(POD)).toMatchObject({ leader: false, lock: null });
    registry.reported(POD, proxy, { leader: true, lock });
    expect(registry.facts(POD)).toMatchObject({ leader: true, lock });
    const again = stream();
    registry.connected(POD, hello(version(1)), again);
    registry.reported(POD, proxy, { leader: true, lock: null }); // of the older stream
    expect(registry.facts(POD)).toMatchObject({ leader: false, lock });
    registry.connected(POD, hello(version(1), "uid-2"), stream());
    expect(registry.facts(POD)).toMatchObject({ leader: false, lock: null });
  });
  it("ends with the pod", () => {
    registry.connected(POD, hello(version(1)), proxy);
    registry.forget(POD);
    expect(registry.facts(POD)).toBeUndefined();
    expect(proxy.ended).toHaveLength(1);
  });
});

describe("late and foreign messages", () => {
  it("of an older stream change nothing", () => {
    registry.connected(POD, hello(), proxy);
    registry.publish(POD, version(1));
    const newer = stream();
    registry.connected(POD, hello(), newer);
    registry.acked(POD, proxy, 1);
    registry.disconnected(POD, proxy);
    expect(registry.facts(POD)).toMatchObject({ connected: true, enforced: undefined });
  });
  it("an ACK of another nonce does not settle the outstanding snapshot", () => {
    registry.connected(POD, hello(), proxy);
    registry.publish(POD, version(1));
    registry.acked(POD, proxy, 99);
    expect(registry.facts(POD)?.enforced).toBeUndefined();
  });
});
