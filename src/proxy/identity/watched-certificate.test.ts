import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { createCa, issueServerCertificate } from "../../base/certificates.ts";
import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import { createCertificateHolder } from "./serving-certificate.ts";
import { readPair } from "./tls-pair.ts";
import { createWatchedCertificate } from "./watched-certificate.ts";

const NEVER = new AbortController().signal;
let dataDir: string;
let clock: FakeClock;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "ctrlmesh-certificate-"));
  clock = createFakeClock();
});
afterEach(() => rm(dataDir, { recursive: true }));

async function started(files: { cert: string; key: string }) {
  const holder = createCertificateHolder(new Registry());
  const certificate = createWatchedCertificate({
    next: () => readPair(files.cert, files.key),
    holder,
    clock,
    log: silentLogger(),
  });
  await certificate.start(NEVER);
  return certificate;
}

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
