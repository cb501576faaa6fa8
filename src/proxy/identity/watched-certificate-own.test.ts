import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import { createCertificateHolder } from "./serving-certificate.ts";
import type { TlsPair } from "./tls-pair.ts";
import { createOwnCertificate } from "./watched-certificate.ts";

const DAY_MS = 86_400_000;
const NEVER = new AbortController().signal;
let dataDir: string;
let clock: FakeClock;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "ctrlmesh-certificate-"));
  clock = createFakeClock();
});
afterEach(() => rm(dataDir, { recursive: true }));

async function started(registry = new Registry()) {
  const holder = createCertificateHolder(registry);
  const certificate = createOwnCertificate({ dataDir, holder, clock, log: silentLogger() });
  await certificate.start(NEVER);
  return certificate;
}

const ca = () => readFile(join(dataDir, "ca.crt"), "utf8");

describe("the proxy's own certificate", () => {
  it("is valid for every name that operators use for the API server, and signed by the CA in the data folder", async () => {
    const leaf = new X509Certificate((await started()).current().cert);
    expect(leaf.checkIssued(new X509Certificate(await ca()))).toBe(true);
    expect(leaf.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(leaf.checkIP("::1")).toBe("::1");
    for (const name of ["localhost", "kubernetes", "kubernetes.default.svc.cluster.local"])
      expect(leaf.checkHost(name)).toBe(name);
  });

  it("has a key that only the proxy can read", async () => {
    await started();
    expect((await stat(join(dataDir, "ca.key"))).mode & 0o777).toBe(0o600);
  });

  it("keeps the CA over restarts", async () => {
    await started();
    const first = await ca();
    await started();
    expect(await ca()).toBe(first);
  });

  it("makes a new CA when the old one ends soon, or is half written", async () => {
    await started();
    const first = await ca();
    clock.stepWall(3600 * DAY_MS);
    await started();
    const second = await ca();
    expect(second).not.toBe(first);
    await writeFile(join(dataDir, "ca.key"), "");
    await started();
    expect(await ca()).not.toBe(second);
  });

  it("is renewed long before its end, without a restart", async () => {
    const certificate = await started();
    const first = certificate.current();
    const changes: TlsPair[] = [];
    certificate.onChange((now) => changes.push(now));
    clock.stepWall(61 * DAY_MS);
    await clock.advance(60_000);
    await expect.poll(() => changes).toHaveLength(1);
    expect(certificate.current().cert).not.toBe(first.cert);
    await certificate.stop();
  });

  it("has its end in a metric", async () => {
    const registry = new Registry();
    await started(registry);
    const ends = (clock.now() + 90 * DAY_MS) / 1000;
    expect(await registry.metrics()).toContain(`ctrlmesh_certificate_expiry_timestamp_seconds{name="serving"} ${ends}`);
  });
});
