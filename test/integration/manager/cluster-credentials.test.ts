// What the manager sees of the certificates of another cluster, on real TLS connections.
import { afterEach, expect, test } from "vitest";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../../src/base/certificates.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { createWatchedClusters } from "../../../src/manager/cluster-namespaces/watched-clusters.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, startFakeApi } from "../../support/fake-api.ts";

const CLUSTER = { namespace: "fleet", name: "eu" };
const DAY_MS = 86_400_000;
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** An API server that ends each watch at once, so that the next connection comes soon. */
async function setup() {
  const api = await startFakeApi((req, res) => {
    if (req.url?.includes("watch=")) res.end();
    else answerJson(res, 200, { metadata: { resourceVersion: "5" }, items: [{ metadata: { name: "a" } }] });
  });
  const watched = createWatchedClusters({ userAgent: "mesh/test", clock: systemClock, random: () => 0, log: silentLogger() });
  ends.push(
    () => watched.runnable.stop(),
    () => api.close(),
  );
  const told: number[] = [];
  watched.onState(() => told.push(watched.endsOf(CLUSTER).length));
  const now = Date.now();
  return {
    api,
    watched,
    told,
    serve(ca: KeyCertificate, days: number) {
      api.useCertificate(issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now: now - 30 * DAY_MS, days: 30 + days }));
    },
    use: (caPem: string, token = "t") =>
      watched.use(CLUSTER, {
        server: api.url,
        caPem,
        tlsServerName: undefined,
        clientCert: undefined,
        clientKey: undefined,
        token: () => token,
      }),
    daysOf: (kind: string) =>
      watched.endsOf(CLUSTER).flatMap(({ of, endsMs = now }) => (of === kind ? Math.round((endsMs - now) / DAY_MS) : [])),
  };
}

test("a certificate that the server renews is seen without a new Secret", async () => {
  const { serve, use, daysOf, told } = await setup();
  const ca = createCa({ commonName: "eu", now: Date.now(), days: 100 });
  serve(ca, 3);
  use(ca.certPem);
  await eventually(() => expect(daysOf("ServerCertificate")).toEqual([3]), 5_000);
  expect(daysOf("KubeconfigCertificateAuthority")).toEqual([100]);
  serve(ca, 60);
  await eventually(() => expect(daysOf("ServerCertificate")).toEqual([60]), 30_000);
  expect(told.length).toBeLessThan(6);
});

test("a certificate after its end is named though no connection opens, and a new one clears it", async () => {
  const { serve, use, daysOf, watched } = await setup();
  const ca = createCa({ commonName: "eu", now: Date.now() - 30 * DAY_MS, days: 100 });
  serve(ca, -1);
  use(ca.certPem);
  await eventually(() => expect(watched.endsOf(CLUSTER)).toContainEqual({ of: "ServerCertificate", endsMs: undefined }), 10_000);
  expect(watched.stateOf(CLUSTER)).toMatchObject({ reason: "Unreachable", message: expect.stringContaining("CERT_HAS_EXPIRED") });
  serve(ca, 60);
  await eventually(() => expect(daysOf("ServerCertificate")).toEqual([60]), 30_000);
});

test("a connection is used for a few requests only, so a client that never rests sees a new certificate", async () => {
  const { api, serve } = await setup();
  const ca = createCa({ commonName: "eu", now: Date.now(), days: 100 });
  serve(ca, 3);
  const seen: string[] = [];
  const connection = { server: api.url, caPem: ca.certPem, token: () => "", userAgent: "mesh/test" };
  const client = createKubeClient({ ...connection, onServerCertificate: ({ serialNumber }) => void seen.push(serialNumber) });
  ends.push(() => client.close());
  const ask = async (times: number) => {
    for (let at = 0; at < times; at++) await client.request({ method: "GET", path: "/api/v1/namespaces" });
  };
  await ask(6);
  serve(ca, 60);
  await ask(10);
  expect(new Set(seen).size).toBe(2);
  expect(seen.length).toBeLessThan(8);
});

test("a new token of the Secret counts at once, and the server's certificate stays known", async () => {
  const { serve, use, daysOf } = await setup();
  const ca = createCa({ commonName: "eu", now: Date.now(), days: 100 });
  const token = (days: number) =>
    `h.${Buffer.from(JSON.stringify({ exp: Date.now() / 1_000 + days * 86_400 })).toString("base64url")}.s`;
  serve(ca, 20);
  use(ca.certPem, token(2));
  await eventually(() => expect([daysOf("KubeconfigToken"), daysOf("ServerCertificate")]).toEqual([[2], [20]]), 5_000);
  use(ca.certPem, token(200));
  expect([daysOf("KubeconfigToken"), daysOf("ServerCertificate")]).toEqual([[200], [20]]);
});

test("a server with a huge chain, of the year 9999, is like any other", async () => {
  const { api, use, daysOf, watched } = await setup();
  const now = Date.now();
  const ca = createCa({ commonName: "eu", now, days: 100 });
  const days = Math.floor((Date.UTC(9999, 11, 30) - now) / DAY_MS);
  const leaf = issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now, days });
  const junk = Array.from({ length: 150 }, (_, at) => createCa({ commonName: `junk-${at}`, now, days: -1 }).certPem).join("");
  api.useCertificate({ ...leaf, certPem: leaf.certPem + junk });
  use(ca.certPem + junk.slice(0, 40_000).replace(/-----BEGIN CERTIFICATE-----[^-]*$/, ""));
  await eventually(() => expect(watched.stateOf(CLUSTER).reason).toBe("Listed"), 10_000);
  expect([daysOf("ServerCertificate"), daysOf("KubeconfigCertificateAuthority")]).toEqual([[days], [100]]);
});
