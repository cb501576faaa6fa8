import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { issue, newMeshCa } from "../../../test/support/mesh-identity.ts";
import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import { readCertificates } from "../../base/pem.ts";
import { createStateFolder } from "../state/state-folder.ts";
import type { Certify } from "./certify.ts";
import { createMeshCertificate } from "./mesh-certificate.ts";
import { createCertificateHolder } from "./serving-certificate.ts";

const HOUR_MS = 3_600_000;
const ca = newMeshCa();
let dataDir: string;
let clock: FakeClock;
let stops: (() => Promise<void>)[];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "ctrlmesh-mesh-certificate-"));
  clock = createFakeClock(Date.now());
  stops = [];
});
afterEach(async () => {
  for (const stop of stops) await stop();
  await rm(dataDir, { recursive: true, force: true });
});

/** When it was asked, in fake milliseconds; what it answers may be changed. */
function setup({ chance = 0, dir = dataDir, by = clock } = {}) {
  const asked: number[] = [];
  const manager: { certify: Certify } = { certify: async (publicKey) => issue(ca, publicKey, { now: clock.now() }) };
  const registry = new Registry();
  const certificate = createMeshCertificate({
    manager: "manager:5447",
    caFile: "/mesh.crt",
    trust: { current: async () => ({ pem: ca.certPem, certificates: readCertificates(ca.certPem, "the CA") }) },
    certify: async (publicKey, signal) => {
      asked.push(clock.monotonicMs());
      return manager.certify(publicKey, signal);
    },
    slot: createStateFolder(dir, silentLogger()).certificate,
    holder: createCertificateHolder(registry),
    registry,
    clock: by,
    random: () => chance,
    log: silentLogger(),
  });
  stops.push(() => certificate.stop());
  const start = () => certificate.start(new AbortController().signal);
  return { asked, manager, certificate, start };
}

/**
 * Steps through the time until something is so. Time stands still while a file is written or a key is made,
 * which takes real time.
 */
const pass = (stepMs: number, until: () => boolean) =>
  eventually(
    async () => {
      if (clock.pending > 0) await clock.advance(stepMs);
      return until();
    },
    { everyMs: 0 },
  );

it.each([
  [0, 6],
  [1, 4.8],
])("is renewed around a quarter of its life, by chance %d", async (chance, hours) => {
  const { asked, certificate, start } = setup({ chance });
  await start();
  const first = certificate.current().cert;
  await clock.advance((hours - 0.2) * HOUR_MS);
  expect(asked).toHaveLength(1);
  await pass(10_000, () => asked.length > 1);
  expect((asked[1] ?? 0) / HOUR_MS).toBeLessThan(hours + 1);
  await eventually(() => certificate.current().cert !== first);
});

it("is renewed at a quarter of a short life too, although it is dated back by more", async () => {
  const { asked, manager, start } = setup();
  manager.certify = async (publicKey) => issue(ca, publicKey, { now: clock.now(), days: 300 / 86_400 });
  await start();
  await pass(1_000, () => asked.length >= 3);
  const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(65_000);
  expect(Math.max(...gaps)).toBeLessThan(100_000);
});

it("backs off to 5 s between requests for the first certificate while the manager is away, and to 60 s if it refuses", async () => {
  for (const [code, mostMs] of [
    [14, 5_000],
    [7, 60_000],
  ] as const) {
    const { asked, manager, certificate } = setup({ chance: 1 });
    manager.certify = () => Promise.reject(Object.assign(new Error("no"), { code }));
    const stopping = new AbortController();
    const started = certificate.start(stopping.signal);
    const gap = () => (asked.at(-1) ?? 0) - (asked.at(-2) ?? 0);
    await pass(100, () => gap() >= mostMs);
    expect(gap()).toBeLessThan(2 * mostMs);
    expect(asked.length).toBeGreaterThan(5);
    const seen = asked.length;
    await pass(100, () => asked.length >= seen + 2);
    expect(gap()).toBeLessThan(2 * mostMs);
    stopping.abort();
    await started;
    await certificate.stop();
  }
});

it("asks again within 5 s although timers fire a little early, as Node's do", async () => {
  const { after } = clock;
  let readings = 0;
  const real: FakeClock = {
    ...clock,
    monotonicMs: () => clock.monotonicMs() + ++readings, // each reading is later than the one before
    after: (delayMs, run) => after(delayMs - 1.5, run),
  };
  const { asked, manager, certificate } = setup({ chance: 1, by: real });
  manager.certify = () => Promise.reject(Object.assign(new Error("no"), { code: 14 }));
  const stopping = new AbortController();
  const started = certificate.start(stopping.signal);
  await pass(100, () => asked.length >= 10);
  stopping.abort();
  await started;
  expect(Math.max(...asked.slice(1).map((at, index) => at - (asked[index] ?? 0)))).toBeLessThan(5_100);
});

it("serves even if the certificate cannot be stored", async () => {
  const file = join(dataDir, "file");
  await writeFile(file, "");
  const { certificate, start } = setup({ dir: join(file, "no-folder") });
  await start();
  expect(certificate.current().cert).toContain("BEGIN CERTIFICATE");
});

it("keeps the old certificate in use and stored if the new one fails the check", async () => {
  const { asked, manager, certificate, start } = setup();
  await start();
  const [{ cert }, stored] = [certificate.current(), await readFile(join(dataDir, "serving-certificate.json"), "utf8")];
  manager.certify = async (publicKey) => issue(newMeshCa("other"), publicKey, { now: clock.now() });
  await pass(HOUR_MS / 4, () => certificate.warning !== undefined);
  expect(certificate.warning).toContain("it does not lead to a CA of the mesh");
  expect(asked.length).toBeGreaterThan(1);
  expect(certificate.current().cert).toBe(cert);
  expect(await readFile(join(dataDir, "serving-certificate.json"), "utf8")).toBe(stored);
});

it("makes a new key for each certificate", async () => {
  const { certificate, start } = setup();
  await start();
  const keys = new Set([certificate.current().key]);
  await pass(HOUR_MS / 4, () => !keys.has(certificate.current().key));
  expect(keys.has(certificate.current().key)).toBe(false);
  expect(new X509Certificate(certificate.current().cert).publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
});
