// The proxy with the listener for the operator's webhooks: what waits for the operator's certificate, and what does not.
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { eventually } from "../../support/eventually.ts";
import { startFakeApi } from "../../support/fake-api.ts";
import { readAll, startProxy } from "../../support/proxy-harness.ts";
import { reviewOf, SERVICE } from "../../support/review-world.ts";

it("starts without the operator's certificate, is ready with it, and answers reviews then", async () => {
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
  const health = async (path: string) => {
    const answer = await fetch(`${healthUrl}${path}`);
    return [answer.status, await answer.text()];
  };
  expect(await health("/startupz")).toEqual([200, "ok"]);
  expect(await health("/readyz")).toEqual([500, `the operator's webhooks: ${certDir} has no tls.crt and tls.key yet`]);
  expect((await proxy.fetch("/api/v1/pods")).status).toBe(200);
  const review = () =>
    new Promise<string>((resolve, reject) => {
      const agent = new Agent({ keepAlive: false, ca: ca.certPem, servername: SERVICE });
      const call = request(new URL("/mutate?timeout=5s", webhookUrl), { agent, method: "POST" }, (res) =>
        readAll(res).then((body) => resolve(body.toString()), reject),
      );
      call.on("error", reject).end(JSON.stringify(reviewOf("prod")));
    });
  await expect(review()).rejects.toThrow(/handshake failure/);

  await writeFile(join(certDir, "tls.key"), key);
  await writeFile(join(certDir, "tls.crt"), cert);
  await eventually(async () => expect(await health("/readyz")).toEqual([200, "ok"]));
  expect(JSON.parse(await review())).toEqual(reviewOf("prod"));
  expect(await (await fetch(`${healthUrl}/metrics`)).text()).toMatch(
    /^ctrlmesh_proxy_reviews_total\{result="local",from="api-server"[^}]*\} 1$/m,
  );

  await proxy.stop();
  await api.close();
  operator.close();
  await rm(certDir, { recursive: true });
});
