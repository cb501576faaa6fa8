// The warm-up beside a certificate of the proxy's own, as in a pod without the mesh's identity.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock, systemRandom } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { createCertificateHolder, type ServingCertificate } from "../../../src/proxy/identity/serving-certificate.ts";
import { createOwnCertificate } from "../../../src/proxy/identity/watched-certificate.ts";
import { startRehearsal } from "../../../src/proxy/warm-up/rehearsal.ts";
import { LIST_PATH, OBJECT_PATH } from "../../../src/proxy/warm-up/stand-in.ts";
import { createWarmUp } from "../../../src/proxy/warm-up/warm-up.ts";
import { eventually } from "../../support/eventually.ts";

const clock = systemClock;
const signal = new AbortController().signal;
let dataDir: string;
let certificate: ServingCertificate;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "ctrlmesh-warm-up-"));
  const holder = createCertificateHolder(createRegistry("proxy", "test"));
  certificate = createOwnCertificate({ dataDir, holder, clock, log: silentLogger() });
  await certificate.start(signal);
});

afterEach(async () => {
  await certificate.stop();
  await rm(dataDir, { recursive: true });
});

function setup(withinMs: number, of: ServingCertificate = certificate) {
  const done: { readonly requests: number }[] = [];
  const failures: unknown[] = [];
  const log = Object.assign(silentLogger(), {
    debug: (fields: { readonly requests: number }) => void done.push(fields),
    warn: (fields: unknown) => void failures.push(fields),
  });
  const warmUp = createWarmUp({ certificate: of, withinMs, clock, random: systemRandom, log });
  return { warmUp, failures, done, requests: () => done[0]?.requests };
}

/** Sockets and servers that this process has open. */
function openSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => /TCP/.test(name)).length;
}

it("serves requests to itself, all of which succeed, and leaves nothing open", async () => {
  const before = openSockets();
  const { warmUp, failures, requests } = setup(60_000);
  await warmUp.start(signal);
  await eventually(async () => requests() === 500, 30_000);
  await warmUp.stop();
  expect(failures).toEqual([]);
  await eventually(async () => openSockets() === before, 5_000);
});

it("filters the list, as for a subset that owns a part", async () => {
  const rehearsal = await startRehearsal(certificate, certificate.caFile ?? "", { clock, random: systemRandom });
  const bytes = await rehearsal.get(OBJECT_PATH);
  // 2 of 22 namespaces, with 40 of the 300 objects.
  expect((await rehearsal.get(LIST_PATH)) / bytes).toBeCloseTo(40, -1);
  await expect(rehearsal.get(OBJECT_PATH.replace("own-0", "other-0"))).rejects.toThrow("status 403");
  await rehearsal.stop();
});

it("ends when its time is over", async () => {
  const { warmUp, requests } = setup(1);
  await warmUp.start(signal);
  await eventually(async () => requests() !== undefined, 10_000);
  expect(requests()).toBeLessThan(50);
  await warmUp.stop();
});

it("does not hold up the end of the process", async () => {
  const { warmUp, requests } = setup(60_000);
  await warmUp.start(signal);
  await warmUp.stop();
  expect(requests()).toBeLessThan(50);
});

it("does nothing without time, or without a CA to trust", async () => {
  for (const { warmUp, failures, done } of [setup(0), setup(1_000, { ...certificate, caFile: undefined })]) {
    await warmUp.start(signal);
    await warmUp.stop();
    expect([failures, done]).toEqual([[], []]);
  }
});
