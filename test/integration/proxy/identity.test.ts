// The certificate of the mesh: asked for at a manager over real TLS, served to a client that trusts only the mesh.
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
import { createIdentity } from "../../../src/proxy/identity/create-identity.ts";
import { openManagerChannel } from "../../../src/proxy/identity/manager-channel.ts";
import { CERTIFICATE_FILE_NAME } from "../../../src/proxy/identity/stored-certificate.ts";
import { loadMeshService } from "../../../src/wire/load-proto.ts";
import type { CertificateReplyMessage } from "../../../src/wire/messages.ts";
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

async function manager(options: ManagerOptions = {}, port = 0): Promise<ScriptedManager> {
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
async function proxy(endpoint: string, more: Partial<HarnessOptions> = {}): Promise<ProxyHarness> {
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

/** Only the certificate of a proxy, which may never come. */
async function certificate(endpoint: string, connect = openManagerChannel) {
  const config = {
    manager: endpoint,
    identity: { managerCa: volume.caFile, token: volume.tokenFile },
    tls: undefined,
    dataDir: volume.dataDir,
  };
  const registry = createRegistry("proxy", "test");
  const deps = { config, registry, clock, random: systemRandom, log: log(), service: loadMeshService(), connect };
  const made = createIdentity(deps).certificate;
  const stopping = new AbortController();
  const started = made.start(stopping.signal);
  stops.push(async () => {
    stopping.abort();
    await started;
    await made.stop();
  });
  return { made, started, registry };
}

/** Lets the certificate's clock run until something is so. */
const inTime = (check: () => unknown, stepMs = 1_000) =>
  eventually(async () => {
    await clock.advance(stepMs);
    return Boolean(await check());
  });

/** The certificate that a new connection is shown. */
function shownTo(url: string, trusted: string): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ ca: trusted, keepAlive: false });
    const req = request(new URL(url), { agent, path: "/api/v1/pods" }, (res) => {
      const shown =
        "getPeerX509Certificate" in res.socket
          ? (res.socket as import("node:tls").TLSSocket).getPeerX509Certificate()
          : undefined;
      res.resume();
      res.once("end", () => (shown === undefined ? reject(new Error("no certificate")) : resolve(shown)));
    });
    req.on("error", reject);
    req.end();
  });
}

describe("a proxy with the identity of the mesh", () => {
  it("serves with a certificate from the manager, for a key that it has made, to a client that trusts only the mesh", async () => {
    const boss = await manager();
    const { fetch, ready, registry } = await proxy(boss.endpoint);
    expect(ready.ca).toBe(volume.caFile);
    expect((await fetch("/api/v1/pods")).status).toBe(200);
    expect(boss.authorizations).toEqual([`Bearer ${TOKEN}`]);
    const shown = await shownTo(ready.url, ca.certPem);
    expect(shown.publicKey.export({ type: "spki", format: "der" })).toEqual(Buffer.from(boss.requests[0]?.publicKey ?? []));
    expect(await registry.metrics()).toContain(
      `ctrlmesh_certificate_expiry_timestamp_seconds{name="serving"} ${shown.validToDate.getTime() / 1000}`,
    );
  });

  it("is renewed under traffic with no failed request and no connection cut", async () => {
    const boss = await manager();
    const { fetch, ready, agent } = await proxy(boss.endpoint);
    const first = (await shownTo(ready.url, ca.certPem)).serialNumber;
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
    await inTime(() => boss.requests.length > 1);
    await eventually(async () => (await shownTo(ready.url, ca.certPem)).serialNumber !== first);
    const seen = answers;
    await eventually(() => answers > seen + 20);
    over = true;
    await Promise.all(traffic);
    expect(failures).toEqual([]);
    expect(before.size).toBe(4);
    expect(new Set(ports())).toEqual(before);
    const keys = new Set(boss.requests.map(({ publicKey }) => Buffer.from(publicKey).toString("hex")));
    expect(keys.size).toBe(boss.requests.length);
  });

  it("serves at once after a restart while the manager is away, and renews once it is back", async () => {
    const boss = await manager();
    const before = await proxy(boss.endpoint);
    const { serialNumber } = await shownTo(before.ready.url, ca.certPem);
    const path = join(volume.dataDir, CERTIFICATE_FILE_NAME);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await before.stop();
    stops.splice(stops.indexOf(before.stop), 1);
    boss.stop();
    const after = await proxy(boss.endpoint);
    expect((await shownTo(after.ready.url, ca.certPem)).serialNumber).toBe(serialNumber);
    const readyz = async () => (await globalThis.fetch(`${after.ready.healthUrl}/readyz`)).text();
    expect(await readyz()).toBe("ok");
    await clock.advance(13 * HOUR_MS);
    await inTime(async () => (await readyz()).startsWith("ok, but the serving certificate ends at "));
    expect(await readyz()).toContain(`the manager at ${boss.endpoint} is not available`);
    await manager({}, boss.port);
    await inTime(async () => (await readyz()) === "ok", 60_000);
    expect((await shownTo(after.ready.url, ca.certPem)).serialNumber).not.toBe(serialNumber);
  });

  it("waits without manager and without stored certificate, and says so, before it serves anything", async () => {
    const { made, started } = await certificate(`${MANAGER_HOST}:1`);
    await inTime(() => made.notReady?.includes(`the manager at ${MANAGER_HOST}:1 is not available`));
    expect(made.notReady).toMatch(/^no certificate from the manager yet: .*ECONNREFUSED/);
    expect(() => made.current()).toThrow(/not started/);
    expect(await Promise.race([started, "waits"])).toBe("waits");
  });

  it("goes on with an expired certificate while the manager is away, and says so loudly", async () => {
    const boss = await manager();
    const { ready, fetch } = await proxy(boss.endpoint);
    boss.stop();
    await clock.advance(25 * HOUR_MS);
    const readyz = async () => (await globalThis.fetch(`${ready.healthUrl}/readyz`)).text();
    await inTime(async () => (await readyz()).includes("the operator cannot connect any more"));
    await inTime(() =>
      lines.some((line) => line.includes('"level":"error"') && line.includes("the serving certificate is over")),
    );
    expect((await fetch("/api/v1/pods")).status).toBe(200); // by the real clock it is good
  });
});

describe("a stored certificate", () => {
  const stored = () => join(volume.dataDir, CERTIFICATE_FILE_NAME);
  const withStored = async () => {
    const boss = await manager();
    const first = await proxy(boss.endpoint);
    await first.stop();
    stops.splice(stops.indexOf(first.stop), 1);
    return boss;
  };

  it.each([
    ["is torn", (text: string) => text.slice(0, text.length / 2)],
    ["is empty", () => ""],
    ["has another key", (text: string) => JSON.stringify({ ...JSON.parse(text), key: proxyCertificate(ca).keyPem })],
    ["has no key", (text: string) => JSON.stringify({ ...JSON.parse(text), key: "" })],
  ])("that %s is not used, and replaced", async (_name, spoil) => {
    const boss = await withStored();
    await writeFile(stored(), spoil(await readFile(stored(), "utf8")));
    await proxy(boss.endpoint);
    expect(boss.requests).toHaveLength(2);
    expect(lines.join()).toContain("the stored certificate is not usable");
    expect(lines.join()).not.toContain("PRIVATE KEY");
    expect(JSON.parse(await readFile(stored(), "utf8"))).toMatchObject({ key: expect.stringContaining("PRIVATE KEY") });
  });

  it("of a CA that is trusted no more is not used", async () => {
    const boss = await withStored();
    boss.stop();
    ca = newMeshCa("another");
    await volume.write({ ca: ca.certPem, token: TOKEN });
    const next = await manager({}, boss.port);
    const { ready } = await proxy(next.endpoint);
    expect((await shownTo(ready.url, ca.certPem)).checkIssued(new X509Certificate(ca.certPem))).toBe(true);
  });
});

describe("what is not a manager, or answers nonsense", () => {
  it("a manager of another CA is not trusted, and is shown no token", async () => {
    const boss = await manager({ tls: managerCertificate(newMeshCa("other")) });
    const { made } = await certificate(boss.endpoint);
    await inTime(() => made.notReady?.includes("is not available"));
    expect(boss.authorizations).toEqual([]);
  });

  it("another pod's proxy in the manager's place is not trusted, although its certificate is of the mesh", async () => {
    const boss = await manager({ tls: proxyCertificate(ca) });
    const { made } = await certificate(boss.endpoint);
    await inTime(() => made.notReady?.includes("does not match certificate's altnames"));
    // Nor is it at an address that the certificate is for, where the manager has a name.
    const local = await manager({ tls: proxyCertificate(ca), host: "127.0.0.1" });
    const byName = await certificate("ctrlmesh-manager.ctrlmesh-system.svc:5447", (_to, pass) =>
      openManagerChannel(local.endpoint, pass),
    );
    await inTime(() => byName.made.notReady?.includes("does not match certificate's altnames"));
    expect([...boss.authorizations, ...local.authorizations]).toEqual([]);
    // The manager's own is, wherever the name leads.
    const real = await manager({ host: "127.0.0.1" });
    const good = await certificate("ctrlmesh-manager.ctrlmesh-system.svc:5447", (_to, pass) =>
      openManagerChannel(real.endpoint, pass),
    );
    await inTime(() => good.made.notReady === undefined);
  });

  it("a plain-text manager is shown no token", async () => {
    const { tls: _, ...plain } = { tls: undefined, host: MANAGER_HOST };
    const boss = await startManager(0, plain);
    stops.push(() => boss.stop());
    const { made } = await certificate(boss.endpoint);
    await inTime(() => made.notReady?.includes("is not available"));
    expect(boss.authorizations).toEqual([]);
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
    ["that is over", (key) => issue(ca, key, { now: Date.now() - 48 * HOUR_MS }), "and not now"],
    [
      "that is none",
      () => ({ chainPem: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", trustPem: ca.certPem }),
      "not a certificate",
    ],
    ["that is missing", () => ({ chainPem: "", trustPem: "" }), "no PEM certificate"],
    ["over the bound", () => ({ chainPem: "x".repeat(1_000_000), trustPem: ca.certPem }), "over 65536 characters"],
  ])("a certificate %s is not used", async (_name, reply, why) => {
    const boss = await manager({ certify: ({ publicKey }) => reply(publicKey) });
    const { made, registry } = await certificate(boss.endpoint);
    await inTime(() => made.notReady?.includes(why));
    expect(() => made.current()).toThrow(/not started/);
    expect(await registry.metrics()).toMatch(/ctrlmesh_proxy_certificate_requests_total\{result="failed"\} [1-9]/);
  });
});

describe("who the proxy is", () => {
  it("is said with the token as it is at each call", async () => {
    const boss = await manager();
    await proxy(boss.endpoint);
    await volume.write({ ca: ca.certPem, token: "second-pod-bound-secret\n" });
    await clock.advance(12 * HOUR_MS);
    await inTime(() => boss.requests.length > 1);
    expect(boss.authorizations.slice(0, 2)).toEqual([`Bearer ${TOKEN}`, "Bearer second-pod-bound-secret"]);
  });

  it.each([
    ["missing", undefined, "there is no such file"],
    ["empty", " \n", "it is empty"],
    ["no token", "pod-bound-secret\u0001 with rubbish", "there is no token in it"],
  ])("cannot be said while the token is %s: it names the file, and goes on once there is one", async (_name, token, why) => {
    await volume.write({ ca: ca.certPem, ...(token === undefined ? {} : { token }) });
    const boss = await manager();
    const { made, started } = await certificate(boss.endpoint);
    await inTime(() => made.notReady?.includes(why));
    expect(made.notReady).toContain(volume.tokenFile);
    expect(boss.requests).toEqual([]);
    await volume.write({ ca: ca.certPem, token: TOKEN });
    await inTime(() => boss.requests.length === 1);
    await started;
  });

  it("is not asked for before the CA is there: it names the file", async () => {
    await volume.write({ token: TOKEN });
    const boss = await manager();
    const { made } = await certificate(boss.endpoint);
    await inTime(() => made.notReady?.includes(`reading the mesh's CA from ${volume.caFile}`));
    await volume.write({ ca: ca.certPem, token: TOKEN });
    await inTime(() => made.notReady === undefined);
  });

  it("may be refused: said in the manager's words, counted, logged once, and asked again ever more slowly", async () => {
    let refusal = true;
    const boss = await manager({
      admit: () => (refusal ? { code: status.PERMISSION_DENIED, details: "pod ops/operator-0 carries no proxy" } : undefined),
    });
    const { made, registry } = await certificate(boss.endpoint);
    await inTime(() => made.notReady?.endsWith("7 PERMISSION_DENIED: pod ops/operator-0 carries no proxy"));
    expect(made.notReady).toContain(`the manager at ${boss.endpoint} refuses this pod`);
    for (let second = 0; second < 300; second++) {
      const seen = boss.requests.length;
      await clock.advance(1_000);
      if (boss.requests.length > seen) await eventually(() => boss.authorizations.length === boss.requests.length);
    }
    expect(boss.requests.length).toBeLessThan(20);
    expect(lines.filter((line) => line.includes("has not issued a certificate"))).toHaveLength(1);
    expect(await registry.metrics()).toMatch(/ctrlmesh_proxy_certificate_requests_total\{result="refused"\} [1-9]/);
    refusal = false;
    await inTime(() => made.notReady === undefined, 10_000);
  });
});

describe("a new CA of the mesh", () => {
  it("is followed at once: renewed when the file changes, and taken by clients of the old CA and of the new one", async () => {
    const [older, newer] = [ca, newMeshCa("newer")];
    const both = `${older.certPem}${newer.certPem}`;
    let answer = (key: Uint8Array) => issue(older, key, { trustPem: older.certPem });
    const boss = await manager({ certify: ({ publicKey }) => answer(publicKey) });
    const { ready } = await proxy(boss.endpoint);
    await shownTo(ready.url, older.certPem);
    // The manager signs by the new one; the kubelet brings the file.
    answer = (key) => issue(newer, key, { trustPem: both, behind: crossSigned(older, newer) });
    await volume.write({ ca: both, token: TOKEN });
    await inTime(() => boss.requests.length === 2);
    await eventually(async () => (await shownTo(ready.url, older.certPem)).issuer === "CN=newer");
    await shownTo(ready.url, newer.certPem);
    await shownTo(ready.url, both);
    // The old one goes: the manager serves by the new one.
    boss.stop();
    ca = newer;
    answer = (key) => issue(newer, key);
    await volume.write({ ca: newer.certPem, token: TOKEN });
    const next = await manager({ certify: ({ publicKey }) => answer(publicKey) }, boss.port);
    await inTime(() => next.requests.length > 0);
    await eventually(() => shownTo(ready.url, newer.certPem));
  });

  it("that the manager knows before the kubelet brings it is no reason to ask twice", async () => {
    const newer = newMeshCa("newer");
    const both = `${newer.certPem}${ca.certPem}`;
    const boss = await manager({ certify: ({ publicKey }) => issue(ca, publicKey, { trustPem: both }) });
    await proxy(boss.endpoint);
    await clock.advance(60_000);
    await volume.write({ ca: `${ca.certPem}# the same, in another order\n${newer.certPem}`, token: TOKEN });
    for (let step = 0; step < 10; step++) await clock.advance(10_000);
    expect(boss.requests).toHaveLength(1);
  });
});
