// The certificate of the mesh. The proxy requests it from a manager over real TLS and serves it to a client that trusts only the mesh.
import { X509Certificate } from "node:crypto";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KeyCertificate } from "../../../src/base/certificates.ts";
import { systemRandom } from "../../../src/base/clock.ts";
import { LOG_FORMAT } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import type { CertificateReplyMessage } from "../../../src/mesh/contract/messages.ts";
import { createIdentity } from "../../../src/proxy/identity/create-identity.ts";
import { openManagerChannel } from "../../../src/proxy/identity/manager-channel.ts";
import { createStateFolder } from "../../../src/proxy/state/state-folder.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import {
  createProjectedVolume,
  crossSigned,
  issue,
  MANAGER_HOST,
  managerCertificate,
  newMeshCa,
  type ProjectedVolume,
  proxyCertificate,
} from "../../support/mesh-identity.ts";
import { type HarnessOptions, type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";
import { type ManagerOptions, type ScriptedManager, startManager } from "../../support/scripted-manager.ts";

const HOUR_MS = 3_600_000;
const TOKEN = "header.pod-bound-secret.signature";

let api: FakeApi;
let ca: KeyCertificate;
let volume: ProjectedVolume;
let clock: FakeClock;
let lines: string[];
let stops: (() => unknown)[];

beforeEach(async () => {
  stops = [];
  lines = [];
  api = await startFakeApi();
  stops.push(() => api.close());
  ca = newMeshCa();
  volume = await createProjectedVolume();
  stops.push(() => volume.remove());
  await volume.write({ ca: ca.certPem, token: TOKEN });
  clock = createFakeClock(Date.now());
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  expect(lines.join()).not.toContain("pod-bound-secret");
  const kept = await readdir(volume.dataDir).catch(() => []);
  for (const file of kept) expect(await readFile(join(volume.dataDir, file), "utf8")).not.toContain("pod-bound-secret");
});

async function runManager(options: ManagerOptions = {}, port = 0): Promise<ScriptedManager> {
  const started = await startManager(port, {
    host: MANAGER_HOST,
    tls: managerCertificate(ca),
    certify: ({ publicKey }) => issue(ca, publicKey),
    ...options,
  });
  stops.push(() => started.stop());
  return started;
}

const log = () => pino(LOG_FORMAT, { write: (line: string) => void lines.push(line) });

/** A proxy with the identity of the mesh. */
async function runProxy(endpoint: string, more: Partial<HarnessOptions> = {}): Promise<ProxyHarness> {
  const flags = {
    manager: endpoint,
    identity: "mesh",
    "manager-ca": volume.caFile,
    token: volume.tokenFile,
    "data-dir": volume.dataDir,
  };
  const started = await startProxy({ api, flags, identityClock: clock, log: log(), ...more });
  stops.push(() => started.stop());
  return started;
}

/** Requests the certificate of a proxy without starting a proxy. The manager may never issue the certificate. */
async function requestCertificate(endpoint: string, connect = openManagerChannel) {
  const config = {
    manager: endpoint,
    identity: { managerCa: volume.caFile, token: volume.tokenFile },
    tls: undefined,
    dataDir: volume.dataDir,
  };
  const registry = createRegistry("proxy", "test");
  const state = createStateFolder(volume.dataDir, log());
  const deps = { config, state, registry, clock, random: systemRandom, log: log(), connect };
  const certificate = createIdentity(deps).certificate;
  const stopping = new AbortController();
  const started = certificate.start(stopping.signal);
  stops.push(async () => {
    stopping.abort();
    await started;
    await certificate.stop();
  });
  return { certificate, started, registry };
}

/** Advances the clock of the certificate until the check passes. */
const eventuallyAsClockRuns = (check: () => unknown, stepMs = 1_000) =>
  eventually(async () => {
    await clock.advance(stepMs);
    return Boolean(await check());
  });

/** The certificate that the server presents on a new connection. */
function servedCertificate(url: string, trusted: string): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ ca: trusted, keepAlive: false });
    const req = request(new URL(url), { agent, path: "/api/v1/pods" }, (res) => {
      const served =
        "getPeerX509Certificate" in res.socket
          ? (res.socket as import("node:tls").TLSSocket).getPeerX509Certificate()
          : undefined;
      res.resume();
      res.once("end", () => (served === undefined ? reject(new Error("no certificate")) : resolve(served)));
    });
    req.on("error", reject);
    req.end();
  });
}

describe("a proxy with the identity of the mesh", () => {
  it("serves a client that trusts only the mesh, with a certificate from the manager for the proxy's own key", async () => {
    const manager = await runManager();
    const { fetch, ready, registry } = await runProxy(manager.endpoint);
    expect(ready.ca).toBe(volume.caFile);
    expect((await fetch("/api/v1/pods")).status).toBe(200);
    expect(manager.authorizations).toEqual([`Bearer ${TOKEN}`]);
    const served = await servedCertificate(ready.url, ca.certPem);
    expect(served.publicKey.export({ type: "spki", format: "der" })).toEqual(Buffer.from(manager.requests[0]?.publicKey ?? []));
    expect(await registry.metrics()).toContain(
      `ctrlmesh_certificate_expiry_timestamp_seconds{name="serving"} ${served.validToDate.getTime() / 1000}`,
    );
  });

  it("renews its certificate under traffic without a failed request or a broken connection", async () => {
    const manager = await runManager();
    const { fetch, ready, agent } = await runProxy(manager.endpoint);
    const first = (await servedCertificate(ready.url, ca.certPem)).serialNumber;
    let over = false;
    const failures: unknown[] = [];
    let answers = 0;
    const traffic = Array.from({ length: 4 }, async () => {
      while (!over) {
        const answer = await fetch("/api/v1/pods").catch((error: unknown) => failures.push(error));
        if (typeof answer === "object" && answer.status === 200) answers++;
      }
    });
    await eventually(() => answers > 20);
    const ports = () =>
      Object.values(agent.sockets)
        .concat(Object.values(agent.freeSockets))
        .flatMap((all) => (all ?? []).map((s) => s.localPort))
        .sort();
    const before = new Set(ports());
    await clock.advance(12 * HOUR_MS);
    await eventuallyAsClockRuns(() => manager.requests.length > 1);
    await eventually(async () => (await servedCertificate(ready.url, ca.certPem)).serialNumber !== first);
    const seen = answers;
    await eventually(() => answers > seen + 20);
    over = true;
    await Promise.all(traffic);
    expect(failures).toEqual([]);
    expect(before.size).toBe(4);
    expect(new Set(ports())).toEqual(before);
    const keys = new Set(manager.requests.map(({ publicKey }) => Buffer.from(publicKey).toString("hex")));
    expect(keys.size).toBe(manager.requests.length);
  });

  it("serves at once after a restart while the manager is away, and renews its certificate when the manager is back", async () => {
    const manager = await runManager();
    const before = await runProxy(manager.endpoint);
    const { serialNumber } = await servedCertificate(before.ready.url, ca.certPem);
    const path = join(volume.dataDir, "serving-certificate.json");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await before.stop();
    stops.splice(stops.indexOf(before.stop), 1);
    manager.stop();
    const after = await runProxy(manager.endpoint);
    expect((await servedCertificate(after.ready.url, ca.certPem)).serialNumber).toBe(serialNumber);
    const readyz = async () => (await globalThis.fetch(`${after.ready.healthUrl}/readyz`)).text();
    expect(await readyz()).toBe("ok");
    await clock.advance(13 * HOUR_MS);
    await eventuallyAsClockRuns(async () => (await readyz()).startsWith("ok, but the serving certificate ends at "));
    expect(await readyz()).toContain(`the manager at ${manager.endpoint} is not available`);
    await runManager({}, manager.port);
    await eventuallyAsClockRuns(async () => (await readyz()) === "ok", 60_000);
    expect((await servedCertificate(after.ready.url, ca.certPem)).serialNumber).not.toBe(serialNumber);
  });

  it("waits before it serves, and says why, without a manager and a stored certificate", async () => {
    const { certificate, started } = await requestCertificate(`${MANAGER_HOST}:1`);
    await eventuallyAsClockRuns(() => certificate.notReady?.includes(`the manager at ${MANAGER_HOST}:1 is not available`));
    expect(certificate.notReady).toMatch(/^no certificate from the manager yet: .*ECONNREFUSED/);
    expect(() => certificate.current()).toThrow(/not started/);
    expect(await Promise.race([started, "waits"])).toBe("waits");
  });

  it("keeps an expired certificate while the manager is away, and reports this in readyz and as an error in the log", async () => {
    const manager = await runManager();
    const { ready, fetch } = await runProxy(manager.endpoint);
    manager.stop();
    await clock.advance(25 * HOUR_MS);
    const readyz = async () => (await globalThis.fetch(`${ready.healthUrl}/readyz`)).text();
    await eventuallyAsClockRuns(async () => (await readyz()).includes("the operator cannot connect any more"));
    await eventuallyAsClockRuns(() =>
      lines.some((line) => line.includes('"level":"error"') && line.includes("the serving certificate is over")),
    );
    expect((await fetch("/api/v1/pods")).status).toBe(200); // by the real clock the certificate is valid
  });
});

describe("a stored certificate", () => {
  const stored = () => join(volume.dataDir, "serving-certificate.json");
  const withStored = async () => {
    const manager = await runManager();
    const first = await runProxy(manager.endpoint);
    await first.stop();
    stops.splice(stops.indexOf(first.stop), 1);
    return manager;
  };

  it.each([
    ["is half-written", (text: string) => text.slice(0, text.length / 2)],
    ["is empty", () => ""],
    ["has another key", (text: string) => JSON.stringify({ ...JSON.parse(text), key: proxyCertificate(ca).keyPem })],
    ["has no key", (text: string) => JSON.stringify({ ...JSON.parse(text), key: "" })],
  ])("that %s is replaced before use", async (_name, spoil) => {
    const manager = await withStored();
    await writeFile(stored(), spoil(await readFile(stored(), "utf8")));
    await runProxy(manager.endpoint);
    expect(manager.requests).toHaveLength(2);
    expect(lines.join()).toContain("the stored certificate is not usable");
    expect(lines.join()).not.toContain("PRIVATE KEY");
    expect(JSON.parse(await readFile(stored(), "utf8"))).toMatchObject({ key: expect.stringContaining("PRIVATE KEY") });
  });

  it("of a CA that is no longer trusted is not used", async () => {
    const manager = await withStored();
    manager.stop();
    ca = newMeshCa("another");
    await volume.write({ ca: ca.certPem, token: TOKEN });
    const next = await runManager({}, manager.port);
    const { ready } = await runProxy(next.endpoint);
    expect((await servedCertificate(ready.url, ca.certPem)).checkIssued(new X509Certificate(ca.certPem))).toBe(true);
  });
});

describe("a false manager or an invalid answer", () => {
  it("a manager of another CA is not trusted, and gets no token", async () => {
    const manager = await runManager({ tls: managerCertificate(newMeshCa("other")) });
    const { certificate } = await requestCertificate(manager.endpoint);
    await eventuallyAsClockRuns(() => certificate.notReady?.includes("is not available"));
    expect(manager.authorizations).toEqual([]);
  });

  it("a proxy in the manager's place is not trusted, although its certificate is of the mesh", async () => {
    const manager = await runManager({ tls: proxyCertificate(ca) });
    const { certificate } = await requestCertificate(manager.endpoint);
    await eventuallyAsClockRuns(() => certificate.notReady?.includes("does not match certificate's altnames"));
    // The proxy is not trusted at an address in its certificate either, if the manager's endpoint is a name.
    const local = await runManager({ tls: proxyCertificate(ca), host: "127.0.0.1" });
    const byName = await requestCertificate("ctrlmesh-manager.ctrlmesh-system.svc:5447", (_to, pass) =>
      openManagerChannel(local.endpoint, pass),
    );
    await eventuallyAsClockRuns(() => byName.certificate.notReady?.includes("does not match certificate's altnames"));
    expect([...manager.authorizations, ...local.authorizations]).toEqual([]);
    // The manager's own certificate is trusted at any address.
    const real = await runManager({ host: "127.0.0.1" });
    const good = await requestCertificate("ctrlmesh-manager.ctrlmesh-system.svc:5447", (_to, pass) =>
      openManagerChannel(real.endpoint, pass),
    );
    await eventuallyAsClockRuns(() => good.certificate.notReady === undefined);
  });

  it("a plain-text manager gets no token", async () => {
    const { tls: _, ...plain } = { tls: undefined, host: MANAGER_HOST };
    const manager = await startManager(0, plain);
    stops.push(() => manager.stop());
    const { certificate } = await requestCertificate(manager.endpoint);
    await eventuallyAsClockRuns(() => certificate.notReady?.includes("is not available"));
    expect(manager.authorizations).toEqual([]);
  });

  it.each<[string, (publicKey: Uint8Array) => CertificateReplyMessage, string]>([
    ["for another key", () => ({ chainPem: proxyCertificate(ca).certPem, trustPem: ca.certPem }), "it is for another key"],
    ["of another CA", (key) => issue(newMeshCa("other"), key), "it does not lead to a CA of the mesh"],
    [
      "of a CA that it does not trust itself",
      (key) => issue(ca, key, { trustPem: newMeshCa("other").certPem }),
      "it does not lead to a CA of the mesh",
    ],
    ["without the names", (key) => issue(ca, key, { dnsNames: ["localhost"] }), "it is not for kubernetes, kubernetes.default"],
    ["that has expired", (key) => issue(ca, key, { now: Date.now() - 48 * HOUR_MS }), "and not now"],
    [
      "that is not a certificate",
      () => ({ chainPem: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", trustPem: ca.certPem }),
      "not a certificate",
    ],
    ["that is missing", () => ({ chainPem: "", trustPem: "" }), "no PEM certificate"],
    ["over the size limit", () => ({ chainPem: "x".repeat(1_000_000), trustPem: ca.certPem }), "over 65536 characters"],
  ])("a certificate %s is not used", async (_name, reply, why) => {
    const manager = await runManager({ certify: ({ publicKey }) => reply(publicKey) });
    const { certificate, registry } = await requestCertificate(manager.endpoint);
    await eventuallyAsClockRuns(() => certificate.notReady?.includes(why));
    expect(() => certificate.current()).toThrow(/not started/);
    expect(await registry.metrics()).toMatch(/ctrlmesh_proxy_certificate_requests_total\{result="failed"\} [1-9]/);
  });
});

describe("the token of the proxy", () => {
  it("is read from its file for each call", async () => {
    const manager = await runManager();
    await runProxy(manager.endpoint);
    await volume.write({ ca: ca.certPem, token: "second-pod-bound-secret\n" });
    await clock.advance(12 * HOUR_MS);
    await eventuallyAsClockRuns(() => manager.requests.length > 1);
    expect(manager.authorizations.slice(0, 2)).toEqual([`Bearer ${TOKEN}`, "Bearer second-pod-bound-secret"]);
  });

  it.each([
    ["missing", undefined, "there is no such file"],
    ["empty", " \n", "it is empty"],
    ["malformed", "pod-bound-secret\u0001 with rubbish", "there is no token in it"],
  ])(
    "is awaited while its file is %s: the reason names the file, and the request goes out once the file is good",
    async (_name, token, why) => {
      await volume.write({ ca: ca.certPem, ...(token === undefined ? {} : { token }) });
      const manager = await runManager();
      const { certificate, started } = await requestCertificate(manager.endpoint);
      await eventuallyAsClockRuns(() => certificate.notReady?.includes(why));
      expect(certificate.notReady).toContain(volume.tokenFile);
      expect(manager.requests).toEqual([]);
      await volume.write({ ca: ca.certPem, token: TOKEN });
      await eventuallyAsClockRuns(() => manager.requests.length === 1);
      await started;
    },
  );

  it("is not sent before the CA's file exists: the reason names that file", async () => {
    await volume.write({ token: TOKEN });
    const manager = await runManager();
    const { certificate } = await requestCertificate(manager.endpoint);
    await eventuallyAsClockRuns(() => certificate.notReady?.includes(`reading the mesh's CA from ${volume.caFile}`));
    await volume.write({ ca: ca.certPem, token: TOKEN });
    await eventuallyAsClockRuns(() => certificate.notReady === undefined);
  });

  it("that the manager refuses is reported in the manager's words, counted, logged once, and sent again ever more slowly", async () => {
    let refusal = true;
    const manager = await runManager({
      admit: () => (refusal ? { code: status.PERMISSION_DENIED, details: "pod ops/operator-0 carries no proxy" } : undefined),
    });
    const { certificate, registry } = await requestCertificate(manager.endpoint);
    await eventuallyAsClockRuns(() => certificate.notReady?.endsWith("7 PERMISSION_DENIED: pod ops/operator-0 carries no proxy"));
    expect(certificate.notReady).toContain(`the manager at ${manager.endpoint} refuses this pod`);
    for (let second = 0; second < 300; second++) {
      const seen = manager.requests.length;
      await clock.advance(1_000);
      if (manager.requests.length > seen) await eventually(() => manager.authorizations.length === manager.requests.length);
    }
    expect(manager.requests.length).toBeLessThan(20);
    expect(lines.filter((line) => line.includes("has not issued a certificate"))).toHaveLength(1);
    expect(await registry.metrics()).toMatch(/ctrlmesh_proxy_certificate_requests_total\{result="refused"\} [1-9]/);
    refusal = false;
    await eventuallyAsClockRuns(() => certificate.notReady === undefined, 10_000);
  });
});

describe("a new CA of the mesh", () => {
  it("makes the proxy renew when the file changes, with a certificate for clients of the old CA and of the new one", async () => {
    const [older, newer] = [ca, newMeshCa("newer")];
    const both = `${older.certPem}${newer.certPem}`;
    let answer = (key: Uint8Array) => issue(older, key, { trustPem: older.certPem });
    const manager = await runManager({ certify: ({ publicKey }) => answer(publicKey) });
    const { ready } = await runProxy(manager.endpoint);
    await servedCertificate(ready.url, older.certPem);
    // The manager signs with the new CA. Then the kubelet updates the file.
    answer = (key) => issue(newer, key, { trustPem: both, behind: crossSigned(older, newer) });
    await volume.write({ ca: both, token: TOKEN });
    await eventuallyAsClockRuns(() => manager.requests.length === 2);
    await eventually(async () => (await servedCertificate(ready.url, older.certPem)).issuer === "CN=newer");
    await servedCertificate(ready.url, newer.certPem);
    await servedCertificate(ready.url, both);
    // The old CA is removed: the manager serves with the new one.
    manager.stop();
    ca = newer;
    answer = (key) => issue(newer, key);
    await volume.write({ ca: newer.certPem, token: TOKEN });
    const next = await runManager({ certify: ({ publicKey }) => answer(publicKey) }, manager.port);
    await eventuallyAsClockRuns(() => next.requests.length > 0);
    await eventually(() => servedCertificate(ready.url, newer.certPem));
  });

  it("causes only one request if the manager knows the CA before the kubelet updates the file", async () => {
    const newer = newMeshCa("newer");
    const both = `${newer.certPem}${ca.certPem}`;
    const manager = await runManager({ certify: ({ publicKey }) => issue(ca, publicKey, { trustPem: both }) });
    await runProxy(manager.endpoint);
    await clock.advance(60_000);
    await volume.write({ ca: `${ca.certPem}# the same, in another order\n${newer.certPem}`, token: TOKEN });
    for (let step = 0; step < 10; step++) await clock.advance(10_000);
    expect(manager.requests).toHaveLength(1);
  });
});
