// The webhook server over real TLS sockets: what the API server may expect of it, and what nobody else may do to it.
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, type RequestOptions, request } from "node:https";
import { connect as connectTcp, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../../src/base/certificates.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { createLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { MAX_REVIEW_BYTES } from "../../../src/kube/admission-review.ts";
import { StatusError } from "../../../src/kube/status.ts";
import { createClientCa } from "../../../src/manager/admission/server/client-ca.ts";
import { createRoutes, type Ready, type Review } from "../../../src/manager/admission/server/webhook.ts";
import { createWebhookServer, type WebhookServer } from "../../../src/manager/admission/server/webhook-server.ts";
import { eventually } from "../../support/eventually.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeIdentity } from "../../support/fake-identity.ts";
import { type HostileOptions, openHostileConnections } from "../../support/hostile-connections.ts";

const REQUEST = {
  uid: "u-1",
  resource: { group: "", version: "v1", resource: "pods" },
  operation: "CREATE",
  namespace: "ops",
  object: { metadata: {} },
};
const reviewOf = (more: object = {}) =>
  JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request: { ...REQUEST, ...more } });

/** So many characters, in texts as long as a review may have. */
const texts = (chars: number) => Array.from({ length: Math.ceil(chars / 250_000) }, () => "x".repeat(250_000));

const HEAD_OF_HUNDRED = "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n";

interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly serial: string;
  readonly reused: boolean;
}

describe("the webhook server", () => {
  const identity = createFakeIdentity();
  const log = createLogger({ name: "test", level: "silent" });
  let registry: ReturnType<typeof createRegistry>;
  let server: WebhookServer;
  let agent: Agent;
  let review: Review;
  let ready: Ready;

  const start = async (more: Partial<Parameters<typeof createWebhookServer>[0]> = {}) => {
    registry = createRegistry("test", "0");
    review = () => ({ allowed: true });
    ready = async () => undefined;
    const asked: Review = (...args) => review(...args);
    server = createWebhookServer({
      listen: { host: "127.0.0.1", port: 0 },
      identity,
      routes: createRoutes({
        inject: () => asked,
        admit: () => asked,
        asked,
        validate: asked,
        validateEarly: asked,
        awaitApp:
          () =>
          (...args) =>
            ready(...args),
      }),
      metricsRegistry: registry,
      clock: systemClock,
      log,
      openMs: 50,
      requestMs: 1_500,
      ...more,
    });
    await server.start(new AbortController().signal);
    agent = new Agent({ keepAlive: true, maxSockets: 100 });
  };
  beforeEach(() => start());
  afterEach(async () => {
    agent.destroy();
    await server.stop();
  });

  function ask(body: string | Buffer, options: RequestOptions = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const req = request(
        {
          host: "127.0.0.1",
          port: server.port,
          path: "/inject/ops/shop",
          method: "POST",
          agent,
          ca: identity.trustPem,
          ...options,
          headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...options.headers },
        },
        (res) => {
          const { serialNumber } = (res.socket as TLSSocket).getPeerCertificate();
          const reused = req.reusedSocket;
          let text = "";
          res.on("data", (chunk: Buffer) => {
            text += chunk.toString();
          });
          res.on("error", reject);
          res.on("end", () =>
            resolve({ code: res.statusCode ?? 0, headers: res.headers, body: JSON.parse(text), serial: serialNumber, reused }),
          );
        },
      );
      req.on("error", reject);
      req.end(body);
    });
  }
  const counted = async (webhook: string, result: string) => {
    const metric = await registry.getSingleMetric("ctrlmesh_manager_webhook_requests_total")?.get();
    return metric?.values.find(({ labels }) => labels.webhook === webhook && labels.result === result)?.value ?? 0;
  };

  it("answers a review with its uid, and counts it", async () => {
    const { code, body } = await ask(reviewOf(), { path: "/inject/ops/shop?timeout=10s" });
    expect(code).toBe(200);
    expect(body).toMatchObject({ kind: "AdmissionReview", response: { uid: "u-1", allowed: true } });
    expect(await counted("inject", "allowed")).toBe(1);
  });

  it("serves the next connection with a new certificate and goes on with the old ones", async () => {
    const first = await ask(reviewOf());
    identity.renewLeaf();
    const kept = await ask(reviewOf());
    expect(kept).toMatchObject({ code: 200, reused: true, serial: first.serial });
    const other = new Agent({ keepAlive: true });
    const fresh = await ask(reviewOf(), { agent: other });
    other.destroy();
    expect(fresh.code).toBe(200);
    expect(fresh.serial).not.toBe(first.serial);
  });

  it("cuts no request while certificates and CAs change under load", async () => {
    let done = false;
    let served = 0;
    const client = async (keepAlive: boolean) => {
      const own = new Agent({ keepAlive });
      while (!done) {
        const answer = await ask(reviewOf(), { agent: own });
        expect(answer.code).toBe(200);
        served++;
      }
      own.destroy();
    };
    const clients = [client(true), client(true), client(false), client(false)];
    const more = async (count: number) => {
      const before = served;
      await eventually(() => served > before + count);
    };
    for (let round = 0; round < 3; round++) {
      identity.addCa();
      await more(20); // whoever asks now trusts both
      identity.renewLeaf();
      await more(40);
      identity.dropOldCas();
    }
    done = true;
    await Promise.all(clients);
  });

  it.each<[string, RequestOptions, string, number, string]>([
    ["an unknown path", { path: "/injects/a/b" }, reviewOf(), 404, 'no webhook at "/injects/a/b"'],
    ["a path out of its folder", { path: "/inject/../validate" }, reviewOf(), 404, "no webhook at"],
    ["another method", { method: "PUT" }, reviewOf(), 405, "accept only POST, not PUT"],
    ["another content type", { headers: { "content-type": "text/plain" } }, reviewOf(), 415, "application/json"],
    ["compressed bytes", { headers: { "content-encoding": "gzip" } }, reviewOf(), 415, "content-encoding"],
    ["what is no JSON", {}, "{", 400, "not JSON"],
    ["what is no review", {}, "{}", 400, "not an AdmissionReview"],
  ])("answers %s with a Status, and closes", async (_, options, body, code, words) => {
    const answer = await ask(body, options);
    expect(answer.code).toBe(code);
    expect(answer.body).toMatchObject({ kind: "Status", code, message: expect.stringMatching(/^ctrlmesh: /) });
    expect(answer.body.message).toContain(words);
    expect(answer.headers.connection).toBe("close");
  });

  it("asks to try again while it cannot answer, and says 500 of its own faults without telling them", async () => {
    review = () => {
      throw new StatusError("ServiceUnavailable", "ctrlmesh: not yet", { retryAfterSeconds: 1 });
    };
    expect(await ask(reviewOf())).toMatchObject({ code: 503, headers: { "retry-after": "1" } });
    review = () => {
      throw new Error("secret detail");
    };
    const failed = await ask(reviewOf());
    expect(failed.code).toBe(500);
    expect(JSON.stringify(failed.body)).not.toContain("secret");
    expect([await counted("inject", "unavailable"), await counted("inject", "failed")]).toEqual([1, 1]);
  });

  it("takes the largest pod that the API server takes, and refuses what is larger before it is read", async () => {
    const large = reviewOf({ object: { data: texts(3 * 1024 * 1024) }, oldObject: { data: texts(3 * 1024 * 1024) } });
    expect((await ask(large)).code).toBe(200);
    const socket = await tls();
    socket.write(
      `POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${MAX_REVIEW_BYTES + 1}\r\n\r\n`,
    );
    expect(await firstLine(socket)).toContain("413");
  });

  it("refuses a body without a length before a chunk of it is read", async () => {
    const socket = await tls();
    const answer = firstLine(socket);
    socket.write("POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    expect(await answer).toContain("411");
  });

  it("holds bodies within its budget, turns the rest away for a second, and gives everything back", async () => {
    await server.stop();
    await start({ maxBodyBytes: 6 * 1024 * 1024 }); // half for one address; the review becomes 1.4 MiB
    const { promise, resolve } = Promise.withResolvers<void>();
    const isHeld = Promise.withResolvers<void>();
    review = () => {
      isHeld.resolve();
      return promise.then(() => ({ allowed: true }) as const);
    };
    const large = reviewOf({ object: { data: texts(700 * 1024) } });
    const held = ask(large);
    await isHeld.promise; // else the second one could come first
    expect(await ask(large)).toMatchObject({ code: 429, headers: { "retry-after": "1" } });
    resolve();
    expect((await held).code).toBe(200);
    for (let round = 0; round < 3; round++) expect((await ask(large)).code).toBe(200);
  });

  it("bodies of nested lists, each of which would become 200 MB, are refused before they are parsed", async () => {
    const body = Buffer.from("[".repeat(MAX_REVIEW_BYTES / 2) + "]".repeat(MAX_REVIEW_BYTES / 2));
    const flat = Buffer.from(`[${"[],".repeat(2_000_000)}[]]`);
    const before = process.memoryUsage().heapUsed;
    const paths = ["/validate", "/inject/ops/nosuchapp"];
    const answers = await Promise.all(paths.flatMap((path) => [ask(body, { path }), ask(flat, { path })]));
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);
    for (const { code } of answers) expect(code).toBe(413);
    expect(answers.map((answer) => answer.body.message)).toEqual(
      paths.flatMap(() => ["ctrlmesh: a review has more than 100 levels", "ctrlmesh: a review has more than 200000 values"]),
    );
    expect((await ask(reviewOf())).code).toBe(200);
  });

  it("keeps no answer for clients that do not read it: it counts until it has left, and the connection ends after a time", async () => {
    await server.stop();
    await start({ maxBodyBytes: 100 * 1024 * 1024 }); // half for one address; the review becomes 1.4 MiB, its answer counts as 48
    review = () => ({ allowed: true, patch: [{ op: "add", path: "/x", value: "x".repeat(12 * 1024 * 1024) }] });
    const large = reviewOf({ object: { data: texts(700 * 1024) } });
    const deaf = (await tls()).pause();
    const head = `POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${large.length}\r\n\r\n`;
    deaf.write(head + large);
    await eventually(async () => expect(await counted("validate", "patched")).toBe(1));
    review = () => ({ allowed: true });
    expect((await ask(large)).code).toBe(429);
    await eventually(async () => expect((await ask(large)).code).toBe(200));
    await once(deaf.resume(), "close");
  });

  it("sends no answer for which the budget has no room", async () => {
    await server.stop();
    await start({ maxBodyBytes: 6 * 1024 * 1024 });
    review = () => ({ allowed: true, patch: [{ op: "add", path: "/x", value: "x".repeat(1024 * 1024) }] });
    expect(await ask(reviewOf())).toMatchObject({ code: 429, headers: { "retry-after": "1" } });
    review = () => ({ allowed: true, patch: [{ op: "add", path: "/x", value: "x".repeat(512 * 1024) }] });
    for (let round = 0; round < 3; round++) expect((await ask(reviewOf())).code).toBe(200);
  });

  it("a flood of refused reviews writes a bounded number of log lines, and each is counted", async () => {
    await server.stop();
    const lines: string[] = [];
    await start({ log: pino({}, { write: (line) => void lines.push(line) }) });
    review = () => ({ allowed: false, reason: "Forbidden", message: "no" });
    const startMs = performance.now();
    for (let each = 0; each < 1_000; each++) expect((await ask(reviewOf())).code).toBe(200);
    const seconds = (performance.now() - startMs) / 1_000;
    expect(await counted("inject", "refused")).toBe(1_000);
    expect(lines.length).toBeGreaterThanOrEqual(100);
    expect(lines.length).toBeLessThanOrEqual(100 + 5 * (seconds + 1));
  });

  it("reads no body while a request waits for an app that does not exist", async () => {
    await server.stop();
    await start({ maxBodyBytes: 64 * 1024 });
    const waiting: (() => void)[] = [];
    ready = () => new Promise((resolve) => waiting.push(resolve));
    const body = reviewOf({ object: { data: "x".repeat(3_000) } });
    const codes: number[] = [];
    const asked = Array.from({ length: 40 }, () => ask(body).then(({ code }) => codes.push(code)));
    await eventually(() => expect(waiting.length).toBe(40));
    ready = async () => undefined;
    expect((await ask(reviewOf())).code).toBe(200);
    for (const [before, go] of waiting.entries()) {
      go();
      await eventually(() => expect(codes.length).toBe(before + 1));
    }
    await Promise.all(asked);
    expect(codes).toEqual(asked.map(() => 200));
  });

  it("cuts who sends nothing, who sends slowly, and who does not finish a handshake", async () => {
    await server.stop();
    await start({ firstMs: 1_500 });
    const silent = await tls();
    const slow = await tls();
    const body = await tls();
    const raw = await tcp();
    const open = new Set(Object.keys({ silent, slow, body, raw }));
    for (const [name, socket] of Object.entries({ silent, slow, body, raw }))
      socket.resume().once("close", () => open.delete(name));
    slow.write("POST /validate HTT");
    body.write("POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{");
    await eventually(() => expect([...open]).toEqual([]));
    expect((await ask(reviewOf())).code).toBe(200);
  });

  it("lets nobody keep others out by holding all connections, idle after a request or before one", async () => {
    await server.stop();
    await start({ maxConnections: 4 });
    const idle = [1, 2].map(() => new Agent({ keepAlive: true }));
    for (const own of idle) await ask(reviewOf(), { agent: own });
    await tls();
    await tls();
    await eventually(async () => {
      const answer = await ask(reviewOf(), { agent: new Agent() }).catch(() => undefined);
      return answer?.code === 200;
    }, 1_000); // the silent ones have not been cut yet
    for (const own of idle) own.destroy();
  });

  it.each<[string, Partial<HostileOptions>]>([
    ["never send a byte of TLS", {}],
    ["finish the handshake and say nothing", { protocols: ["http/1.1"] }],
    ["send half a head", { protocols: ["http/1.1"], send: "POST /validate HTTP/1.1\r\nhost: x\r\n" }],
    ["send half a body", { protocols: ["http/1.1"], send: `${HEAD_OF_HUNDRED}{` }],
    ["ask once and stay", { protocols: ["http/1.1"], send: "GET / HTTP/1.1\r\nhost: x\r\n\r\n" }],
  ])("answers every call of an API server while four addresses hold all connections and %s", async (_, attack) => {
    await server.stop();
    await start({ maxConnections: 16, requestMs: 60_000 });
    const all = [2, 3, 4, 5].map((last) =>
      openHostileConnections({ port: server.port, from: `127.0.0.${last}`, count: 8, ...attack }),
    );
    await eventually(() => all.reduce((sum, { open }) => sum + open, 0) >= 16 || all.every(({ tried }) => tried > 16));
    const own = new Agent({ keepAlive: false });
    const codes: number[] = [];
    for (let call = 0; call < 20; call++) codes.push((await ask(reviewOf(), { agent: own })).code);
    expect(codes).toEqual(Array.from({ length: 20 }, () => 200));
    for (const hostile of all) hostile.stop();
  });

  it("answers a hundred reviews at once of an API server that has not called before", async () => {
    await server.stop();
    await start({ requestMs: 60_000 });
    const finish = Promise.withResolvers<void>();
    let running = 0;
    review = () => {
      if (++running === 100) finish.resolve();
      return finish.promise.then(() => ({ allowed: true }) as const);
    };
    const own = new Agent({ keepAlive: true });
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(reviewOf(), { agent: own })));
    own.destroy();
    expect(answers.filter(({ code }) => code !== 200)).toEqual([]);
  });

  it("ends a connection without a handshake, and one without a head, after their time", async () => {
    await server.stop();
    await start({ requestMs: 60_000, firstMs: 100 });
    const [raw, silent, half] = [await tcp(), await tls(), await tls()];
    half.write("POST /validate HTTP/1.1\r\nhost: x\r\n");
    await Promise.all([raw, silent, half].map((socket) => once(socket.resume(), "close")));
  });

  it("serves only clients with a certificate of the given CAs, and follows the file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "client-ca-"));
    const file = join(folder, "ca.crt");
    const [first, second] = ["first", "second"].map((commonName) => createCa({ commonName, now: Date.now() })) as [
      KeyCertificate,
      KeyCertificate,
    ];
    const certificateOf = (ca: KeyCertificate) => {
      const { certPem: cert, keyPem: key } = issueServerCertificate(ca, {
        dnsNames: ["api"],
        clientName: "spiffe://api",
        now: Date.now(),
      });
      return { cert, key };
    };
    await writeFile(file, first.certPem);
    await server.stop();
    const clock = createFakeClock();
    await start({ clientCa: createClientCa({ file, clock, log }) });
    const codeWith = async (options: RequestOptions) =>
      (await ask(reviewOf(), { agent: new Agent({ keepAlive: false }), ...options }).catch(() => undefined))?.code;
    expect(await codeWith(certificateOf(first))).toBe(200);
    expect(await codeWith({})).toBeUndefined();
    expect(await codeWith(certificateOf(second))).toBeUndefined();
    await writeFile(file, second.certPem);
    await eventually(async () => {
      await clock.advance(10_000);
      return (await codeWith(certificateOf(second))) === 200;
    });
    expect(await codeWith(certificateOf(first))).toBeUndefined();
    await rm(folder, { recursive: true });
  });

  it("does not start without the CAs of its clients", async () => {
    const clientCa = createClientCa({ file: "/nowhere/ca.crt", clock: createFakeClock(), log });
    await server.stop();
    await expect(start({ clientCa })).rejects.toMatchObject({ code: "WEBHOOK_CLIENT_CA" });
  });

  it("counts clients that speak no TLS or do not trust it", async () => {
    const raw = await tcp();
    raw.write("GET / HTTP/1.1\r\n\r\n");
    await once(raw, "close");
    await expect(ask(reviewOf(), { agent: new Agent(), ca: createFakeIdentity().trustPem })).rejects.toThrow(/certificate/);
    const failures = async () =>
      (await registry.getSingleMetric("ctrlmesh_manager_webhook_handshake_failures_total")?.get())?.values[0]?.value;
    await eventually(async () => expect(await failures()).toBeGreaterThanOrEqual(1));
  });

  it("refuses TLS 1.1", async () => {
    const socket = connectTls({
      host: "127.0.0.1",
      port: server.port,
      ca: identity.trustPem,
      maxVersion: "TLSv1.1",
      minVersion: "TLSv1",
    });
    const [error] = await once(socket, "error");
    expect(String(error)).toMatch(/protocol|version|alert/i);
  });

  it("goes on answering for a while after its stop, closing each connection, and then is gone", async () => {
    await server.stop();
    await start({ openMs: 600 });
    await ask(reviewOf());
    const stopped = server.stop();
    const kept = await ask(reviewOf());
    expect(kept).toMatchObject({ code: 200, headers: { connection: "close" } });
    const fresh = await ask(reviewOf());
    expect(fresh).toMatchObject({ code: 200, reused: false });
    const { promise, resolve } = Promise.withResolvers<void>();
    review = () => promise.then(() => ({ allowed: true }) as const);
    const last = ask(reviewOf());
    await eventually(async () => {
      const socket = connectTcp({ host: "127.0.0.1", port: server.port });
      const refused = await Promise.race([
        once(socket, "connect").then(() => false),
        once(socket, "error").then(() => true),
      ]).catch(() => true);
      socket.destroy();
      return refused;
    });
    resolve();
    expect((await last).code).toBe(200);
    await stopped;
  });

  async function tls(): Promise<TLSSocket> {
    const socket = connectTls({ host: "127.0.0.1", port: server.port, ca: identity.trustPem });
    socket.on("error", () => undefined);
    await once(socket, "secureConnect");
    return socket;
  }
  async function tcp(localAddress = "127.0.0.1"): Promise<Socket> {
    const socket = connectTcp({ host: "127.0.0.1", port: server.port, localAddress });
    socket.on("error", () => undefined);
    await once(socket, "connect");
    return socket;
  }
  async function firstLine(socket: TLSSocket): Promise<string> {
    const [data] = (await once(socket, "data")) as [Buffer];
    return data.toString().split("\r\n")[0] ?? "";
  }
});
