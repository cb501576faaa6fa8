// The proxy on further addresses (--also-listen). The same server answers there with the same certificate.

import { once } from "node:events";
import { get } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { freePort } from "../../support/free-port.ts";
import { type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let proxy: ProxyHarness | undefined;

beforeEach(async () => {
  api = await startFakeApi();
});
afterEach(async () => {
  await proxy?.stop();
  proxy = undefined;
  await api.close();
});

const ask = (url: string, harness: ProxyHarness) =>
  new Promise<number | undefined>((resolve, reject) => {
    const request = get(url, { agent: harness.agent, path: "/api/v1/namespaces/a/pods/p" }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode));
    });
    request.once("error", reject);
  });

it("the proxy answers on 127.0.0.1 and [::1], and closes every listener when it drains", async () => {
  const [second, third] = [await freePort(), await freePort()];
  proxy = await startProxy({ api, flags: { "also-listen": `[::1]:${second},127.0.0.1:${third}` } });
  const urls = [proxy.ready.url, `https://[::1]:${second}`, `https://127.0.0.1:${third}`];
  const harness = proxy;
  const answers = await Promise.all(urls.map((url) => ask(url, harness)));
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]).toBeLessThan(500);
  await proxy.drain();
  for (const url of urls) await expect(ask(url, harness)).rejects.toThrow(/ECONNREFUSED|socket hang up|ECONNRESET/);
});

it("the proxy does not start if one of the addresses is in use, and names that address", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  await expect(startProxy({ api, flags: { "also-listen": `127.0.0.1:${port}` } })).rejects.toThrow(`127.0.0.1:${port}`);
  taken.close();
});
