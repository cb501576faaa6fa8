import { beforeEach, describe, expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { silentLogger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { RegistrationMessage } from "../../wire/messages.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import { createProxyRegistry, type ProxyRegistry, type ProxyStream } from "./proxy-registry.ts";

const POD = "shop/app-0";
const routes = table([subset("canary")], { pilot: [0] });
const version = (number: number): Snapshot => snapshot(routes, { version: number, digest: `digest-${number}` });

interface FakeStream extends ProxyStream {
  readonly sent: [number, number][];
  readonly deltas: (string | undefined)[];
  readonly ended: string[];
}

function stream(): FakeStream {
  const sent: [number, number][] = [];
  const deltas: (string | undefined)[] = [];
  const ended: string[] = [];
  return {
    sent,
    deltas,
    ended,
    send({ version: number }, nonce, delta) {
      sent.push([number, nonce]);
      deltas.push(delta?.baseDigest);
    },
    end: (reason) => void ended.push(reason),
  };
}

function registration(enforced?: Snapshot, uid = "uid-1"): RegistrationMessage {
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

describe("a leader whose epoch has changed", () => {
  it("believes nothing that was said under the promise before, and ends those streams", () => {
    const other = "shop/app-1";
    const late = stream();
    registry.connected(POD, registration(version(1)), proxy, 1);
    registry.publish(POD, version(2));
    registry.connected(other, registration(), late, 6);
    expect(proxy.ended).toHaveLength(1);
    expect(registry.facts(POD)).toMatchObject({ connected: false, unresolved: true, enforced: undefined, version: 1 });
    registry.acked(POD, proxy, 1);
    expect(registry.facts(POD)?.unresolved).toBe(true);
    expect([registry.facts(other)?.connected, late.ended]).toEqual([true, []]);
    const again = stream();
    registry.connected(POD, registration(version(1)), again, 6);
    expect(registry.facts(POD)).toMatchObject({ connected: true, unresolved: false, enforced: { version: 1 } });
    expect(late.ended).toEqual([]);
  });
});

it("a proxy that says a version near the end of all numbers does not lead the others' versions there", () => {
  const absurd = { ...version(1), version: Number.MAX_SAFE_INTEGER };
  registry.connected(POD, registration(absurd), proxy);
  expect(registry.facts(POD)).toMatchObject({ version: 0, enforced: undefined, unresolved: true });
});

describe("what a proxy is sent", () => {
  it("is never a snapshot from before its registration: that was decided without knowing what it holds", () => {
    registry.publish(POD, version(1));
    expect(registry.facts(POD)).toBeUndefined();
    registry.connected(POD, registration(), proxy);
    expect(proxy.sent).toEqual([]);
    registry.publish(POD, version(2));
    expect(proxy.sent).toEqual([[2, 1]]);
  });
  it("is what it has already, if it may hold anything besides: that is over with its answer", () => {
    const nothingTold = { ...snapshotToWire(version(1), 0), digest: "", table: null };
    registry.connected(POD, { ...registration(version(1)), inDoubt: [nothingTold] }, proxy);
    expect(registry.facts(POD)).toMatchObject({ unresolved: true, enforced: { version: 1 } });
    registry.publish(POD, version(1));
    expect(proxy.sent).toEqual([[1, 1]]);
    registry.acked(POD, proxy, 1);
    registry.publish(POD, version(1));
    expect([registry.facts(POD)?.unresolved, proxy.sent.length]).toEqual([false, 1]);
  });
  it("is what it acknowledged last at once, though what was sent since waits for a write; the doubt ends with that answer", () => {
    registry.connected(POD, registration(version(1)), proxy);
    registry.publish(POD, version(2));
    const undo = { ...version(1), version: 3 };
    registry.publish(POD, undo);
    expect(proxy.sent).toEqual([
      [2, 1],
      [3, 2],
    ]);
    expect(proxy.deltas[1]).toBeUndefined(); // it is not known which of the two is in force
    expect(registry.facts(POD)).toMatchObject({
      enforced: { version: 1 },
      inDoubt: [{ version: 2 }],
      outstanding: { version: 3 },
    });
    registry.publish(POD, { ...version(4) });
    registry.acked(POD, proxy, 1); // of what was given up: says nothing any more
    expect(registry.facts(POD)?.inDoubt).toHaveLength(1);
    registry.acked(POD, proxy, 2);
    expect(registry.facts(POD)).toMatchObject({ enforced: { version: 3 }, inDoubt: [], outstanding: { version: 4 } });
    expect(proxy.sent).toHaveLength(3);
  });
  it("is one snapshot at a time, coalesced to the newest", () => {
    registry.connected(POD, registration(), proxy);
    for (const number of [1, 2, 3, 4]) registry.publish(POD, version(number));
    expect(proxy.sent).toEqual([[1, 1]]);
    registry.acked(POD, proxy, 1);
    expect(proxy.sent).toEqual([
      [1, 1],
      [4, 2],
    ]);
  });
  it("is nothing when the rules are the ones that it enforces already", () => {
    registry.connected(POD, registration(version(7)), proxy);
    registry.publish(POD, { ...version(8), digest: "digest-7" });
    expect(proxy.sent).toEqual([]);
    expect(registry.facts(POD)?.enforced?.version).toBe(7);
  });
  it("is not a refused snapshot a second time, until there is another", () => {
    registry.connected(POD, registration(version(1)), proxy);
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
  it("is what it says at registration, over what was believed before", () => {
    registry.connected(POD, registration(), proxy);
    registry.publish(POD, version(2));
    registry.acked(POD, proxy, 1);
    const again = stream();
    registry.connected(POD, registration(version(1)), again);
    expect(registry.facts(POD)).toMatchObject({ enforced: { version: 1 }, unresolved: false });
    expect(proxy.ended).toEqual(["the pod has opened a newer stream"]);
    registry.publish(POD, version(2));
    expect(again.sent).toEqual([[2, 2]]);
  });
  it("stays when the stream breaks: a lost connection is not a lost claim", () => {
    registry.connected(POD, registration(version(1)), proxy);
    registry.publish(POD, version(2));
    registry.disconnected(POD, proxy);
    expect(registry.facts(POD)).toMatchObject({ connected: false, enforced: { version: 1 }, outstanding: { version: 2 } });
  });
  it("is unresolved while a proxy enforces something that it could not tell", () => {
    registry.connected(POD, { ...registration(version(5)), enforced: null }, proxy);
    expect(registry.facts(POD)).toMatchObject({ unresolved: true, enforced: undefined, version: 5 });
    registry.publish(POD, version(6));
    registry.acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ unresolved: false, enforced: { version: 6 } });
  });
  it("holds what it is in doubt about until it acknowledges, and is sent the newest again for that", () => {
    const pending = { ...registration(version(1)), version: 2, inDoubt: [snapshotToWire(version(2), 0)] };
    registry.connected(POD, pending, proxy);
    expect(registry.facts(POD)?.inDoubt.map((row) => row.version)).toEqual([2]);
    registry.publish(POD, { ...version(3), digest: "digest-1" });
    expect(proxy.sent).toEqual([[3, 1]]);
    registry.acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ inDoubt: [], enforced: { version: 3 } });
  });
  it("takes no report of a lock that none can be, and no more of the reason than a condition has room for", () => {
    const lock = { lockName: "lock---canary", resource: "configmaps", deniedVerbs: ["get", "get"], reason: "r\n".repeat(30_000) };
    registry.connected(POD, registration(version(1)), proxy);
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
    registry.connected(POD, registration(version(1)), proxy);
    expect(registry.facts(POD)).toMatchObject({ leader: false, lock: null });
    registry.reported(POD, proxy, { leader: true, lock });
    expect(registry.facts(POD)).toMatchObject({ leader: true, lock });
    const again = stream();
    registry.connected(POD, registration(version(1)), again);
    registry.reported(POD, proxy, { leader: true, lock: null }); // of the older stream
    expect(registry.facts(POD)).toMatchObject({ leader: false, lock });
    registry.connected(POD, registration(version(1), "uid-2"), stream());
    expect(registry.facts(POD)).toMatchObject({ leader: false, lock: null });
  });
  it("ends with the pod", () => {
    registry.connected(POD, registration(version(1)), proxy);
    registry.forget(POD);
    expect(registry.facts(POD)).toBeUndefined();
    expect(proxy.ended).toHaveLength(1);
  });
});

describe("nonces", () => {
  it("are the same for all that are sent the same, and grow on each stream", () => {
    const others = ["shop/app-1", "shop/app-2"].map((pod) => ({ pod, proxy: stream() }));
    for (const { pod, proxy: opened } of [{ pod: POD, proxy }, ...others]) registry.connected(pod, registration(), opened);
    for (const pod of [POD, "shop/app-1"]) registry.publish(pod, version(1));
    registry.acked(POD, proxy, 1);
    registry.publish(POD, version(2));
    registry.acked(POD, proxy, 2);
    registry.publish("shop/app-2", version(1));
    expect(others.map(({ proxy: opened }) => opened.sent)).toEqual([[[1, 1]], [[1, 1]]]);
    registry.publish(POD, version(1)); // as after an undo: an ACK of the first sending is none of this one
    expect(proxy.sent).toEqual([
      [1, 1],
      [2, 2],
      [1, 3],
    ]);
  });
});

describe("a proxy that takes deltas", () => {
  const wide = (moved: readonly string[]) =>
    table(
      [subset("canary")],
      Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, moved.includes(name) ? [] : [0]])),
    );
  const first = { ...version(1), table: wide([]) };
  const second = { ...version(2), table: wide(["a"]) };
  const takes = (enforced?: Snapshot): RegistrationMessage => ({ ...registration(enforced), takesDeltas: true });

  it("is sent the whole while it is not certain what it enforces, and the difference to that from then on", () => {
    registry.connected(POD, takes(), proxy);
    registry.publish(POD, first);
    registry.publish(POD, second);
    registry.acked(POD, proxy, 1);
    expect(proxy.deltas).toEqual([undefined, "digest-1"]);
    expect(registry.facts(POD)).toMatchObject({ enforced: { version: 1 }, outstanding: { version: 2, table: second.table } });
    registry.acked(POD, proxy, 2);
    expect(registry.facts(POD)?.enforced).toMatchObject({ version: 2, table: second.table });
    const doubtful = stream();
    registry.connected(POD, { ...takes(second), inDoubt: [snapshotToWire(first, 0)] }, doubtful);
    registry.publish(POD, { ...version(3), table: wide(["b"]) });
    expect(doubtful.deltas).toEqual([undefined]);
  });
  it("is sent the whole if it does not enforce the base, and that is no refusal", () => {
    registry.connected(POD, takes(first), proxy);
    registry.publish(POD, second);
    registry.nacked(POD, proxy, { nonce: 1, version: 2, problems: [], needsSnapshot: true });
    expect(proxy.deltas).toEqual(["digest-1", undefined]);
    expect(registry.facts(POD)).toMatchObject({ problems: [], outstanding: { version: 2 } });
    registry.nacked(POD, proxy, { nonce: 2, version: 2, problems: ["no"], needsSnapshot: true });
    expect(proxy.sent).toHaveLength(2); // of the whole that is nonsense, and not asked for without end
    expect(registry.facts(POD)).toMatchObject({ problems: ["no"] });
  });
  it("is sent the whole if it is another app's or another subset's, or if it did not say that it takes deltas", () => {
    for (const [said, wanted] of [
      [takes(first), { ...second, subset: "canary" }],
      [takes(first), { ...second, app: { namespace: "shop", name: "other" } }],
      [registration(first), second],
    ] as const) {
      const opened = stream();
      registry.connected(POD, said, opened);
      registry.publish(POD, wanted);
      expect(opened.deltas).toEqual([undefined]);
    }
  });
});

describe("streams of one pod", () => {
  const numbered = (number: number, enforced?: Snapshot): RegistrationMessage => ({ ...registration(enforced), stream: number });

  it("are counted by the proxy: a registration that comes late changes nothing, and its stream is ended", () => {
    registry.connected(POD, numbered(5, version(2)), proxy);
    const late = stream();
    registry.connected(POD, numbered(4, version(1)), late);
    expect([proxy.ended.length, late.ended.length]).toEqual([0, 1]);
    expect(registry.facts(POD)).toMatchObject({ connected: true, enforced: { version: 2 } });
    registry.disconnected(POD, proxy);
    registry.connected(POD, numbered(3, version(1)), stream());
    expect(registry.facts(POD)).toMatchObject({ connected: false, enforced: { version: 2 } });
    registry.connected(POD, numbered(6, version(1)), stream());
    expect(registry.facts(POD)).toMatchObject({ connected: true, enforced: { version: 1 } });
  });
  it("begin anew with a pod that was made anew: nothing is left of the other one", () => {
    registry.connected(POD, numbered(5, version(9)), proxy);
    registry.reported(POD, proxy, { leader: true, lock: null, held: 3, drainingWrites: 2 });
    const other = stream();
    registry.connected(POD, { ...registration(undefined, "uid-2"), stream: 1 }, other);
    expect(proxy.ended).toEqual(["the pod has been made anew"]);
    expect(registry.facts(POD)).toMatchObject({ connected: true, enforced: undefined, version: 0, held: 0, drainingWrites: 0 });
    registry.acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ enforced: undefined });
  });
});

describe("late and foreign messages", () => {
  it("of an older stream change nothing", () => {
    registry.connected(POD, registration(), proxy);
    registry.publish(POD, version(1));
    const newer = stream();
    registry.connected(POD, registration(), newer);
    registry.acked(POD, proxy, 1);
    registry.disconnected(POD, proxy);
    expect(registry.facts(POD)).toMatchObject({ connected: true, enforced: undefined });
  });
  it("an ACK of another nonce does not settle the outstanding snapshot", () => {
    registry.connected(POD, registration(), proxy);
    registry.publish(POD, version(1));
    registry.acked(POD, proxy, 99);
    expect(registry.facts(POD)?.enforced).toBeUndefined();
  });
});
