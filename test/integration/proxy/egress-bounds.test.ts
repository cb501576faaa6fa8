// The bounds of the forward proxy, in this process and with short times, and what it connects to when a name has several addresses.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { createListener, type Listener } from "../../../src/base/listener.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createAddressCheck, parseCidr } from "../../../src/proxy/egress/address-check.ts";
import { createEgress, type EgressDeps, type EgressServer } from "../../../src/proxy/egress/create-egress.ts";
import { createDial, type DialOptions } from "../../../src/proxy/egress/dial.ts";
import { EgressError } from "../../../src/proxy/egress/egress-error.ts";
import { HELLO } from "../../support/client-hello.ts";
import { eventually } from "../../support/eventually.ts";
import { limitRule } from "../../support/policies.ts";
import { runningPolicies } from "../../support/running-policies.ts";

let stops: (() => Promise<unknown>)[] = [];
/** Accepts connections, reads, and says nothing. */
let silent: { port: number; sockets: Socket[] };

beforeEach(async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.resume().on("error", () => undefined)));
  const listener: Listener = createListener(server, "connection");
  silent = { port: (await listener.listen({ host: "127.0.0.1", port: 0 })).port, sockets };
  stops = [() => listener.close()];
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
});

const check = createAddressCheck(["127.0.0.1/32", "127.0.0.2/32"].flatMap((range) => parseCidr(range) ?? []));
const dialOf = (options: Partial<DialOptions> = {}) => createDial({ check, clock: systemClock, ...options });

async function start(
  options: Partial<EgressDeps>,
  drainMs = 0,
): Promise<{ server: EgressServer; metric: (line: string) => Promise<boolean> }> {
  const { policies, registry, session } = runningPolicies();
  const settings = { egressListen: { host: "127.0.0.1", port: 0 }, egressPrivateAddresses: [], drainMs };
  const server = createEgress(settings, {
    clock: systemClock,
    random: Math.random,
    log: silentLogger(),
    policies,
    session,
    dial: dialOf(),
    registry,
    accessLog: { pick: () => undefined },
    ...options,
  });
  if (server === undefined) throw new Error("no forward proxy");
  await server.start(new AbortController().signal);
  stops.push(() => server.stop());
  return { server, metric: async (line) => (await registry.metrics()).includes(`ctrlmesh_proxy_egress_${line}\n`) };
}

/** A connection that has sent this, and all that has come back so far. */
async function sent({ port }: EgressServer, text: string): Promise<{ socket: Socket; seen: () => string }> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => undefined);
  stops.push(async () => socket.destroy());
  let all = "";
  socket.on("data", (chunk) => {
    all += chunk.toString("latin1");
  });
  await once(socket, "connect");
  socket.write(text);
  return { socket, seen: () => all };
}

const tunnelTo = (port: number) => `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`;
const getFrom = (port: number) => `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
const EVERY_URL = { resources: [], urls: [{ url: "http://*", methods: ["*"] }], http: [] };

describe("the forward proxy", () => {
  it("closes a tunnel whose client says nothing", async () => {
    const { server, metric } = await start({ times: { helloMs: 50 } });
    const { socket, seen } = await sent(server, tunnelTo(silent.port));
    await once(socket, "close");
    expect(seen()).toMatch(/^HTTP\/1\.1 200 /);
    await eventually(async () =>
      expect([await metric('total{cluster="",result="no-tls"} 1'), await metric('open{cluster=""} 0')]).toEqual([true, true]),
    );
    await eventually(() => expect(silent.sockets.map(({ destroyed }) => destroyed)).toEqual([true]));
  });

  it("does not count a client that leaves before its first message as one without TLS", async () => {
    const { server, metric } = await start({});
    const { socket, seen } = await sent(server, tunnelTo(silent.port));
    await eventually(() => expect(seen()).toMatch(/^HTTP\/1\.1 200 /));
    socket.end();
    await eventually(async () =>
      expect([await metric('total{cluster="",result="client-gone"} 1'), await metric('open{cluster=""} 0')]).toEqual([
        true,
        true,
      ]),
    );
  });

  it("closes a tunnel without a byte, on both sides", async () => {
    const { server, metric } = await start({ times: { idleMs: 50 } });
    const { socket } = await sent(server, tunnelTo(silent.port));
    await eventually(() => silent.sockets.length === 1);
    socket.write(HELLO);
    await once(socket, "close");
    await eventually(() => expect(silent.sockets.map(({ destroyed }) => destroyed)).toEqual([true]));
    expect(await metric('total{cluster="",result="allowed"} 1')).toBe(true);
  });

  it("answers a 504 for a server that says nothing", async () => {
    const { server } = await start({ times: { answerMs: 50 } });
    const { socket, seen } = await sent(server, getFrom(silent.port));
    await once(socket, "close");
    expect(seen()).toMatch(/^HTTP\/1\.1 504 .*has sent nothing for 0\.05 s[\s\S]*EGRESS_TIMEOUT/);
  });

  it("answers a 502 for a server that closes without an answer", async () => {
    const { server } = await start({});
    const { socket, seen } = await sent(server, getFrom(silent.port));
    await eventually(() => silent.sockets.length === 1);
    silent.sockets[0]?.end();
    await once(socket, "close");
    expect(seen()).toMatch(/^HTTP\/1\.1 502 /);
  });

  it.each([
    ["200 O\x01K", /^HTTP\/1\.1 502 .*has sent an invalid answer/],
    ["099 OK", /^HTTP\/1\.1 502 .*has sent an invalid answer/],
    ["200 \xe9", /^HTTP\/1\.1 200 \xe9\r\n/],
  ])("answers for a server whose status line is %j", async (line, expected) => {
    const { server } = await start({});
    const { socket, seen } = await sent(server, getFrom(silent.port));
    await eventually(() => silent.sockets.length === 1);
    silent.sockets[0]?.end(Buffer.from(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\n\r\n`, "latin1"));
    await eventually(() => expect(seen()).toMatch(expected));
    socket.destroy();
  });

  it("does not blame a server for a client that leaves before the answer", async () => {
    const trigger = { consecutive: 1, minimumRequests: 1, windowMs: 60_000 };
    const limits = [limitRule({ kind: "breaker", trigger, sleepMs: 60_000 }, { match: EVERY_URL })];
    const { policies } = runningPolicies({ limits });
    const { server, metric } = await start({ policies });
    const { socket } = await sent(server, getFrom(silent.port));
    await eventually(() => expect(silent.sockets).toHaveLength(1));
    socket.destroy();
    await eventually(async () => expect(await metric('open{cluster=""} 0')).toBe(true));
    expect(policies.openBreakers).toEqual([]);
  });

  it("outlives a CONNECT that comes while answers before it are awaited", async () => {
    const { server, metric } = await start({ maxOpen: 5 });
    const { socket, seen } = await sent(server, getFrom(silent.port) + getFrom(silent.port) + tunnelTo(silent.port));
    await new Promise((resolve) => socket.once("close", resolve));
    await eventually(async () => expect(await metric('open{cluster=""} 0')).toBe(true));
    expect(seen()).toBe("");
    expect(await metric('total{cluster="",result="bad-request"} 1')).toBe(true);
  });

  it.each(["gzip, chunked", "chunked, gzip"])(
    "refuses a body with Transfer-Encoding %s, which would lose its coding",
    async (coding) => {
      const { server } = await start({});
      const { socket, seen } = await sent(
        server,
        `POST http://127.0.0.1:${silent.port}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`,
      );
      await new Promise((resolve) => socket.once("close", resolve));
      expect(seen()).toMatch(/^HTTP\/1\.1 400 /);
    },
  );

  it("answers a 503 beyond its bound, and serves again when a place is free", async () => {
    const { server, metric } = await start({ maxOpen: 1 });
    const first = await sent(server, getFrom(silent.port));
    await eventually(() => expect(silent.sockets).toHaveLength(1));
    for (const text of [getFrom(silent.port), tunnelTo(silent.port)]) {
      const { socket, seen } = await sent(server, text);
      await once(socket, "close");
      expect(seen()).toMatch(/^HTTP\/1\.1 503 .*all 1 places are taken/);
    }
    first.socket.destroy();
    await eventually(async () => expect(await metric('open{cluster=""} 0')).toBe(true));
    const next = await sent(server, tunnelTo(silent.port));
    await eventually(() => expect(next.seen()).toMatch(/^HTTP\/1\.1 200 /));
  });
});

describe("the end of the forward proxy", () => {
  it("cuts a tunnel once its server has answered, and waits for no other end of it", async () => {
    const { server, metric } = await start({}, 3_600_000);
    const { socket, seen } = await sent(server, tunnelTo(silent.port));
    await eventually(() => silent.sockets.length === 1);
    socket.write(HELLO);
    await eventually(async () => expect(await metric('total{cluster="",result="allowed"} 1')).toBe(true));
    let isOver = false;
    const stopped = server.stop().then(() => {
      isOver = true;
    });
    // It is asking: the last bytes are the client's. A whole second would be enough for a quiet one.
    await sleep(systemClock, 1_500);
    expect(isOver).toBe(false);
    silent.sockets[0]?.write("answer");
    await stopped;
    expect(seen()).toMatch(/answer$/);
  });
});

describe("dialing", () => {
  const host = "a.example";
  const never = new AbortController().signal;
  const addresses = (...all: string[]) => all.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  const open = async (options: Partial<DialOptions>, signal = never) => {
    const socket = await dialOf(options).plain({ scheme: "https", host, port: silent.port }, signal);
    stops.push(async () => socket.destroy());
    return socket;
  };

  it("resolves a name once, and connects to the address that it has checked", async () => {
    const answers = [addresses("127.0.0.1"), addresses("169.254.169.254")];
    let asked = 0;
    const socket = await open({ resolve: async () => answers[asked++] ?? [] });
    expect([asked, socket.remoteAddress]).toEqual([1, "127.0.0.1"]);
  });

  it("leaves out the refused addresses of a name, and tries all others", async () => {
    // Nobody listens on 127.0.0.2.
    const all = addresses("169.254.169.254", "127.0.0.2", "127.0.0.3", "127.0.0.1");
    expect((await open({ resolve: async () => all })).remoteAddress).toBe("127.0.0.1");
    const refused = open({ resolve: async () => addresses("169.254.169.254", "127.0.0.3") });
    await expect(refused).rejects.toMatchObject({
      result: "address-refused",
      message: expect.stringContaining("169.254.169.254 is link-local"),
    });
  });

  it("leaves out the addresses that a rule refuses, and says so if none is left (D16)", async () => {
    const refuse =
      (...refused: string[]) =>
      (all: readonly string[]) =>
        all.map((address) =>
          refused.includes(address) ? new EgressError("denied", "its rule", { rule: "guard/deny" }) : undefined,
        );
    const resolve = async () => addresses("127.0.0.2", "127.0.0.1");
    const dial = dialOf({ resolve });
    const server = { scheme: "http", host: "a.example", port: silent.port } as const;
    const { signal } = new AbortController();
    const socket = await dial.plain(server, signal, refuse("127.0.0.2"));
    stops.push(async () => socket.destroy());
    expect(socket.remoteAddress).toBe("127.0.0.1");
    await expect(dial.plain(server, signal, refuse("127.0.0.2", "127.0.0.1"))).rejects.toMatchObject({ result: "denied" });
    const literal = { ...server, host: "127.0.0.1" };
    await expect(dial.connect(literal, signal, refuse("127.0.0.1"))).rejects.toMatchObject({ result: "denied" });
  });

  it.each<[string, NonNullable<DialOptions["resolve"]>, string]>([
    ["no address", async () => [], "unreachable"],
    ["an address where nobody listens", async () => addresses("127.0.0.2"), "unreachable"],
    ["no answer in time", () => new Promise(() => undefined), "timeout"],
  ])("fails for a name with %s", async (_, resolve, result) => {
    await expect(open({ resolve, timeoutMs: 200 })).rejects.toMatchObject({ result });
  });

  it("ends when the client leaves", async () => {
    const leaving = new AbortController();
    const attempt = open({ resolve: () => new Promise(() => undefined) }, leaving.signal);
    leaving.abort(new Error("gone"));
    await expect(attempt).rejects.toThrow("gone");
  });
});
