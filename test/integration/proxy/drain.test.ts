import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { type ProxyHarness, readAll, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let proxy: ProxyHarness;

beforeEach(async () => {
  api = await startFakeApi();
});

afterEach(async () => {
  await proxy.stop();
  await api.close();
});

describe("drain", () => {
  it("lets a running request finish, with Connection: close, and takes no new ones", async () => {
    proxy = await startProxy({ api });
    let finish = () => {};
    api.script = (_req, res) => {
      finish = () => res.end("late");
    };
    const pending = proxy.fetch("/api/v1/pods");
    await eventually(() => api.seen.length === 1);
    const drained = proxy.drain();
    await eventually(async () => {
      const answer = await fetch(`${proxy.ready.healthUrl}/readyz`);
      return answer.status === 500;
    });
    await expect(proxy.fetch("/api/v1/pods", { agent: false, ca: proxy.agent.options.ca })).rejects.toThrow(/ECONNREFUSED/);
    finish();
    const answer = await pending;
    expect([answer.body.toString(), answer.headers.connection]).toEqual(["late", "close"]);
    await drained;
  });

  it("does not wait for watches: they are cut once the rest is done", async () => {
    proxy = await startProxy({ api, drainMs: 60_000 });
    api.script = (_req, res) => void res.writeHead(200).write("event\n");
    const watch = await proxy.open("/api/v1/pods?watch=1");
    const cut = readAll(watch);
    cut.catch(() => {});
    await proxy.drain();
    await expect(cut).rejects.toThrow();
  });

  it("is bounded: a request that never ends is cut", async () => {
    proxy = await startProxy({ api, drainMs: 100 });
    api.script = () => {};
    const pending = proxy.fetch("/api/v1/pods");
    pending.catch(() => {});
    await eventually(() => api.seen.length === 1);
    await proxy.drain();
    await expect(pending).rejects.toThrow();
  });

  it("a restarted proxy has the same CA", async () => {
    proxy = await startProxy({ api });
    const again = await startProxy({ api, dataDir: proxy.dataDir, apiCaFile: proxy.apiCaFile });
    expect((await again.fetch("/healthz", { agent: proxy.agent })).status).toBe(200);
    await again.stop();
  });
});
