// The bounds of the listener for the operator's webhooks: the caller's time, reviews at one peer, what a caller leaves behind, and its end.
import { once } from "node:events";
import { Agent, createServer, request } from "node:https";
import { connect, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { issueServerCertificate } from "../../../src/base/certificates.ts";
import { podUri } from "../../../src/base/pem.ts";
import { MAX_CONNECTIONS } from "../../../src/proxy/reviews/listener.ts";
import { eventually } from "../../support/eventually.ts";
import { isNightly, shareOf } from "../../support/fuzz.ts";
import { type HostileOptions, openHostileConnections } from "../../support/hostile-connections.ts";
import { type ReviewPod, type ReviewWorld, reviewOf, SERVICE, startReviewWorld } from "../../support/review-world.ts";
import { subset, table } from "../../support/route-table.ts";

/** For dozens of handshakes on a machine with other work. */
const SLOW_MS = 25_000;
const ROUTES = table([subset("canary")], { prod: [], pilot: [0] });

let world: ReviewWorld;
let stable: ReviewPod;
let canary: ReviewPod;
beforeEach(async () => {
  world = await startReviewWorld();
  stable = await world.addPod("stable", "");
  canary = await world.addPod("canary", "canary");
  world.tell();
  for (const pod of [stable, canary]) pod.enforce(ROUTES);
});
afterEach(() => world?.stop());

const by = (name: string) => ({ status: 200, body: expect.stringContaining(`"by":"${name}"`) });
const refused = (status: number, code: string) => ({ status, headers: { "x-ctrlmesh-error": code } });
const countOf = async (pod: ReviewPod, labels: string) =>
  new RegExp(`^ctrlmesh_proxy_reviews_total\\{${labels}[^}]*\\} (\\d+)`, "m").exec(await pod.registry.metrics())?.[1];

/** Calls that arrive eight at a time: on a busy machine, more handshakes at once take longer than the proxy waits for one. */
async function inBatches<T>(total: number, haveArrived: (count: number) => boolean, call: () => T): Promise<T[]> {
  const calls: T[] = [];
  while (calls.length < total) {
    for (let index = 0; index < 8; index++) calls.push(call());
    await eventually(() => haveArrived(calls.length), SLOW_MS);
  }
  return calls;
}

describe("a slow client", () => {
  const open = async (path: string): Promise<TLSSocket> => {
    const socket = connect({ host: stable.peer.address, port: world.port, servername: SERVICE, ca: world.operatorCa.certPem });
    await once(socket, "secureConnect");
    socket.on("error", () => undefined);
    socket.write(`POST ${path} HTTP/1.1\r\nhost: ${SERVICE}\r\ncontent-length: ${6 * 1024 * 1024}\r\n\r\n{`);
    return socket;
  };

  const read = async (socket: TLSSocket): Promise<string> => {
    let text = "";
    for await (const chunk of socket) text += chunk;
    return text;
  };

  it("takes nothing from others, and its connection is closed after a time", async () => {
    const slow = await Promise.all(Array.from({ length: 20 }, () => open("/mutate?timeout=1s")));
    const texts = slow.map((socket) => read(socket));
    expect(await world.call(stable, reviewOf("prod"))).toMatchObject(by("stable"));
    for (const text of await Promise.all(texts)) expect(text).toMatch(/^HTTP\/1.1 (408|503) [\s\S]*connection: close/i);
  });
});

const HALF_A_HEAD: [string, Partial<HostileOptions>] = [
  "with half a head each",
  { protocols: ["http/1.1"], send: "POST /mutate HTTP/1.1\r\nhost: x\r\n" },
];

describe("while a stranger holds all connections", () => {
  it.each<[string, Partial<HostileOptions>]>([["without a byte of TLS", {}], ...(isNightly ? [HALF_A_HEAD] : [])])(
    "%s, every review of the API server is answered",
    async (_, attack) => {
      const { address: host } = stable.peer;
      const hostile = openHostileConnections({
        port: world.port,
        host,
        from: "127.0.0.77",
        count: MAX_CONNECTIONS + 88,
        ...attack,
      });
      onTestFinished(() => hostile.stop());
      await eventually(() => hostile.tried > MAX_CONNECTIONS + 88, 60_000);
      const answers: unknown[] = [];
      for (let call = 0; call < 20; call++)
        answers.push(await world.call(stable, reviewOf("prod"), { path: "/mutate?timeout=10s" }));
      for (const answer of answers) expect(answer).toMatchObject(by("stable"));
    },
    120_000,
  );
});

describe("5,000 requests in a pipeline of one connection", () => {
  it("end this connection: the thread lives, and every review of the API server is answered", async () => {
    const { address: host } = stable.peer;
    const socket = connect({ host, port: world.port, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const closed = new Promise((resolve) => socket.on("error", () => undefined).once("close", resolve));
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(5_000));
    for (let call = 0; call < 20; call++) expect(await world.call(stable, reviewOf("prod"))).toMatchObject(by("stable"));
    await closed;
    expect(stable.answered.filter((text) => text.startsWith("GET")).length).toBeLessThanOrEqual(2);
    expect(await stable.registry.metrics()).toMatch(/^ctrlmesh_proxy_webhook_thread_restarts_total 0$/m);
  });
});

describe("a caller that is gone", () => {
  it("leaves nothing behind: neither a request at the operator nor a place at the peer", async () => {
    const open = { now: 0, ever: 0 };
    canary.serve((req) => {
      open.now++;
      open.ever++;
      req.resume().socket.once("close", () => open.now--);
    });
    const review = JSON.stringify(reviewOf("pilot"));
    const agent = new Agent({ keepAlive: false });
    for (let round = 0; round < 2; round++) {
      const calls = await inBatches(
        40,
        (count) => open.now >= count,
        () => {
          const { address: host } = stable.peer;
          const { port, operatorCa } = world;
          const call = request({
            agent,
            host,
            port,
            path: "/mutate?timeout=30s",
            method: "POST",
            servername: SERVICE,
            ca: operatorCa.certPem,
          });
          call.on("error", () => undefined).end(review);
          return call;
        },
      );
      for (const call of calls) call.destroy();
      await eventually(() => open.now === 0, SLOW_MS);
    }
    canary.serve(undefined);
    expect(await world.call(stable, reviewOf("pilot"))).toMatchObject(by("canary"));
    expect(open.ever).toBe(80);
    for (const pod of [stable, canary])
      await eventually(async () => expect(await countOf(pod, 'result="client-gone"')).toBe("80"));
  });
});

describe("the caller's time", () => {
  it("ends a review at the silent operator beside the proxy, and its request there", async () => {
    const closed = Promise.withResolvers<void>();
    stable.serve((req) => void req.resume().socket.once("close", closed.resolve));
    expect(await world.call(stable, reviewOf("prod"), { path: "/mutate?timeout=1s" })).toMatchObject(refused(503, "REVIEW_LATE"));
    await closed.promise;
  });
});

describe("a peer", () => {
  it("gets 64 reviews at once, and the others wait", async () => {
    const waiting: (() => void)[] = [];
    let seen = 0;
    canary.serve((req, res) => {
      seen++;
      req.resume().on("end", () => waiting.push(() => res.end(`{"by":"canary"}`)));
    });
    const calls = await inBatches(
      80,
      (count) => seen >= Math.min(64, count),
      () => ({
        answer: world.call(stable, reviewOf("pilot"), { path: "/mutate?timeout=30s" }),
      }),
    );
    for (let answered = 0; answered < 3; answered++) {
      await eventually(() => waiting.length >= 64, SLOW_MS);
      expect([seen, waiting.length]).toEqual([64 + answered, 64]);
      waiting.shift()?.();
    }
    canary.serve(undefined);
    for (const finish of waiting) finish();
    for (const answer of await Promise.all(calls.map((call) => call.answer))) expect(answer).toMatchObject(by("canary"));
  });

  it("that redirects in a way of a later version is no answer for the caller", async () => {
    const [address, { certPem, keyPem }] = [
      "127.0.0.99",
      issueServerCertificate(world.mesh, { dnsNames: ["localhost"], clientName: podUri(canary.peer), now: Date.now() }),
    ];
    const later = createServer({ cert: certPem, key: keyPem }, (_req, res) =>
      res.writeHead(421, { "x-ctrlmesh-review-subset": "canary", "x-ctrlmesh-review-as": "deputy" }).end(),
    );
    later.listen(world.port, address);
    await once(later, "listening");
    world.tell([{ ...canary.peer, address }]);
    const answer = await world.call(stable, reviewOf("pilot"), { path: "/mutate?timeout=1s" });
    later.closeAllConnections();
    later.close();
    expect(answer).toMatchObject(refused(503, "REVIEW_LATE"));
  });
});

const ROUNDS = shareOf(60, 1 / 3);

describe("peers that come and go", () => {
  it("under load cost no review", async () => {
    const second = await world.addPod("second", "canary");
    second.enforce(ROUTES);
    const lists = [[canary.peer], [second.peer], [canary.peer, second.peer]].map((peers) => [stable.peer, ...peers]);
    let at = 0;
    const failures: unknown[] = [];
    await Promise.all(
      Array.from({ length: 3 }, async () => {
        for (let round = 0; round < ROUNDS; round++) {
          world.tell(lists[at++ % lists.length]);
          const answer = await world.call(stable, reviewOf("pilot"));
          if (answer.status !== 200) failures.push(answer);
        }
      }),
    );
    expect(failures).toEqual([]);
    expect(canary.answered.length + second.answered.length).toBe(3 * ROUNDS);
  });
});

describe("the end of a pod", () => {
  it("lets a running review finish", async () => {
    const finish: (() => void)[] = [];
    canary.serve((req, res) => void req.resume().on("end", () => finish.push(() => res.end(`{"by":"canary"}`))));
    const [direct, forwarded] = [world.call(canary, reviewOf("pilot")), world.call(stable, reviewOf("pilot"))];
    await eventually(() => finish.length === 2);
    const ended = canary.stop();
    await eventually(() => canary.webhooks.server.listening === false);
    for (const each of finish) each();
    expect(await direct).toMatchObject(by("canary"));
    expect(await forwarded).toMatchObject(by("canary"));
    await ended;
  });

  it("costs no review, once its peers hear of it while it drains", async () => {
    const second = await world.addPod("second", "canary");
    second.enforce(ROUTES);
    world.tell();
    let isOver = false;
    const failures: unknown[] = [];
    const load = Array.from({ length: 6 }, async () => {
      while (!isOver) {
        const answer = await world.call(stable, reviewOf("pilot"));
        if (answer.status !== 200) failures.push(answer);
      }
    });
    await eventually(() => canary.answered.length > 20 && second.answered.length > 20);
    const ended = canary.stop();
    await eventually(() => !canary.webhooks.server.listening);
    world.tell([stable.peer, second.peer]);
    await ended;
    const before = second.answered.length;
    await eventually(() => second.answered.length > before + 100);
    isOver = true;
    await Promise.all(load);
    expect(failures).toEqual([]);
  });
});
