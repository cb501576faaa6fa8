import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { createCa, issueServerCertificate } from "../../base/certificates.ts";
import { silentLogger } from "../../base/log.ts";
import { createServingCertificate, type TlsPair } from "./serving-certificate.ts";

const DAY_MS = 86_400_000;
const NEVER = new AbortController().signal;
let dataDir: string;
let clock: FakeClock;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "ctrlmesh-certificate-"));
  clock = createFakeClock();
});
afterEach(() => rm(dataDir, { recursive: true }));

async function started(files?: { cert: string; key: string }) {
  const certificate = createServingCertificate({ files, dataDir, clock, log: silentLogger() });
  await certificate.start(NEVER);
  return certificate;
}

const ca = () => readFile(join(dataDir, "ca.crt"), "utf8");

describe("a certificate of our own", () => {
  it("is for every name that operators call the API server, signed by the CA in the data folder", async () => {
    const leaf = new X509Certificate((await started()).current().cert);
    expect(leaf.checkIssued(new X509Certificate(await ca()))).toBe(true);
    expect(leaf.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(leaf.checkIP("::1")).toBe("::1");
    for (const name of ["localhost", "kubernetes", "kubernetes.default.svc.cluster.local"])
      expect(leaf.checkHost(name)).toBe(name);
  });

  it("has a key that only we can read", async () => {
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
});

describe("a certificate from files", () => {
  const files = () => ({ cert: join(dataDir, "tls.crt"), key: join(dataDir, "tls.key") });
  const write = async () => {
    const pair = issueServerCertificate(createCa({ commonName: "x", now: clock.now() }), { dnsNames: ["x"], now: clock.now() });
    await writeFile(files().cert, pair.certPem);
    await writeFile(files().key, pair.keyPem);
    return pair;
  };

  it("is read again when it has changed, and kept while the two files do not belong together", async () => {
    const first = await write();
    const certificate = await started(files());
    expect(certificate.current().cert).toBe(first.certPem);
    await writeFile(
      files().key,
      issueServerCertificate(createCa({ commonName: "y", now: 0 }), { dnsNames: ["y"], now: 0 }).keyPem,
    );
    await clock.advance(60_000);
    expect(certificate.current().cert).toBe(first.certPem);
    const second = await write();
    const afterAnotherMinute = async () => {
      await clock.advance(60_000);
      return certificate.current().cert;
    };
    await expect.poll(afterAnotherMinute).toBe(second.certPem);
    await certificate.stop();
  });

  it("that is missing stops the start", async () => {
    await expect(started(files())).rejects.toThrow(/reading the serving certificate/);
  });
});
