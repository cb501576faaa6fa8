import { beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { CAPABILITIES, registered } from "../../../test/support/updates.ts";
import { collectGarbage } from "../../base/collect-garbage.ts";
import { silentLogger } from "../../base/log.ts";
import type { UpdateMessage } from "../../mesh/contract/messages.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import type { PodKey } from "../../mesh/handover/proxy-facts.ts";
import type { ProxyRegistration, RouteClaims } from "../../mesh/link/proxy-record.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import type { ProxyStream } from "./proxy-registry.ts";
import { createProxyRegistry, type ProxyRegistry } from "./proxy-registry.ts";

const POD = "shop/app-0";
const routes = table([subset("canary")], { pilot: [0] });
const version = (number: number): Snapshot => snapshot(routes, { version: number, digest: `digest-${number}` });

interface FakeStream extends ProxyStream {
  readonly sent: [number, number][];
  readonly deltas: string[];
  readonly ended: string[];
}

function stream(): FakeStream {
  const sent: [number, number][] = [];
  const deltas: string[] = [];
  const ended: string[] = [];
  return {
    sent,
    deltas,
    ended,
    send({ resource, nonce, baseDigest }) {
      sent.push([resource?.version ?? 0, nonce]);
      deltas.push(baseDigest);
    },
    end: (reason) => void ended.push(reason),
  };
}

/** A registration that names this as acknowledged. */
const registration = (acknowledged?: Snapshot, uid = "uid-1") => registered(acknowledged, { uid });
const claiming = (acknowledged: Snapshot | undefined, more: Partial<RouteClaims>): ProxyRegistration => {
  const made = registration(acknowledged);
  return { ...made, route: { ...made.route, ...more } };
};

let registry: ProxyRegistry;
let proxy: FakeStream;
const publish = (pod: PodKey, wanted: Snapshot) => registry.publish(pod, ROUTE, wanted);
const acked = (pod: PodKey, of: ProxyStream, nonce: number) => registry.acked(pod, of, { type: "routes", nonce });
const nacked = (pod: PodKey, of: ProxyStream, nonce: number, problems: readonly string[], needsWhole = false) =>
  registry.nacked(pod, of, { type: "routes", nonce, problems, needsWhole });
beforeEach(() => {
  registry = createProxyRegistry({ log: silentLogger() });
  proxy = stream();
});

describe("a leader whose epoch has changed", () => {
  it("believes nothing that was said under the promise before, and ends those streams", () => {
    const other = "shop/app-1";
    const late = stream();
    registry.connected(POD, registration(version(1)), proxy, 1);
    publish(POD, version(2));
    registry.connected(other, registration(), late, 6);
    expect(proxy.ended).toHaveLength(1);
    expect(registry.facts(POD)).toMatchObject({ connected: false, mayHoldMore: true, acknowledged: undefined, version: 1 });
    acked(POD, proxy, 1);
    expect(registry.facts(POD)?.mayHoldMore).toBe(true);
    expect([registry.facts(other)?.connected, late.ended]).toEqual([true, []]);
    const again = stream();
    registry.connected(POD, registration(version(1)), again, 6);
    expect(registry.facts(POD)).toMatchObject({ connected: true, mayHoldMore: false, acknowledged: { version: 1 } });
    expect(late.ended).toEqual([]);
  });
});

describe("what a proxy is sent", () => {
  it("is never a snapshot from before its registration: that was decided without knowing what it holds", () => {
    publish(POD, version(1));
    expect(registry.facts(POD)).toBeUndefined();
    registry.connected(POD, registration(), proxy);
    expect(proxy.sent).toEqual([]);
    publish(POD, version(2));
    expect(proxy.sent).toEqual([[2, 1]]);
  });
  it("is what it has already, if it may hold anything besides: that is over with its answer", () => {
    registry.connected(POD, claiming(version(1), { mayHoldMore: true }), proxy);
    expect(registry.facts(POD)).toMatchObject({ mayHoldMore: true, acknowledged: { version: 1 } });
    publish(POD, version(1));
    expect(proxy.sent).toEqual([[1, 1]]);
    acked(POD, proxy, 1);
    publish(POD, version(1));
    expect([registry.facts(POD)?.mayHoldMore, proxy.sent.length]).toEqual([false, 1]);
  });
  it("is what it acknowledged last at once, though what was sent since waits for a write; the doubt ends with that answer", () => {
    registry.connected(POD, registration(version(1)), proxy);
    publish(POD, version(2));
    const undo = { ...version(1), version: 3 };
    publish(POD, undo);
    expect(proxy.sent).toEqual([
      [2, 1],
      [3, 2],
    ]);
    expect(proxy.deltas[1]).toBe(""); // it is not known which of the two is in force
    expect(registry.facts(POD)).toMatchObject({
      acknowledged: { version: 1 },
      inDoubt: [{ version: 2 }],
      outstanding: { version: 3 },
    });
    publish(POD, { ...version(4) });
    acked(POD, proxy, 1); // of what was given up: says nothing any more
    expect(registry.facts(POD)?.inDoubt).toHaveLength(1);
    acked(POD, proxy, 2);
    expect(registry.facts(POD)).toMatchObject({ acknowledged: { version: 3 }, inDoubt: [], outstanding: { version: 4 } });
    expect(proxy.sent).toHaveLength(3);
  });
  it("is one snapshot at a time, coalesced to the newest", () => {
    registry.connected(POD, registration(), proxy);
    for (const number of [1, 2, 3, 4]) publish(POD, version(number));
    expect(proxy.sent).toEqual([[1, 1]]);
    acked(POD, proxy, 1);
    expect(proxy.sent).toEqual([
      [1, 1],
      [4, 2],
    ]);
  });
  it("is nothing when the rules are the ones that it enforces already", () => {
    registry.connected(POD, registration(version(7)), proxy);
    publish(POD, { ...version(8), digest: "digest-7" });
    expect(proxy.sent).toEqual([]);
    expect(registry.facts(POD)?.acknowledged?.version).toBe(7);
  });
  it("is not a refused snapshot a second time, until there is another", () => {
    registry.connected(POD, registration(version(1)), proxy);
    publish(POD, version(2));
    nacked(POD, proxy, 1, ["table: missing"]);
    publish(POD, version(2));
    expect(proxy.sent).toHaveLength(1);
    expect(registry.facts(POD)).toMatchObject({
      problems: { routes: ["table: missing"] },
      acknowledged: { version: 1 },
      outstanding: undefined,
    });
    publish(POD, version(3));
    expect(proxy.sent).toHaveLength(2);
  });
  it("keeps of a refusal with 40 problems of 1,000 characters only what a person reads", () => {
    registry.connected(POD, registration(version(1)), proxy);
    publish(POD, version(2));
    nacked(POD, proxy, 1, Array(40).fill(`a\nb${"x".repeat(1_000)}`));
    const problems = registry.facts(POD)?.problems.routes ?? [];
    expect([problems.length, problems[0]?.slice(0, 4), problems.at(-1)]).toEqual([11, "a bx", "and 30 more"]);
    expect(problems.join().length).toBeLessThan(6_000);
  });
});

describe("what is known of a proxy", () => {
  it("is what it says at registration, over what was believed before", () => {
    registry.connected(POD, registration(), proxy);
    publish(POD, version(2));
    acked(POD, proxy, 1);
    const again = stream();
    registry.connected(POD, registration(version(1)), again);
    expect(registry.facts(POD)).toMatchObject({ acknowledged: { version: 1 }, mayHoldMore: false });
    expect(proxy.ended).toEqual(["the pod has opened a newer stream"]);
    publish(POD, version(2));
    expect(again.sent).toEqual([[2, 2]]);
  });
  it("stays when the stream breaks: a lost connection is not a lost claim", () => {
    registry.connected(POD, registration(version(1)), proxy);
    publish(POD, version(2));
    registry.disconnected(POD, proxy);
    expect(registry.facts(POD)).toMatchObject({ connected: false, acknowledged: { version: 1 }, outstanding: { version: 2 } });
  });
  it("reports that a proxy may hold more while the proxy enforces something that it could not register", () => {
    registry.connected(POD, claiming(undefined, { version: 5, mayHoldMore: true }), proxy);
    expect(registry.facts(POD)).toMatchObject({ mayHoldMore: true, acknowledged: undefined, version: 5 });
    publish(POD, version(6));
    acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ mayHoldMore: false, acknowledged: { version: 6 } });
  });
  it("holds what it is in doubt about until it acknowledges, and is sent the newest again for that", () => {
    const pending = claiming(version(1), { version: 2, inDoubt: [version(2)] });
    registry.connected(POD, pending, proxy);
    expect(registry.facts(POD)?.inDoubt.map((row) => row.version)).toEqual([2]);
    publish(POD, { ...version(3), digest: "digest-1" });
    expect(proxy.sent).toEqual([[3, 1]]);
    acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ inDoubt: [], acknowledged: { version: 3 } });
  });
  it("takes no report of a lock that none can be, and no more of the reason than a condition has room for", () => {
    const lock = { lockName: "lock---canary", resource: "configmaps", deniedVerbs: ["get", "get"], reason: "r\n".repeat(30_000) };
    registry.connected(POD, registration(version(1)), proxy);
    const told = (more: object) => {
      registry.reported(POD, proxy, { lock: { ...lock, ...more } });
      return registry.facts(POD)?.lock;
    };
    expect(told({})).toEqual({ ...lock, deniedVerbs: ["get"], reason: `${"r ".repeat(127)}r…` });
    expect(told({ resource: "secrets" })).toBeNull();
    told({});
    expect(told({ deniedVerbs: ["get", "*"] })).toBeNull();
    expect(told({ resource: "endpoints", deniedVerbs: [], reason: "" })).toMatchObject({ resource: "endpoints" });
  });

  it("takes no report of a lock that a VirtualApp cannot name", () => {
    const unnamedLock = { lockName: "op", resource: "configmaps" };
    registry.connected(POD, registration(version(1)), proxy);
    const told = (more: object) => {
      registry.reported(POD, proxy, { unnamedLock: { ...unnamedLock, ...more } });
      return registry.facts(POD)?.unnamedLock;
    };
    expect(told({})).toEqual(unnamedLock);
    registry.connected(POD, registration(version(1)), proxy);
    expect(registry.facts(POD)).toMatchObject({ unnamedLock });
    for (const more of [{ resource: "secrets" }, { lockName: "op; to do: delete it" }, { lockName: "x".repeat(254) }]) {
      expect(told(more)).toBeNull();
      told({});
    }
    expect(told({ lockName: "", resource: "" })).toBeNull();
  });

  it("takes no count that a status has no room for", () => {
    registry.connected(POD, registration(version(1)), proxy);
    registry.reported(POD, proxy, { backlog: { heldNamespaces: 2 ** 32 - 1, drainingWrites: 3 } });
    expect(registry.facts(POD)?.backlog).toEqual({ heldNamespaces: 2 ** 31 - 1, drainingWrites: 3 });
  });

  it("keeps what it told of its lock's permission over a lost connection, but not over another pod of the same name", () => {
    const lock = { lockName: "lock---canary", resource: "leases.coordination.k8s.io", deniedVerbs: ["get"], reason: "" };
    registry.connected(POD, registration(version(1)), proxy);
    expect(registry.facts(POD)).toMatchObject({ leader: false, lock: null });
    registry.reported(POD, proxy, { leader: true });
    registry.reported(POD, proxy, { lock });
    expect(registry.facts(POD)).toMatchObject({ leader: true, lock });
    const again = stream();
    registry.connected(POD, registration(version(1)), again);
    registry.reported(POD, proxy, { leader: true }); // of the older stream
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
  it("grow with each update of a pod, over its streams: an ACK of one sending is none of another", () => {
    registry.connected(POD, registration(), proxy);
    publish(POD, version(1));
    acked(POD, proxy, 1);
    publish(POD, version(2));
    acked(POD, proxy, 2);
    publish(POD, version(1)); // as after an undo
    expect(proxy.sent).toEqual([
      [1, 1],
      [2, 2],
      [1, 3],
    ]);
  });
});

describe("an update to many proxies", () => {
  const pods: readonly PodKey[] = ["shop/app-0", "shop/app-1", "shop/app-2"];
  const open = () => {
    const updates: UpdateMessage[] = [];
    return { send: (update: UpdateMessage) => void updates.push(update), end: () => undefined, updates };
  };
  /** Connects all and publishes a route to them. The result does not keep the updates alive. */
  const published = () => {
    const streams = pods.map(open);
    pods.forEach((pod, index) => {
      const stream = streams[index] ?? open();
      registry.connected(pod, registration(), stream);
      publish(pod, { ...version(1) });
    });
    const updates = streams.flatMap((each) => each.updates.splice(0));
    return {
      streams,
      nonces: updates.map(({ nonce }) => nonce),
      refs: [...new Set(updates)].map((update) => new WeakRef(update)),
    };
  };
  const allGone = (refs: readonly WeakRef<UpdateMessage>[]) => {
    collectGarbage();
    return refs.every((ref) => ref.deref() === undefined);
  };

  it("is one message, which is kept as long as one stream has not answered", async () => {
    const { streams, nonces, refs } = published();
    expect([refs.length, nonces.length]).toEqual([1, pods.length]);
    const answer = (index: number) => acked(pods[index] ?? POD, streams[index] ?? proxy, nonces[index] ?? 0);
    answer(0);
    answer(1);
    await new Promise(setImmediate);
    expect(allGone(refs)).toBe(false);
    answer(2);
    await eventually(() => allGone(refs));
  });
  it("is not kept for streams that are gone", async () => {
    const { streams, refs } = published();
    for (const [index, pod] of pods.entries()) registry.disconnected(pod, streams[index] ?? proxy);
    await eventually(() => allGone(refs));
    for (const pod of pods) expect(registry.facts(pod)).toMatchObject({ connected: false, outstanding: { version: 1 } });
  });
});

describe("resource types", () => {
  const POLICY = {
    name: "policy",
    encode: () => Buffer.from("policy"),
    decode: (_: Uint8Array, head: { readonly version: number; readonly digest: string }) => head,
  };
  const policy = (number: number) => ({ version: number, digest: `policy-${number}` });
  const both = () => registered(undefined, { capabilities: ["type:routes", "type:policy"] });

  it("have versions, nonces and answers of their own", () => {
    registry.connected(POD, both(), proxy);
    publish(POD, version(7));
    registry.publish(POD, POLICY, policy(1));
    registry.publish(POD, POLICY, policy(2));
    expect(proxy.sent).toEqual([
      [7, 1],
      [1, 1],
    ]);
    registry.acked(POD, proxy, { type: "policy", nonce: 1 });
    expect(proxy.sent.at(-1)).toEqual([2, 2]);
    expect(registry.facts(POD)).toMatchObject({ acknowledged: undefined, outstanding: { version: 7 }, version: 0 });
    registry.nacked(POD, proxy, { type: "policy", nonce: 2, problems: ["rules: missing"], needsWhole: false });
    acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ acknowledged: { version: 7 }, problems: { policy: ["rules: missing"] } });
    registry.acked(POD, proxy, { type: "unheard-of", nonce: 1 });
  });

  it("that a proxy does not accept are not sent to it, and its facts say so, until it comes back with another version", () => {
    registry.connected(POD, registration(), proxy);
    registry.publish(POD, POLICY, policy(1));
    publish(POD, version(1));
    expect(proxy.sent).toEqual([[1, 1]]);
    expect(registry.facts(POD)?.problems).toEqual({ policy: ['the proxy does not support resource type "policy"'] });
    const again = stream();
    registry.connected(POD, both(), again);
    expect([again.sent, registry.facts(POD)?.problems]).toEqual([[[1, 1]], {}]);
  });

  it("stay desired over a reconnection, and are sent again at once; only the route is decided anew", () => {
    registry.connected(POD, both(), proxy);
    publish(POD, version(7));
    registry.publish(POD, POLICY, policy(1));
    registry.acked(POD, proxy, { type: "policy", nonce: 1 });
    const again = stream();
    registry.connected(POD, both(), again);
    expect(again.sent).toEqual([[1, 2]]);
    registry.connected(POD, registered(undefined, { capabilities: ["type:routes"] }), stream());
    expect(registry.facts(POD)?.problems).toEqual({ policy: ['the proxy does not support resource type "policy"'] });
  });

  it("are a change when the proxy turns out not to support them, once", () => {
    const changes: string[] = [];
    registry.connected(POD, registration(), proxy);
    registry.onChange((pod) => changes.push(pod));
    for (const number of [1, 1, 2]) registry.publish(POD, POLICY, policy(number));
    expect(changes).toEqual([POD]);
  });
});

describe("changes", () => {
  it("are told once each, and a report that says nothing new is none", async () => {
    const clock = createFakeClock();
    registry = createProxyRegistry({ log: silentLogger(), clock });
    const changes: string[] = [];
    registry.onChange((pod) => changes.push(pod));
    registry.connected(POD, registration(), proxy);
    for (let round = 0; round < 2; round++) {
      registry.reported(POD, proxy, { leader: true });
      registry.reported(POD, proxy, { backlog: { heldNamespaces: 1, drainingWrites: 0 } });
      registry.reported(POD, proxy, { lock: { lockName: "", resource: "", deniedVerbs: [], reason: "" } });
    }
    await clock.advance(1_000);
    publish(POD, version(1));
    acked(POD, proxy, 1);
    registry.disconnected(POD, proxy);
    expect(changes).toEqual(["connected", "leader", "backlog", "acked", "disconnected"].map(() => POD));
  });

  it("of a pod that floods with reports are told five times a second, the last state among them", async () => {
    const clock = createFakeClock();
    registry = createProxyRegistry({ log: silentLogger(), clock });
    registry.connected(POD, registration(), proxy);
    const told: unknown[] = [];
    registry.onChange((pod) => told.push(registry.facts(pod)?.backlog.heldNamespaces));
    for (let number = 1; number <= 1_000; number++) {
      registry.reported(POD, proxy, { backlog: { heldNamespaces: number, drainingWrites: 0 } });
      await clock.advance(2);
    }
    await clock.advance(1_000);
    expect(told).toHaveLength(11);
    expect(told.at(-1)).toBe(1_000);
    expect(clock.pending).toBe(0);
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
  const takes = (acknowledged?: Snapshot) => registered(acknowledged, { capabilities: CAPABILITIES });

  it("is sent the whole while it is not certain what it enforces, and the difference to that from then on", () => {
    registry.connected(POD, takes(), proxy);
    publish(POD, first);
    publish(POD, second);
    acked(POD, proxy, 1);
    expect(proxy.deltas).toEqual(["", "digest-1"]);
    expect(registry.facts(POD)).toMatchObject({ acknowledged: { version: 1 }, outstanding: { version: 2, table: second.table } });
    acked(POD, proxy, 2);
    expect(registry.facts(POD)?.acknowledged).toMatchObject({ version: 2, table: second.table });
    const doubtful = stream();
    const unsure = { ...takes(second), route: { ...takes(second).route, inDoubt: [first] } };
    registry.connected(POD, unsure, doubtful);
    publish(POD, { ...version(3), table: wide(["b"]) });
    expect(doubtful.deltas).toEqual([""]);
  });
  it("is sent the whole if it does not enforce the base, and that is no refusal", () => {
    registry.connected(POD, takes(first), proxy);
    publish(POD, second);
    nacked(POD, proxy, 1, [], true);
    expect(proxy.deltas).toEqual(["digest-1", ""]);
    expect(registry.facts(POD)).toMatchObject({ problems: {}, outstanding: { version: 2 } });
    nacked(POD, proxy, 2, ["no"], true);
    expect(proxy.sent).toHaveLength(2); // of the whole that is nonsense, and not asked for without end
    expect(registry.facts(POD)).toMatchObject({ problems: { routes: ["no"] } });
  });
  it("is sent the whole if it is another app's or another subset's, or if it did not say that it takes deltas", () => {
    for (const [said, wanted] of [
      [takes(first), { ...second, subset: "canary" }],
      [takes(first), { ...second, app: { namespace: "shop", name: "other" } }],
      [registration(first), second],
    ] as const) {
      const opened = stream();
      registry.connected(POD, said, opened);
      publish(POD, wanted);
      expect(opened.deltas).toEqual([""]);
    }
  });
});

describe("streams of one pod", () => {
  const numbered = (number: number, acknowledged?: Snapshot) => registered(acknowledged, { streamNumber: number });

  it("are counted by the proxy: a registration that comes late changes nothing, and its stream is ended", () => {
    registry.connected(POD, numbered(5, version(2)), proxy);
    const late = stream();
    registry.connected(POD, numbered(4, version(1)), late);
    expect([proxy.ended.length, late.ended.length]).toEqual([0, 1]);
    expect(registry.facts(POD)).toMatchObject({ connected: true, acknowledged: { version: 2 } });
    registry.disconnected(POD, proxy);
    registry.connected(POD, numbered(3, version(1)), stream());
    expect(registry.facts(POD)).toMatchObject({ connected: false, acknowledged: { version: 2 } });
    registry.connected(POD, numbered(6, version(1)), stream());
    expect(registry.facts(POD)).toMatchObject({ connected: true, acknowledged: { version: 1 } });
  });
  it("begin anew with a pod that was made anew: nothing is left of the other one", () => {
    registry.connected(POD, numbered(5, version(9)), proxy);
    registry.reported(POD, proxy, { leader: true });
    registry.reported(POD, proxy, { backlog: { heldNamespaces: 3, drainingWrites: 2 } });
    const other = stream();
    registry.connected(POD, registered(undefined, { uid: "uid-2", streamNumber: 1 }), other);
    expect(proxy.ended).toEqual(["the pod has been made anew"]);
    expect(registry.facts(POD)).toMatchObject({
      connected: true,
      acknowledged: undefined,
      version: 0,
      backlog: { heldNamespaces: 0, drainingWrites: 0 },
    });
    acked(POD, proxy, 1);
    expect(registry.facts(POD)).toMatchObject({ acknowledged: undefined });
  });
});

describe("late and foreign messages", () => {
  it("of an older stream change nothing", () => {
    registry.connected(POD, registration(), proxy);
    publish(POD, version(1));
    const newer = stream();
    registry.connected(POD, registration(), newer);
    acked(POD, proxy, 1);
    registry.disconnected(POD, proxy);
    expect(registry.facts(POD)).toMatchObject({ connected: true, acknowledged: undefined });
  });
  it("an ACK of another nonce does not settle the outstanding snapshot", () => {
    registry.connected(POD, registration(), proxy);
    publish(POD, version(1));
    acked(POD, proxy, 99);
    expect(registry.facts(POD)?.acknowledged).toBeUndefined();
  });
});

describe("the time until a route is acknowledged", () => {
  const clock = createFakeClock();
  let seconds: number[];
  beforeEach(() => {
    seconds = [];
    registry = createProxyRegistry({ log: silentLogger(), clock, onRouteAcked: (time) => void seconds.push(time) });
    registry.connected(POD, registration(), proxy);
    publish(POD, version(1));
  });
  const nonceOf = (at: number) => proxy.sent[at]?.[1] ?? 0;

  it("counts from the last update that was sent to the pod, and once", async () => {
    await clock.advance(100);
    nacked(POD, proxy, nonceOf(0), ["no"]);
    publish(POD, version(2));
    await clock.advance(50);
    acked(POD, proxy, nonceOf(1));
    acked(POD, proxy, nonceOf(1));
    expect(proxy.sent).toHaveLength(2);
    expect(seconds).toEqual([0.05]);
  });
  it("is none for a refusal", () => {
    nacked(POD, proxy, nonceOf(0), ["no"]);
    acked(POD, proxy, nonceOf(0));
    expect(seconds).toEqual([]);
  });
});
