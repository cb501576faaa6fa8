import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import { request } from "node:https";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StatusError } from "../../../src/kube/status.ts";
import type { LimiterSpec } from "../../../src/policy/policy.ts";
import type { Layer } from "../../../src/proxy/call/call.ts";
import { CallAbort, type CallSignal } from "../../../src/proxy/http/call-signal.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { limitRule } from "../../support/policies.ts";
import { type ProxyHarness, readAll, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let proxy: ProxyHarness;
let lost: AbortController;

function bothOf(...signals: CallSignal[]): CallSignal {
  const both = new CallAbort();
  const end = () => both.abort(new Error("lost"));
  for (const signal of signals) {
    if (signal.aborted) end();
    else signal.addEventListener("abort", end);
  }
  return both;
}

const refuseOtherSubset: Layer = (next) => async (call) => {
  if (call.info.kind === "resource" && call.info.namespace === "other") throw new StatusError("Forbidden", "ctrlmesh: not yours");
  const reply = await next({ ...call, headers: { ...call.headers, "x-seen-by": "isolate" } });
  if (reply.tunnel === undefined) return reply;
  return { ...reply, tunnel: { ...reply.tunnel, signal: bothOf(reply.tunnel.signal, lost.signal) } };
};

beforeEach(async () => {
  lost = new AbortController();
  api = await startFakeApi();
  api.onUpgrade = (req, socket, head) => {
    socket.on("error", () => {});
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\nX-From: api\r\n\r\nhello `,
    );
    socket.write(head);
    socket.pipe(socket);
  };
  proxy = await startProxy({ api, isolate: refuseOtherSubset });
});

afterEach(async () => {
  await proxy.stop();
  await api.close();
});

interface Upgraded {
  readonly res: IncomingMessage;
  /** Undefined if the upgrade was refused. */
  readonly socket: Duplex | undefined;
  readonly head: Buffer;
}

function upgradeRequest(path: string, method = "GET", protocol = "websocket"): ClientRequest {
  return request(new URL(proxy.ready.url), {
    agent: false,
    ca: proxy.agent.options.ca,
    path,
    method,
    headers: { connection: "Upgrade", upgrade: protocol, authorization: "Bearer a", "x-remote-user": "admin" },
  });
}

function upgrade(path: string, method = "GET", protocol = "websocket"): Promise<Upgraded> {
  return new Promise((resolve, reject) => {
    const req = upgradeRequest(path, method, protocol);
    req.on("upgrade", (res, socket, head) => resolve({ res, socket, head }));
    req.on("response", (res) => resolve({ res, socket: undefined, head: Buffer.alloc(0) }));
    req.on("error", reject);
    req.end();
  });
}

const EXEC = "/api/v1/namespaces/a/pods/p/exec?command=ls&command=-l&stdout=true";

const VMS = "/apis/subresources.kubevirt.io/v1/namespaces";

describe("upgrades", () => {
  it.each([
    ["GET", "websocket"],
    ["POST", "SPDY/3.1"],
  ])("%s %s becomes a raw tunnel, with the first bytes of both sides", async (method, protocol) => {
    const { res, socket, head } = await upgrade(EXEC, method, protocol);
    expect([res.statusCode, res.headers.upgrade, res.headers["x-from"]]).toEqual([101, protocol, "api"]);
    let got = head.toString();
    socket?.on("data", (chunk: Buffer) => {
      got += chunk.toString();
    });
    socket?.write("world");
    await eventually(() => got === "hello world");
    const [seen] = api.seen;
    expect([seen?.method, seen?.url, seen?.headers.upgrade, seen?.headers.host]).toEqual([
      method,
      EXEC,
      protocol,
      new URL(api.url).host,
    ]);
    expect(seen?.headers).toMatchObject({ authorization: "Bearer a", "x-seen-by": "isolate" });
    expect(seen?.headers).not.toHaveProperty("x-remote-user");
    socket?.destroy();
    await eventually(() => api.open === 0);
  });

  it.each([
    ["GET", "websocket", "console"],
    ["GET", "websocket", "vnc"],
    ["GET", "websocket", "portforward/22/tcp"],
    ["POST", "SPDY/3.1", "usbredir"],
  ])("%s %s of a subresource %s of KubeVirt, or of any API, is a raw tunnel as well", async (method, protocol, subresource) => {
    const target = `${VMS}/a/virtualmachineinstances/x/${subresource}?x=1`;
    const { res, socket, head } = await upgrade(target, method, protocol);
    expect([res.statusCode, res.headers.upgrade]).toEqual([101, protocol]);
    let got = head.toString();
    socket?.on("data", (chunk: Buffer) => {
      got += chunk.toString();
    });
    socket?.write("world");
    await eventually(() => got === "hello world");
    expect(api.seen.map(({ method: asked, url, headers }) => [asked, url, headers.upgrade])).toEqual([
      [method, target, protocol],
    ]);
    socket?.destroy();
    await eventually(() => api.open === 0);
  });

  it("of a subresource in a namespace of another subset are refused like any request", async () => {
    const { res, socket } = await upgrade(`${VMS}/other/virtualmachineinstances/x/console`);
    expect([res.statusCode, socket]).toEqual([403, undefined]);
    expect(api.seen).toHaveLength(0);
  });

  it.each(["/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/p", "/api/v1/namespaces/a/pods/p/status"])(
    "of %s are ignored: the answer comes over plain HTTP",
    async (target) => {
      api.script = (_req, res) => answerJson(res, 200, { kind: "Answer" });
      const { res, socket } = await upgrade(target);
      expect([res.statusCode, socket, (await readAll(res)).toString()]).toEqual([200, undefined, '{"kind":"Answer"}']);
      expect(api.seen[0]?.headers).not.toHaveProperty("upgrade");
    },
  );

  it("count as connections of the stream pool while they last", async () => {
    const inStream = async () => {
      const metric = await proxy.registry.getSingleMetric("ctrlmesh_proxy_upstream_connections")?.get();
      return metric?.values.find(({ labels }) => labels.pool === "stream")?.value;
    };
    const { socket } = await upgrade(EXEC);
    expect(await inStream()).toBe(1);
    socket?.destroy();
    await eventually(async () => (await inStream()) === 0);
  });

  it("end when the API server's socket ends", async () => {
    const { socket } = await upgrade(EXEC);
    socket?.resume();
    socket?.on("error", () => {});
    api.reset();
    if (socket !== undefined && !socket.destroyed) await once(socket, "close");
  });

  it("into a namespace of another subset are refused like any request", async () => {
    const { res, socket } = await upgrade("/api/v1/namespaces/other/pods/p/exec");
    expect([res.statusCode, socket]).toEqual([403, undefined]);
    expect(JSON.parse((await readAll(res)).toString())).toMatchObject({ kind: "Status", reason: "Forbidden" });
    expect(api.seen).toHaveLength(0);
  });

  it("that the API server refuses get its refusal as the answer", async () => {
    api.onUpgrade = (_req, socket) => socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    const { res } = await upgrade(EXEC);
    expect([res.statusCode, (await readAll(res)).toString()]).toEqual([403, "no"]);
  });

  it("of a watch get an empty answer that ends at once, so that fabric8 watches over HTTP", async () => {
    api.script = (_req, res) => void res.writeHead(200, { "content-type": "application/json" }).write('{"type":"ADDED"');
    const { res, socket } = await upgrade("/api/v1/pods?watch=1");
    expect([res.statusCode, socket, res.headers["content-length"], res.headers.connection]).toEqual([
      200,
      undefined,
      "0",
      "close",
    ]);
    expect(await readAll(res)).toHaveLength(0);
    expect(api.seen[0]?.headers).toMatchObject({ "x-seen-by": "isolate", connection: "keep-alive" });
    expect(api.seen[0]?.headers).not.toHaveProperty("upgrade");
    await eventually(() => api.open === 0);
  });

  it("of a watch that the API server refuses get its refusal as the answer", async () => {
    api.script = (_req, res) => answerJson(res, 403, { kind: "Status" });
    const { res } = await upgrade("/api/v1/pods?watch=1");
    expect([res.statusCode, (await readAll(res)).toString()]).toEqual([403, '{"kind":"Status"}']);
  });

  it("leave no connection behind when the client disconnects before the answer", async () => {
    let upgraded: (answer: () => void) => void = () => {};
    const upgradeReceived = new Promise<() => void>((resolve) => {
      upgraded = resolve;
    });
    api.onUpgrade = (req, socket) => {
      socket.on("error", () => {});
      const head = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n\r\nhello`;
      upgraded(() => socket.write(head));
    };
    const client = upgradeRequest(EXEC);
    client.on("error", () => {});
    client.end();
    const answer = await upgradeReceived;
    client.destroy();
    await eventually(() => api.open === 0);
    answer();
    expect(api.open).toBe(0);
  });

  it("end on both sides when a layer aborts the tunnel", async () => {
    const { socket } = await upgrade(EXEC);
    socket?.resume();
    socket?.on("error", () => {});
    const closed = socket === undefined ? undefined : once(socket, "close");
    lost.abort();
    await closed;
    await eventually(() => api.open === 0);
  });

  it("are judged by what the API server answers: refused or broken ones open a breaker, and others do not (D2)", async () => {
    const limiter: LimiterSpec = { kind: "breaker", trigger: { consecutive: 2, minimumRequests: 1, windowMs: 60_000 } };
    const isOpen = () => proxy.policies.report.rules.some(({ opened }) => opened);
    const fresh = (name: string) =>
      proxy.policies.enforce({ limits: [limitRule(limiter, { name })], faults: [], egress: [] }, name);
    const answer = (status: number) => {
      api.onUpgrade = (_req, socket) =>
        socket.end(`HTTP/1.1 ${status} Answer\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno`);
    };
    fresh("answered");
    for (let i = 0; i < 3; i++) (await upgrade(EXEC)).socket?.destroy();
    answer(403);
    for (let i = 0; i < 3; i++) await upgrade(EXEC);
    expect(isOpen()).toBe(false);
    answer(500);
    for (let i = 0; i < 2; i++) expect((await upgrade(EXEC)).res.statusCode).toBe(500);
    await eventually(isOpen);
    fresh("broken");
    api.onUpgrade = (_req, socket) => socket.destroy();
    for (let i = 0; i < 2; i++) await expect(upgrade(EXEC)).rejects.toThrow();
    await eventually(isOpen);
    expect((await upgrade(EXEC)).res.statusCode).toBe(503);
  });

  it("do not begin if a layer has already aborted the tunnel", async () => {
    lost.abort();
    await expect(upgrade(EXEC)).rejects.toThrow();
    await eventually(() => api.open === 0);
  });

  it("break off at the end of the drain", async () => {
    const { socket } = await upgrade(EXEC);
    socket?.resume();
    socket?.on("error", () => {});
    const closed = socket === undefined ? undefined : once(socket, "close");
    await proxy.drain();
    await closed;
  });
});
