// The webhook server over real TLS sockets: what the API server may expect of it, and what nobody else may do to it.
import { once } from "node:events";
import { Agent, type RequestOptions, request } from "node:https";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { createLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { MAX_REVIEW_BYTES } from "../../../src/kube/admission-review.ts";
import { StatusError } from "../../../src/kube/status.ts";
import { createRoutes, type Review } from "../../../src/manager/admission/webhook.ts";
import { createWebhookMetrics } from "../../../src/manager/admission/webhook-metrics.ts";
import { createWebhookServer, type WebhookServer } from "../../../src/manager/admission/webhook-server.ts";
import { eventually } from "../../support/eventually.ts";
import { createFakeIdentity } from "../../support/fake-identity.ts";

const REQUEST = {
  uid: "u-1",
  resource: { group: "", version: "v1", resource: "pods" },
  operation: "CREATE",
  namespace: "ops",
  object: { metadata: {} },
};
const reviewOf = (more: object = {}) =>
  JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request: { ...REQUEST, ...more } });

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

  const start = async (more: Partial<Parameters<typeof createWebhookServer>[0]> = {}) => {
    registry = createRegistry("test", "0");
    review = () => ({ allowed: true });
    const asked: Review = (...args) => review(...args);
    server = createWebhookServer({
      listen: { host: "127.0.0.1", port: 0 },
      identity,
      routes: createRoutes({ inject: () => asked, admit: () => asked, validate: asked, validateEarly: asked }),
      metrics: createWebhookMetrics(registry),
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
          ...{ host: "127.0.0.1", port: server.port, path: "/inject/ops/shop", method: "POST", agent, ca: identity.trustPem },
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
    const large = reviewOf({ object: { data: "x".repeat(3 * 1024 * 1024) }, oldObject: { data: "y".repeat(3 * 1024 * 1024) } });
    expect((await ask(large)).code).toBe(200);
    const socket = await tls();
    socket.write(
      `POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${MAX_REVIEW_BYTES + 1}\r\n\r\n`,
    );
    expect(await firstLine(socket)).toContain("413");
  });

  it("ends a chunked body that never ends at the same bound", async () => {
    const socket = await tls();
    socket.write("POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    const answer = firstLine(socket);
    const chunk = Buffer.alloc(1024 * 1024, " ");
    for (let sent = 0; sent <= MAX_REVIEW_BYTES && !socket.destroyed; sent += chunk.length) {
      socket.write(`${chunk.length.toString(16)}\r\n`);
      socket.write(chunk);
      socket.write("\r\n");
    }
    expect(await answer).toContain("413");
  });

  it("holds bodies within its budget, turns the rest away for a second, and gives everything back", async () => {
    await server.stop();
    await start({ maxHeldBytes: 1024 * 1024 });
    const { promise, resolve } = Promise.withResolvers<void>();
    review = () => promise.then(() => ({ allowed: true }) as const);
    const large = reviewOf({ object: { data: "x".repeat(700 * 1024) } });
    const held = ask(large);
    await eventually(async () => {
      const turnedAway = await ask(large);
      expect(turnedAway).toMatchObject({ code: 429, headers: { "retry-after": "1" } });
    });
    resolve();
    expect((await held).code).toBe(200);
    for (let round = 0; round < 3; round++) expect((await ask(large)).code).toBe(200);
  });

  it("cuts who sends nothing, who sends slowly, and who does not finish a handshake", async () => {
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

  it("gives one address its share of the connections, and the rest to others", async () => {
    await server.stop();
    await start({ maxConnectionsPerAddress: 3, requestMs: 60_000 });
    const greedy = await Promise.all(Array.from({ length: 6 }, () => tcp("127.0.0.2")));
    await eventually(() => greedy.filter(({ closed }) => closed).length === 3);
    expect((await ask(reviewOf())).code).toBe(200);
    for (const socket of greedy) socket.destroy();
    const again = async () =>
      (await ask(reviewOf(), { agent: new Agent(), localAddress: "127.0.0.2" }).catch(() => undefined))?.code;
    await eventually(async () => (await again()) === 200);
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
