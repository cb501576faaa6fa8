// The proxy with the listener for the operator's webhooks: what waits for the operator's certificate, and what does not.
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { eventually } from "../../support/eventually.ts";
import { startFakeApi } from "../../support/fake-api.ts";
import { type ProxyHarness, readAll, startProxy } from "../../support/proxy-harness.ts";
import { reviewOf, SERVICE } from "../../support/review-world.ts";

interface World {
  readonly proxy: ProxyHarness;
  readonly certDir: string;
  /** The path of a page of the health listener: its status and its text. */
  health(path: string): Promise<readonly [number, string]>;
  review(): Promise<string>;
  writeCertificate(): Promise<void>;
  stop(): Promise<void>;
}

/** An operator that answers a review with the review itself, and its proxy. */
async function startWorld(): Promise<World> {
  const ca = createCa({ commonName: "operator", now: Date.now() });
  const { certPem: cert, keyPem: key } = issueServerCertificate(ca, { dnsNames: [SERVICE], now: Date.now() });
  const operator = createServer({ cert, key }, (req, res) => void req.pipe(res)).listen(0, "127.0.0.1");
  await once(operator, "listening");
  const certDir = await mkdtemp(join(tmpdir(), "ctrlmesh-cert-dir-"));
  const api = await startFakeApi();
  const proxy = await startProxy({
    api,
    drainMs: 500,
    flags: {
      "webhook-listen": "127.0.0.1:0",
      "webhook-port": String((operator.address() as AddressInfo).port),
      "webhook-cert-dir": certDir,
    },
  });
  const { healthUrl, webhookUrl = "" } = proxy.ready;
  return {
    proxy,
    certDir,
    async health(path) {
      const answer = await fetch(`${healthUrl}${path}`);
      return [answer.status, await answer.text()];
    },
    review: () =>
      new Promise<string>((resolve, reject) => {
        const agent = new Agent({ keepAlive: false, ca: ca.certPem, servername: SERVICE });
        const call = request(new URL("/mutate?timeout=5s", webhookUrl), { agent, method: "POST" }, (res) =>
          readAll(res).then((body) => resolve(body.toString()), reject),
        );
        call.on("error", reject).end(JSON.stringify(reviewOf("prod")));
      }),
    async writeCertificate() {
      await writeFile(join(certDir, "tls.key"), key);
      await writeFile(join(certDir, "tls.crt"), cert);
    },
    async stop() {
      await proxy.stop();
      await api.close();
      operator.close();
      await rm(certDir, { recursive: true });
    },
  };
}

it("starts without the operator's certificate, is ready with it, and answers reviews then", async () => {
  const { proxy, certDir, health, review, writeCertificate, stop } = await startWorld();
  expect(await health("/startupz")).toEqual([200, "ok"]);
  expect(await health("/readyz")).toEqual([500, `the operator's webhooks: ${certDir} has no tls.crt and tls.key yet`]);
  expect((await proxy.fetch("/api/v1/pods")).status).toBe(200);
  await expect(review()).rejects.toThrow(/handshake failure/);

  await writeCertificate();
  await eventually(async () => expect(await health("/readyz")).toEqual([200, "ok"]));
  expect(JSON.parse(await review())).toEqual(reviewOf("prod"));
  const counted = /^ctrlmesh_proxy_reviews_total\{result="local",from="api-server"[^}]*\} 1$/m;
  await eventually(async () => expect((await health("/metrics"))[1]).toMatch(counted));
  await stop();
});

it("a thread of the listener that ends costs neither the process nor the operator's requests, and another one serves at the same port", async () => {
  const threads: Worker[] = [];
  const onThread = (thread: Worker) => void threads.push(thread);
  process.on("worker", onThread);
  const { proxy, health, review, writeCertificate, stop } = await startWorld();
  await writeCertificate();
  await eventually(async () => expect(await health("/readyz")).toEqual([200, "ok"]));
  for (let ends = 1; ends <= 2; ends++) {
    await threads.at(-1)?.terminate();
    expect((await proxy.fetch("/api/v1/pods")).status).toBe(200);
    expect(await health("/readyz")).toEqual([
      ...[
        500,
        "the operator's webhooks: the thread that serves them is not listening yet; if this lasts, the proxy's log has the reason",
      ],
    ]);
    await eventually(async () => expect(await health("/readyz")).toEqual([200, "ok"]));
    expect(JSON.parse(await review())).toEqual(reviewOf("prod"));
    expect((await health("/metrics"))[1]).toMatch(new RegExp(`^ctrlmesh_proxy_webhook_thread_restarts_total\\S* ${ends}$`, "m"));
  }
  process.off("worker", onThread);
  await stop();
});

it("the page of the next requests shows those of the listener's thread", async () => {
  const { health, review, writeCertificate, stop } = await startWorld();
  await writeCertificate();
  await eventually(async () => expect(await health("/readyz")).toEqual([200, "ok"]));
  const page = health("/debug/requests?count=1&seconds=10");
  // The page begins to take copies a moment after it is asked for.
  let isShown = false;
  void page.then(() => {
    isShown = true;
  });
  while (!isShown) await review();
  expect(JSON.parse((await page)[1])).toMatchObject({
    requests: [{ direction: "webhook", decision: "local", namespace: "prod" }],
  });
  await stop();
});
