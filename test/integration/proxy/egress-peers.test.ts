// The forward proxy and the peers on both sides: addresses that it refuses, clients and servers that are slow, that break off or send nonsense, and
// the end of the process. Each test ends with nothing left open in the proxy.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type EgressWorld, startEgressWorld } from "../../support/egress-world.ts";
import { eventually } from "../../support/eventually.ts";
import { egressRule, limitRule } from "../../support/policies.ts";

let world: EgressWorld;
let strict: EgressWorld;
let sockets: Socket[] = [];

beforeAll(async () => {
  [world, strict] = await Promise.all([startEgressWorld(), startEgressWorld({ privateAddresses: "" })]);
});
afterAll(() => Promise.all([world?.stop(), strict?.stop()]));
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await eventually(async () => expect(await world.open()).toBe(0));
});

/** A connection to the forward proxy that has sent this. */
async function sent(text: string, to: EgressWorld = world): Promise<Socket> {
  const socket = connect({ port: Number(new URL(to.url).port), host: "127.0.0.1" });
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

/** All bytes until the end of the connection. */
async function answerOf(text: string, to?: EgressWorld): Promise<string> {
  const socket = await sent(text, to);
  let all = "";
  socket.on("data", (chunk) => {
    all += chunk.toString("latin1");
  });
  await once(socket, "close");
  return all;
}

const connectLine = (host: string) => `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const getLine = (url: string, ...headers: string[]) =>
  `GET ${url} HTTP/1.1\r\n${[`Host: x`, "Connection: close", ...headers].join("\r\n")}\r\n\r\n`;
const httpUrl = (path = "/") => `http://127.0.0.1:${world.http.port}${path}`;

/** A TLS connection through a tunnel to the server. */
async function tunnel(): Promise<Socket> {
  const raw = await sent(connectLine(`localhost:${world.https.port}`));
  const [head] = await once(raw, "data");
  expect(String(head)).toMatch(/^HTTP\/1\.1 200 /);
  const secured = connectTls({ socket: raw, servername: "localhost", rejectUnauthorized: false });
  secured.on("error", () => undefined);
  await once(secured, "secureConnect");
  return secured;
}

describe("addresses", () => {
  const METADATA = ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "100.100.100.200", "0xa9fea9fe"];
  it.each(METADATA)("%s is refused whatever is allowed", async (host) => {
    await world.enforce({});
    const before = await world.counted("address-refused");
    expect(await answerOf(connectLine(`${host}:443`))).toMatch(
      /^HTTP\/1\.1 403 .*\r\n[\s\S]*EGRESS_ADDRESS_REFUSED[\s\S]*its address .* is /,
    );
    expect(await answerOf(getLine(`http://${host}/latest/meta-data`))).toMatch(/^HTTP\/1\.1 403 /);
    expect(await answerOf(getLine("/", `Mesh-Real-Endpoint: https://${host}/`))).toMatch(/^HTTP\/1\.1 403 /);
    expect(await world.counted("address-refused")).toBe(before + 3);
  });

  it.each(["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "10.1.2.3"])(
    "%s is refused unless it is listed",
    async (host) => {
      expect(await answerOf(getLine(`http://${host}:${strict.http.port}/`), strict)).toMatch(/^HTTP\/1\.1 403 .*its address/);
      expect(strict.http.requests).toEqual([]);
    },
  );

  it("the proxy itself listens on loopback only", async () => {
    const port = Number(new URL(world.url).port);
    const others = Object.values(networkInterfaces()).flatMap((all) =>
      (all ?? []).flatMap(({ address, internal }) => (internal ? [] : [address])),
    );
    for (const host of ["127.0.0.2", ...others.filter((address) => !address.startsWith("fe80"))]) {
      const socket = connect({ host, port });
      const [error] = await once(socket, "error");
      expect(error).toMatchObject({ code: "ECONNREFUSED" });
    }
  });
});

describe("requests", () => {
  it.each([
    [getLine("/healthz"), /^HTTP\/1\.1 400 .*forward proxy/],
    [getLine("ftp://a.example/"), /^HTTP\/1\.1 400 /],
    [getLine("http://127.0.0.1/a/../b"), /^HTTP\/1\.1 400 /],
    [connectLine("a.example"), /^HTTP\/1\.1 400 .*not host:port/],
    ["GET http://127.0.0.1/ HTTP/1.0\r\n\r\n", /^HTTP\/1\.1 400 .*HTTP\/1\.1/],
    [getLine("http://127.0.0.1/", "Connection: Upgrade", "Upgrade: websocket"), /^HTTP\/1\.1 501 .*WebSockets/],
    ["nonsense\r\n\r\n", /^HTTP\/1\.1 400 /],
    [getLine(`http://127.0.0.1/${"x".repeat(70_000)}`), /^HTTP\/1\.1 431 /],
    [connectLine("no-such-name.invalid:443"), /^HTTP\/1\.1 502 .*cannot be resolved/],
  ])("%#: get a clear answer", async (text, expected) => expect(await answerOf(text)).toMatch(expected));

  it("stream their body, with its length or in chunks", async () => {
    const { serve } = world.http;
    world.http.serve = (req, res) => {
      let bytes = 0;
      req.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      req.on("end", () => res.end(`${req.headers["content-length"] ?? req.headers["transfer-encoding"]} ${bytes}`));
    };
    const head = `DELETE ${httpUrl()} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`;
    expect(await answerOf(`${head}Content-Length: 5\r\n\r\nhello`)).toContain("5 5");
    expect(await answerOf(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`)).toContain("chunked 5");
    world.http.serve = serve;
  });

  it("get an answer that comes before the end of their body", async () => {
    const { serve } = world.http;
    world.http.serve = (req, res) => {
      res.writeHead(413, { connection: "close" }).end("too large");
      res.once("finish", () => req.socket.destroySoon());
    };
    const socket = await sent(`POST ${httpUrl()} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhello`);
    const [answer] = await once(socket, "data");
    world.http.serve = serve;
    expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("leave no query, header or body in the log", async () => {
    await answerOf(getLine(httpUrl("/seen?token=secret-1"), "Authorization: Bearer secret-2"));
    await answerOf(getLine("/seen-too", `Mesh-Real-Endpoint: ${httpUrl("/x?token=secret-3")}`));
    const line = await eventually(
      () =>
        world.proxy
          .output()
          .split("\n")
          .find((each) => each.includes('"/seen"')) ?? false,
    );
    expect(JSON.parse(line)).toMatchObject({
      direction: "egress",
      method: "GET",
      host: "127.0.0.1",
      path: "/seen",
      code: 200,
      decision: "allowed",
    });
    expect(world.proxy.output()).not.toMatch(/secret-\d/);
  });

  it("are answered with a 503 before the first policies have come", async () => {
    const early = await startEgressWorld({ isReady: false });
    try {
      const expected = /^HTTP\/1\.1 503 [\s\S]*NOT_READY[\s\S]*retry-after: 1/;
      expect(await answerOf(connectLine("localhost:443"), early)).toMatch(expected);
      expect(await answerOf(getLine("http://localhost/"), early)).toMatch(expected);
    } finally {
      await early.stop();
    }
  });
});

describe("a TLS client that names no server", () => {
  const hello = async () => {
    const raw = await sent(connectLine(`localhost:${world.https.port}`));
    await once(raw, "data");
    const secured = connectTls({ socket: raw, servername: "", rejectUnauthorized: false });
    secured.on("error", () => undefined);
    return secured;
  };

  it("passes while everything is open, and is closed under an allow-list", async () => {
    await world.enforce({});
    await once(await hello(), "secureConnect");
    await world.enforce({ egress: [egressRule("Allow", [{ host: "localhost" }])] });
    const before = await world.counted("no-sni");
    await expect(once(await hello(), "secureConnect")).rejects.toThrow("disconnected before secure TLS connection");
    expect(await world.counted("no-sni")).toBe(before + 1);
    await world.enforce({});
  });
});

describe("slow peers", () => {
  const MOST = 512 * 1024 * 1024;
  /** Far above what the sockets' buffers hold, far below the whole. */
  const BUFFERED = 96 * 1024 * 1024;

  it.each(["http", "https"] as const)("a client that does not read stops the server (%s)", async (scheme) => {
    const origin = world[scheme];
    const { serve } = origin;
    let produced = 0;
    const closed = new Promise<void>((resolve) => {
      origin.serve = (_, res) => {
        const chunk = Buffer.alloc(1024 * 1024);
        const more = () => {
          while (produced < MOST && !res.destroyed) {
            produced += chunk.length;
            if (!res.write(chunk)) return void res.once("drain", more);
          }
        };
        res.once("close", () => resolve());
        more();
      };
    });
    const socket = scheme === "http" ? await sent(getLine(httpUrl())) : await tunnel();
    if (scheme === "https") socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "data");
    socket.pause();
    // It has come to a stop: a whole second without another chunk.
    let before = -1;
    await eventually(
      () => {
        const stopped = produced === before;
        before = produced;
        return stopped;
      },
      { withinMs: 30_000, everyMs: 1_000 },
    );
    expect(produced).toBeLessThan(BUFFERED);
    socket.destroy();
    await closed;
    origin.serve = serve;
  });
});

describe("peers that break off", () => {
  it.each(["http", "https"] as const)(
    "a reset of the server in the middle of an answer resets the client (%s)",
    async (scheme) => {
      const origin = world[scheme];
      const { serve } = origin;
      origin.serve = (_, res) => {
        res.writeHead(200, { "content-length": "1000" });
        res.write("begun");
        setTimeout(() => (scheme === "http" ? res.socket?.resetAndDestroy() : res.socket?.destroy()), 50);
      };
      const socket = scheme === "http" ? await sent(getLine(httpUrl())) : await tunnel();
      if (scheme === "https") socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const [answer] = await once(socket, "data");
      expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
      await once(socket, "close");
      origin.serve = serve;
    },
  );

  it.each(["http", "https"] as const)("a client that resets in the middle of an answer frees the server (%s)", async (scheme) => {
    const origin = world[scheme];
    const { serve } = origin;
    const closed = new Promise<void>((resolve) => {
      origin.serve = (_, res) => {
        res.write("begun");
        res.once("close", () => resolve());
      };
    });
    const socket = scheme === "http" ? await sent(getLine(httpUrl())) : await tunnel();
    if (scheme === "https") socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "data");
    for (const each of sockets) each.resetAndDestroy();
    await closed;
    origin.serve = serve;
  });

  it.each([connectLine("localhost:1"), getLine("http://localhost:1/")])(
    "a client that leaves while it waits is forgotten: %#",
    async (text) => {
      const { origin } = limitRule({ kind: "deny" });
      const match = { resources: [], urls: [], http: [{ headers: [] }] };
      await world.enforce({ faults: [{ origin, mode: "Enforce", match, delay: { ms: 30_000, percent: 100 } }] });
      const before = await world.counted("client-gone");
      const socket = await sent(text);
      await eventually(async () => expect(await world.open()).toBe(1));
      socket.resetAndDestroy();
      await eventually(async () => expect(await world.counted("client-gone")).toBe(before + 1));
      await world.enforce({});
    },
  );
});

describe("the end of the process", () => {
  it("takes no rule away: after a crash and without a manager the allow-list is in force", async () => {
    const other = await startEgressWorld();
    try {
      await other.enforce({ egress: [egressRule("Allow", [{ host: "a.example" }], { name: "list" })] });
      other.proxy.stopManager();
      await other.proxy.killAndRestart();
      const expected = /^HTTP\/1\.1 403 .*no rule allows it, as CircuitBreaker shop\/guard, rule "list" demands/;
      expect(await answerOf(getLine(`http://127.0.0.1:${other.http.port}/`), other)).toMatch(expected);
    } finally {
      await other.stop();
    }
  });

  it("waits for an answer", async () => {
    const ending = await startEgressWorld();
    ending.http.serve = (_, res) => void setTimeout(() => res.end("in time"), 1_500);
    const answer = answerOf(getLine(`http://127.0.0.1:${ending.http.port}/`), ending);
    await eventually(async () => expect(await ending.open()).toBe(1));
    await ending.stop();
    expect(await answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*in time/);
  });
});
