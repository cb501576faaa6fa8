// How a proxy finds the leading replica, with replicas by script and fake time.
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { MeshError } from "../../base/errors.ts";
import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import type { ProxyMessage, RegistrationMessage, UpdateMessage } from "../../mesh/contract/messages.ts";
import { createPlainAccess, type ManagerAccess } from "../identity/manager-access.ts";
import { KEEPALIVE, type ManagerChannel } from "../identity/manager-channel.ts";
import { createMeshClient } from "./mesh-client.ts";
import type { MeshStream, MeshStreamOptions } from "./mesh-stream.ts";
import { createSessionMetrics } from "./session-metrics.ts";

/** What is at an endpoint. */
type Place =
  /** A replica that leads. */
  | "leads"
  /** A replica that does not accept the token. */
  | "refuses"
  /** A replica that has no app for the pod. */
  | "turns away"
  /** It refuses connections. */
  | "gone"
  /** It does not answer the handshake. */
  | "stopped"
  /** It answers the handshake, but not the registration. */
  | "mute"
  /** A replica that does not know the leader. */
  | "none leads"
  /** A leader that ends each stream after the registration. */
  | "fails"
  /** The endpoint is not a valid address. */
  | "no address"
  /** A replica that redirects to this endpoint. */
  | { readonly to: string };

const registration: RegistrationMessage = {
  pod: { namespace: "shop", name: "shop-0", uid: "" },
  proxyVersion: "1.2.3",
  capabilities: ["type:routes"],
  streamNumber: 1,
  epoch: 0,
  route: null,
};

interface FakeChannel {
  readonly endpoint: string;
  at(): Place;
  close(): void;
}

/** @param replicaOf the replica that a connection to the endpoint reaches; default: the endpoint itself */
function setup(places: Record<string, Place>, random = () => 0.999, replicaOf = (endpoint: string) => endpoint) {
  const clock = createFakeClock();
  const tries: string[] = [];
  /** The versions of the received snapshots. */
  const taken: number[] = [];
  const sent: ProxyMessage[] = [];
  const proxySide = { registration, canPromise: true };
  /** How the manager is trusted; an error if a file of the identity is missing. */
  const identity: { access: ManagerAccess } = { access: createPlainAccess() };
  const open: { readonly options: MeshStreamOptions; readonly stream: MeshStream; readonly isServed: boolean }[] = [];
  const channels = new Set<FakeChannel>();
  // A connection to the service reaches one replica, which is chosen when the connection is opened.
  const connect = (endpoint: string): ManagerChannel => {
    const replica = replicaOf(endpoint);
    if (places[replica] === "no address") throw new Error("invalid target");
    const channel: FakeChannel = { endpoint, at: () => places[replica] ?? "gone", close: () => void channels.delete(channel) };
    channels.add(channel);
    return channel as unknown as ManagerChannel;
  };
  const openStream = (options: MeshStreamOptions): MeshStream => {
    const { endpoint, at } = options.channel as unknown as FakeChannel;
    tries.push(endpoint);
    const { promise: ended, resolve } = Promise.withResolvers<Error | undefined>();
    const stream: MeshStream = { send: (message) => void sent.push(message), close: resolve, ended };
    const place = at();
    const entry = { options, stream, isServed: place === "leads" };
    open.push(entry);
    void ended.then(() => open.splice(open.indexOf(entry), 1));
    queueMicrotask(() => {
      if (place === "gone") return resolve(new Error("refused"));
      if (place === "stopped") return;
      options.onReachable();
      if (place === "mute") return;
      if (place === "refuses") return resolve(Object.assign(new Error("16 UNAUTHENTICATED: who?"), { code: 16 }));
      if (place === "turns away") return resolve(Object.assign(new Error("7 PERMISSION_DENIED: no app"), { code: 7 }));
      if (place === "none leads") return resolve(new Error("no replica leads yet"));
      options.onConnected();
      if (place === "fails") return resolve(new Error("RESOURCE_EXHAUSTED: larger than max"));
      if (typeof place === "object") options.onMessage({ redirect: { endpoint: place.to } });
    });
    return stream;
  };
  const stop = new AbortController();
  const client = createMeshClient({
    manager: "service",
    access: { pass: () => identity.access.pass() },
    handlers: { routes: { capabilities: [], take: ({ resource }) => void taken.push(resource?.version ?? 0) } },
    reports: () => [],
    registration: async () => ({ registration: proxySide.registration, tablesFor: () => [] }),
    promise: async () => proxySide.canPromise,
    metrics: createSessionMetrics(new Registry()),
    clock,
    random,
    log: silentLogger(),
    network: { connect, open: openStream },
  });
  void client.run(stop.signal);
  /** Milliseconds until the proxy is served; undefined if it is not within the time. */
  const servedAfter = async (withinMs: number) => {
    const startMs = clock.monotonicMs();
    while (clock.monotonicMs() - startMs <= withinMs) {
      if (open.some(({ isServed }) => isServed)) return clock.monotonicMs() - startMs;
      await clock.advance(50);
    }
    return undefined;
  };
  return { client, identity, clock, tries, taken, sent, proxySide, open, channels, places, stop, servedAfter };
}

it("follows a redirect at once", async () => {
  const { clock, tries, open } = setup({ service: { to: "leader" }, leader: "leads" });
  await clock.flush();
  expect([tries, open.length]).toEqual([["service", "leader"], 1]);
});

it("goes back to the service, with growing delays, if replicas redirect to each other", async () => {
  const { clock, tries } = setup({ service: { to: "a" }, a: { to: "b" }, b: { to: "a" } });
  await clock.advance(30_000);
  expect(tries.slice(0, 6)).toEqual(["service", "a", "b", "service", "a", "b"]);
  expect(tries.length).toBeLessThan(80);
});

it("goes back to the service when a leader is gone, and follows no redirect to that leader for 10 s", async () => {
  const { clock, tries, places } = setup({ service: { to: "old" }, old: "gone" });
  await clock.advance(9_000);
  expect(tries.filter((endpoint) => endpoint === "old")).toHaveLength(1);
  expect(tries.length).toBeGreaterThan(6);
  places.old = "leads"; // it was only cut off, and still leads
  const seen = tries.length;
  await clock.advance(4_000);
  expect(tries.slice(seen)).toContain("old");
});

it("gives a stopped process 1 s to answer the handshake, and a busy one 10 s to answer the registration", async () => {
  for (const [place, ms] of [
    ["stopped", 1_000],
    ["mute", 10_000],
  ] as const) {
    const { clock, tries } = setup({ service: place });
    await clock.advance(ms - 1);
    expect(tries).toHaveLength(1);
    await clock.advance(250);
    expect(tries).toHaveLength(2);
    // Twice as long the next time: the replica may be busy with proxies that gave up.
    await clock.advance(2 * ms - 500);
    expect(tries).toHaveLength(2);
    await clock.advance(1_000);
    expect(tries).toHaveLength(3);
  }
});

it("is served within 3 s of a new leader, however long there was none", async () => {
  for (const waitMs of [0, 400, 5_000, 60_000, 60_777, 3_600_000]) {
    const { clock, places, servedAfter } = setup({ service: "none leads", next: "leads" });
    await clock.advance(waitMs);
    places.service = { to: "next" };
    expect(await servedAfter(60_000)).toBeLessThanOrEqual(3_000);
  }
});

it("is served within 20 s (98 % of runs; all within 30 s) after a leader stops without a word, with the default lease times", async () => {
  // The service chooses one of three replicas at random, also the stopped one. The leader's lease expires
  // after 15 s, and another replica takes the lease within its retry period. The proxy notices by keepalive,
  // after 10 s at the latest, that the leader is gone.
  const ELECTED_MS = 17_000;
  const late: number[] = [];
  for (let seed = 1; seed <= 300; seed++) {
    const random = chance(seed);
    const toAny = (endpoint: string) =>
      endpoint === "service" ? (["old", "next", "third"][Math.floor(random() * 3)] ?? "") : endpoint;
    const all: Record<string, Place> = { old: "leads", next: { to: "old" }, third: { to: "old" } };
    const { clock, open, places, servedAfter } = setup(all, random, toAny);
    await servedAfter(60_000);
    places.old = "stopped";
    await clock.advance(KEEPALIVE.everyMs + KEEPALIVE.timeoutMs);
    for (const { stream } of [...open]) stream.close(new Error("keepalive"));
    await clock.advance(ELECTED_MS - KEEPALIVE.everyMs - KEEPALIVE.timeoutMs);
    Object.assign(places, { next: "leads", third: { to: "next" } });
    late.push(ELECTED_MS + ((await servedAfter(60_000)) ?? Number.POSITIVE_INFINITY));
  }
  late.sort((a, b) => a - b);
  // In the other runs the service kept choosing the stopped replica.
  expect(late.filter((ms) => ms <= 20_000).length).toBeGreaterThanOrEqual(late.length * 0.98);
  expect(late.at(-1)).toBeLessThan(30_000);
});

/**
 * Numbers in [0, 1) from a seed: the first bytes of SHA-256 in counter mode, because successive draws must be
 * independent.
 */
function chance(seed: number): () => number {
  let count = 0;
  return () => createHash("sha256").update(`${seed}/${count++}`).digest().readUInt32BE() / 2 ** 32;
}

it("comes back after a random delay of up to 1 s when its leader goes, so that a thousand proxies do not come at once", async () => {
  for (const share of [0, 0.5, 0.99]) {
    let draw = 0;
    const { clock, tries, open, places } = setup({ service: "leads" }, () => draw);
    await clock.flush();
    draw = share;
    places.service = "gone";
    open[0]?.stream.close(new Error("reset"));
    await clock.flush();
    await clock.advance(Math.max(0, share * 1_000 - 1));
    expect(tries.length).toBe(share === 0 ? 2 : 1);
    await clock.advance(2);
    expect(tries.length).toBe(2);
  }
});

it("stops at once, in every state", async () => {
  for (const place of ["stopped", "mute", "gone", "leads"] as const) {
    const { clock, tries, stop, open } = setup({ service: place });
    await clock.flush();
    stop.abort();
    await clock.flush();
    const seen = tries.length;
    await clock.advance(60_000);
    expect([tries.length, open.length, clock.pending]).toEqual([seen, 0, 0]);
  }
});

it("holds one connection while it is served, and reuses the connection to a replica that does not know the leader yet", async () => {
  const { clock, channels, places } = setup({ service: "none leads", leader: "leads" });
  await clock.advance(1_000);
  const [first] = channels;
  await clock.advance(5_000);
  expect([...channels]).toEqual([first]);
  await clock.advance(20_000); // a replica that does not learn who leads may be cut off, so after 20 s the proxy opens another connection
  expect([...channels]).not.toEqual([first]);
  places.service = { to: "leader" };
  await clock.advance(3_000);
  expect([...channels].map(({ endpoint }) => endpoint)).toEqual(["leader"]);
});

it("continues after a redirect to an endpoint that is no valid address", async () => {
  const { clock, tries, places, servedAfter } = setup({ service: { to: "nonsense" }, nonsense: "no address", leader: "leads" });
  await clock.advance(10_000);
  expect(tries.length).toBeGreaterThan(5);
  places.service = { to: "leader" };
  expect(await servedAfter(3_000)).toBeLessThanOrEqual(3_000);
});

it("treats a redirect to an empty endpoint as an ordinary failure", async () => {
  const { clock, tries, places, servedAfter } = setup({ service: { to: "" }, "": "no address", leader: "leads" });
  await clock.advance(30_000);
  expect(new Set(tries)).toEqual(new Set(["service"]));
  expect(tries.length).toBeLessThan(40);
  places.service = { to: "leader" };
  expect(await servedAfter(30_000)).toBeLessThanOrEqual(30_000);
});

it("retries with growing delays if a leader accepts the registration and then ends each stream", async () => {
  const { clock, tries, open, places } = setup({ service: "fails" }, () => 0.5);
  await clock.advance(60_000);
  expect(tries.length).toBeLessThan(12);
  // After a stream has brought an update, the delay is short again.
  places.service = "leads";
  await clock.advance(20_000);
  open[0]?.options.onMessage({ welcome: { epoch: 8, wantedTables: [], types: [] } });
  await clock.flush();
  open[0]?.options.onMessage(updateOf(1));
  open[0]?.stream.close(new Error("reset"));
  await clock.flush();
  const seen = tries.length;
  await clock.advance(1_000);
  expect(tries.length).toBe(seen + 1);
});

it("takes updates only of a replica that has its promise, given on this very stream", async () => {
  const { clock, taken, proxySide, open } = setup({ service: "leads" });
  await clock.advance(2_000);
  open[0]?.options.onMessage(updateOf(1)); // the replica has not asked for the promise
  expect(taken).toEqual([]);
  open[0]?.options.onMessage({ welcome: { epoch: 8, wantedTables: [], types: [] } });
  open[0]?.options.onMessage(updateOf(2)); // the promise is not stored yet
  await clock.flush();
  open[0]?.options.onMessage(updateOf(3));
  expect(taken).toEqual([3]);
  proxySide.canPromise = false;
  open[0]?.options.onMessage({ welcome: { epoch: 7, wantedTables: [], types: [] } });
  open[0]?.options.onMessage(updateOf(4));
  expect(taken).toEqual([3]);
});

it("counts how long there has been no manager from the last leader that it followed: a redirect or a failing leader is none", async () => {
  const { client, clock, open, places } = setup({ service: "leads" });
  await clock.advance(10_000);
  expect(client.managerAwayMs).toBe(Number.POSITIVE_INFINITY);
  open[0]?.options.onMessage({ welcome: { epoch: 8, wantedTables: [], types: [] } });
  await clock.flush();
  await clock.advance(90_000);
  expect(client.managerAwayMs).toBe(0);
  Object.assign(places, { service: { to: "leader" }, leader: "fails" });
  open[0]?.stream.close(new Error("gone"));
  await clock.advance(90_000);
  expect(client.managerAwayMs).toBe(90_000);
});

it("rejects an update of an unknown resource type, and names the type and its own version", async () => {
  const { clock, taken, sent, open } = setup({ service: "leads" });
  await clock.flush();
  open[0]?.options.onMessage({ welcome: { epoch: 8, wantedTables: [], types: [] } });
  await clock.flush();
  for (const type of ["policy", "toString"]) open[0]?.options.onMessage(updateOf(5, type));
  expect(sent.slice(1)).toEqual(
    ["policy", "toString"].map((type) => ({
      nack: {
        type,
        nonce: 5,
        version: 5,
        needsWhole: false,
        problems: [`resource type "${type}" is not known to this proxy (version 1.2.3)`],
      },
    })),
  );
  expect(taken).toEqual([]);
});

it("retries with growing delays, up to a minute, if the manager does not accept its token, and reports the manager's message", async () => {
  const { client, clock, tries, places, servedAfter } = setup({ service: "refuses" });
  await clock.advance(10_000);
  expect(tries.length).toBeLessThanOrEqual(5);
  expect(client.trouble).toBe("the manager at service refuses this pod: 16 UNAUTHENTICATED: who?");
  await clock.advance(600_000);
  expect(tries.length).toBeLessThanOrEqual(16);
  places.service = "leads";
  expect(await servedAfter(61_000)).toBeDefined();
  expect(client.trouble).toBeUndefined();
});

it("is served soon after there is a VirtualApp, however long there was none", async () => {
  const { client, clock, tries, places, servedAfter } = setup({ service: "turns away" });
  await clock.advance(600_000);
  const before = tries.length;
  await clock.advance(30_000);
  expect(tries.length - before).toBeGreaterThanOrEqual(5);
  expect(client.trouble).toBe("the manager at service refuses this pod: 7 PERMISSION_DENIED: no app");
  places.service = "leads";
  expect(await servedAfter(5_000)).toBeDefined();
});

it("does not connect without the token, and does soon after it is there", async () => {
  const { client, identity, clock, tries, places, servedAfter } = setup({ service: "gone" });
  const missing = new MeshError("TOKEN_UNREADABLE", "reading this pod's token from /token: there is no such file");
  const good = identity.access;
  identity.access = { pass: () => Promise.reject(missing) };
  await clock.advance(60_000);
  expect([tries.length, client.trouble]).toEqual([1, missing.message]); // the first was under way
  identity.access = good;
  places.service = "leads";
  expect(await servedAfter(2_100)).toBeDefined();
});

it("opens another connection when the trusted CAs change, because gRPC would reconnect with the old CAs", async () => {
  const { identity, clock, channels } = setup({ service: "none leads" });
  await clock.advance(3_000);
  const [first] = channels;
  identity.access = createPlainAccess();
  await clock.advance(3_000);
  expect(channels.size).toBe(1);
  expect([...channels]).not.toEqual([first]);
});

it("has followed a leader until that named another one", async () => {
  const { client, clock, open, places } = setup({ service: "leads" });
  await clock.advance(10_000);
  open[0]?.options.onMessage({ welcome: { epoch: 8, wantedTables: [], types: [] } });
  await clock.advance(90_000);
  expect(client.managerAwayMs).toBe(0);
  Object.assign(places, { service: "gone", leader: "gone" });
  open[0]?.options.onMessage({ redirect: { endpoint: "leader" } });
  await clock.advance(5_000);
  expect(client.managerAwayMs).toBe(5_000);
});

function updateOf(version: number, type = "routes"): { readonly update: UpdateMessage } {
  return { update: { nonce: version, resource: { type, version, digest: "d", body: Buffer.alloc(0) }, baseDigest: "" } };
}
