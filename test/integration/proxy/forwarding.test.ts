import { randomBytes } from "node:crypto";
import type { OutgoingHttpHeaders } from "node:http";
import { connect } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { type ProxyHarness, readAll, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let proxy: ProxyHarness;

beforeEach(async () => {
  api = await startFakeApi();
  proxy = await startProxy({ api });
});

afterEach(async () => {
  await proxy.stop();
  await api.close();
});

const MEGABYTE = 1024 * 1024;
const LIST = "/api/v1/configmaps";
const WATCH = "/api/v1/configmaps?watch=1";

/** Sends raw bytes to the proxy and resolves with the whole answer. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(proxy.ready.url);
    const socket = connect({ host: hostname, port: Number(port), ca: proxy.agent.options.ca, servername: "localhost" });
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
    socket.write(text);
  });
}

describe("forwarding", () => {
  it("forwards a small GET and its answer", async () => {
    api.script = (_req, res) => {
      res.writeHead(200, {
        "content-type": "application/json",
        "audit-id": "x",
        Warning: ['299 - "a"', '299 - "b"'],
      } as OutgoingHttpHeaders);
      res.end("{}");
    };
    const answer = await proxy.fetch("/api/v1/namespaces/a/configmaps/b?x=1", { headers: { accept: "application/json" } });
    expect(answer.status).toBe(200);
    expect(answer.body.toString()).toBe("{}");
    expect(answer.headers["audit-id"]).toBe("x");
    expect(answer.headers.warning).toBe('299 - "a", 299 - "b"');
    expect(api.seen[0]?.url).toBe("/api/v1/namespaces/a/configmaps/b?x=1");
    expect(api.seen[0]?.headers.accept).toBe("application/json");
  });

  it("forwards a POST with its body", async () => {
    let got: Buffer = Buffer.alloc(0);
    api.script = async (req, res) => {
      got = await readAll(req);
      res.writeHead(201);
      res.end();
    };
    const body = randomBytes(100_000);
    const answer = await proxy.fetch("/api/v1/namespaces/a/configmaps", {
      method: "POST",
      body,
      headers: { "content-length": body.length },
    });
    expect(answer.status).toBe(201);
    expect(got.equals(body)).toBe(true);
    expect(api.seen[0]?.headers["content-length"]).toBe("100000");
  });

  it("forwards a chunked upload", async () => {
    let got: Buffer = Buffer.alloc(0);
    api.script = async (req, res) => {
      got = await readAll(req);
      res.end();
    };
    const answer = await proxy.fetch("/api/v1/namespaces/a/configmaps", {
      method: "POST",
      body: Buffer.from("abc"),
      headers: { "transfer-encoding": "chunked" },
    });
    expect(answer.status).toBe(200);
    expect(got.toString()).toBe("abc");
  });

  it("reuses one upstream connection for consecutive requests, also for a DELETE with a body", async () => {
    for (let round = 0; round < 5; round++) {
      await proxy.fetch("/api/v1/namespaces/a/configmaps/b");
      const body = Buffer.from('{"kind":"DeleteOptions"}');
      await proxy.fetch("/api/v1/namespaces/a/configmaps/b", {
        method: "DELETE",
        body,
        headers: { "content-length": body.length },
      });
    }
    expect(api.seen).toHaveLength(10);
    expect(api.accepted).toBeLessThanOrEqual(2);
  });

  it("does not buffer a list: a body of 64 MB reaches a slow reader in bounded memory", async () => {
    const chunk = Buffer.alloc(256 * 1024, 97);
    let sent = 0;
    api.script = (_req, res) => {
      const more = () => {
        while (sent < 64 * MEGABYTE) {
          sent += chunk.length;
          if (!res.write(chunk)) return void res.once("drain", more);
        }
        res.end();
      };
      more();
    };
    const res = await proxy.open(LIST);
    await eventually(() => res.readableLength > 0);
    const before = await whenUnchanged(() => sent);
    expect(before).toBeLessThan(24 * MEGABYTE); // the rest waits in the API server: only the buffers of the sockets are in between
    let got = 0;
    for await (const piece of res) got += (piece as Buffer).length;
    expect(got).toBe(64 * MEGABYTE);
  });

  it("does not buffer an upload: a slow API server slows the client down", async () => {
    api.script = (req, res) => {
      release = () => {
        req.resume();
        req.on("end", () => res.end());
      };
    };
    let release = () => {};
    const chunk = Buffer.alloc(256 * 1024, 97);
    const { request } = await import("node:https");
    const req = request(new URL(proxy.ready.url), {
      agent: proxy.agent,
      path: "/api/v1/namespaces/a/configmaps",
      method: "POST",
    });
    const answered = new Promise<number>((resolve, reject) => {
      req.on("response", (res) => {
        res.resume();
        resolve(res.statusCode ?? 0);
      });
      req.on("error", reject);
    });
    let sent = 0;
    const more = () => {
      while (sent < 64 * MEGABYTE) {
        sent += chunk.length;
        if (!req.write(chunk)) return void req.once("drain", more);
      }
      req.end();
    };
    more();
    expect(await whenUnchanged(() => sent)).toBeLessThan(24 * MEGABYTE);
    release();
    expect(await answered).toBe(200);
  });

  it("sends the head of a watch at once, and each event as it arrives", async () => {
    let push = (_text: string) => {};
    api.script = (_req, res) => {
      res.writeHead(200, { "content-type": "application/json" });
      res.flushHeaders();
      push = (text) => res.write(text);
    };
    const res = await proxy.open(WATCH);
    expect(res.statusCode).toBe(200);
    const events: string[] = [];
    res.on("data", (chunk: Buffer) => events.push(chunk.toString()));
    res.on("error", () => {});
    push("one\n");
    await eventually(() => events.join("") === "one\n");
    push("two\n");
    await eventually(() => events.join("") === "one\ntwo\n");
    res.destroy();
  });

  it("serves a lease beside 50 concurrent watches", async () => {
    api.script = (req, res) => {
      res.writeHead(200, { "content-type": "application/json" });
      if (req.url?.includes("watch=1")) res.write("event\n");
      else res.end("{}");
    };
    const watches = await Promise.all(Array.from({ length: 50 }, () => proxy.open(WATCH)));
    expect((await proxy.fetch("/apis/coordination.k8s.io/v1/namespaces/ops/leases/lock")).status).toBe(200);
    expect(await proxy.registry.getSingleMetricAsString("ctrlmesh_proxy_active_watches")).toContain(
      "ctrlmesh_proxy_active_watches 50",
    );
    for (const watch of watches) {
      watch.on("error", () => {});
      watch.destroy();
    }
    await eventually(async () =>
      (await proxy.registry.getSingleMetricAsString("ctrlmesh_proxy_active_watches")).includes("watches 0"),
    );
  });

  it("frees the upstream connection as soon as the client disconnects", async () => {
    api.script = (_req, res) => {
      res.writeHead(200);
      res.write("event\n");
    };
    const res = await proxy.open(WATCH);
    res.on("error", () => {});
    expect(api.open).toBe(1);
    res.destroy();
    await eventually(() => api.open === 0);
  });

  it("cancels the upstream request when the client disconnects before the answer", async () => {
    api.script = () => {};
    const pending = proxy.open(LIST);
    pending.catch(() => {});
    await eventually(() => api.seen.length === 1);
    proxy.agent.destroy();
    await expect(pending).rejects.toThrow();
    await eventually(() => api.open === 0);
  });

  it.each(["content-length", "chunked"])(
    "breaks the client's connection when the API server breaks off a body (%s)",
    async (kind) => {
      api.script = (_req, res) => {
        res.writeHead(200, kind === "chunked" ? {} : { "content-length": "1000000" });
        res.write("half of it", () => setImmediate(() => res.destroy()));
      };
      await expect(proxy.fetch(LIST)).rejects.toThrow(/aborted|socket hang up|ECONNRESET/);
    },
  );

  it("answers HEAD, 204 and 304 without a body and keeps the connection", async () => {
    api.script = (req, res) => {
      const status = Number(new URL(req.url ?? "", "http://x").searchParams.get("code"));
      if (req.method === "HEAD") res.writeHead(200, { "content-length": "5" });
      else res.writeHead(status);
      res.end();
    };
    const head = await proxy.fetch("/healthz?code=200", { method: "HEAD" });
    expect([head.status, head.headers["content-length"], head.body.length]).toEqual([200, "5", 0]);
    for (const code of [204, 304]) {
      const answer = await proxy.fetch(`/healthz?code=${code}`);
      expect([answer.status, answer.body.length, answer.headers["transfer-encoding"]]).toEqual([code, 0, undefined]);
    }
  });

  it("sends 100 Continue to a client that expects it, and no Expect header upstream", async () => {
    api.script = async (req, res) => {
      const body = await readAll(req);
      expect(req.headers.expect).toBeUndefined();
      res.end(body);
    };
    const { request } = await import("node:https");
    const answer = await new Promise<string>((resolve, reject) => {
      const req = request(new URL(proxy.ready.url), {
        agent: proxy.agent,
        method: "POST",
        path: "/api/v1/namespaces/a/configmaps",
        headers: { expect: "100-continue", "content-length": 5 },
      });
      req.on("continue", () => req.end("hello"));
      req.on("response", (res) => readAll(res).then((body) => resolve(body.toString()), reject));
      req.on("error", reject);
      req.flushHeaders();
    });
    expect(answer).toBe("hello");
  });

  it("sends a read once more when an idle connection turns out to be closed", async () => {
    await proxy.fetch(LIST);
    let first = true;
    api.script = (req, res) => {
      if (first) req.socket.destroy();
      else res.end("{}");
      first = false;
    };
    expect((await proxy.fetch(LIST)).status).toBe(200);
  });

  it("answers 503 without Retry-After when the connection breaks during a write, which the API server may have processed", async () => {
    api.script = (req) => req.socket.destroy();
    const answer = await proxy.fetch("/api/v1/namespaces/a/configmaps", {
      method: "POST",
      body: Buffer.from("{}"),
      headers: { "content-length": 2 },
    });
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toBeUndefined();
    expect(api.seen).toHaveLength(1);
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      kind: "Status",
      reason: "ServiceUnavailable",
      message: expect.stringMatching(/^ctrlmesh:/),
    });
  });

  it.each([
    ["GET http://elsewhere/api/v1/pods HTTP/1.1"],
    ["GET /api/v1/namespaces/a%2fb/pods HTTP/1.1"],
    ["GET /api/v1/../v1/pods HTTP/1.1"],
    ["GET /api/v1//pods HTTP/1.1"],
    ["GET /api/v1/pods?labelSelector=%zz HTTP/1.1"],
    ["OPTIONS * HTTP/1.1"],
  ])("refuses the malformed target %s", async (line) => {
    const answer = await raw(`${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain("x-ctrlmesh-error: BAD_REQUEST_TARGET");
    expect(api.seen).toHaveLength(0);
  });

  it("refuses HTTP/1.0, where a broken answer would look complete", async () => {
    expect(await raw("GET /api/v1/pods HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1.1 505 /);
    expect(api.seen).toHaveLength(0);
  });

  it("forwards repeated Impersonate-Group headers as separate lines", async () => {
    await proxy.fetch(LIST, { headers: { "Impersonate-User": "u", "Impersonate-Group": ["g1", "g2"] } });
    const { rawHeaders = [] } = api.seen[0] ?? {};
    const groups = rawHeaders.filter((_, index) => rawHeaders[index - 1]?.toLowerCase() === "impersonate-group");
    expect(groups).toEqual(["g1", "g2"]);
  });
});

/** The value once it has not changed for 300 ms. */
async function whenUnchanged(read: () => number): Promise<number> {
  let last = -1;
  let since = performance.now();
  await eventually(() => {
    const now = read();
    if (now !== last) since = performance.now();
    last = now;
    return performance.now() - since > 300;
  });
  return last;
}
