import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../base/certificates.ts";
import { silentLogger } from "../../base/log.ts";
import { createOperatorCertificate } from "./operator-certificate.ts";

const ca = createCa({ commonName: "operator", now: Date.now() });
const newPair = () => issueServerCertificate(ca, { dnsNames: ["webhooks.ops.svc"], now: Date.now() });
const leafOf = ({ certPem }: KeyCertificate) => new X509Certificate(certPem).raw;

let certDir: string;
beforeEach(async () => {
  certDir = await mkdtemp(join(tmpdir(), "operator-certificate-"));
});
afterEach(() => rm(certDir, { recursive: true }));

const write = async ({ certPem, keyPem }: KeyCertificate) => {
  await writeFile(join(certDir, "tls.crt"), certPem);
  await writeFile(join(certDir, "tls.key"), keyPem);
};
const create = (clock = createFakeClock(), report: (problem: string) => void = () => undefined) =>
  createOperatorCertificate({ certDir, report, clock, log: silentLogger() });

it("waits for files that the operator writes after its start, and says what is missing", async () => {
  const certificate = create();
  await certificate.start();
  expect([certificate.pair, certificate.problem]).toEqual([undefined, `${certDir} has no tls.crt and tls.key yet`]);
  const pair = newPair();
  await write(pair);
  expect(await certificate.isOperators(leafOf(pair))).toBe(true);
  expect([certificate.pair?.cert, certificate.problem, certificate.serverName]).toEqual([
    pair.certPem,
    undefined,
    "webhooks.ops.svc",
  ]);
});

it("reports what is missing if it lasts, and that it is over", async () => {
  const [clock, told] = [createFakeClock(), [] as string[]];
  const certificate = create(clock, (problem) => void told.push(problem));
  await certificate.start();
  const check = async () => {
    const count = told.length;
    await clock.advance(2_000);
    await eventually(() => told.length > count); // the files are read in real time
    return told.at(-1);
  };
  while (clock.monotonicMs() < 28_000) expect(await check()).toBe("");
  expect(await check()).toBe(`${certDir} has no tls.crt and tls.key yet`);
  await write(newPair());
  expect(await check()).toBe("");
  certificate.stop();
});

it("knows the present certificate and the one before, and no other", async () => {
  const pairs = [newPair(), newPair(), newPair()] as const;
  const certificate = create();
  const seen: string[] = [];
  certificate.onChange(({ cert }) => seen.push(cert));
  for (const pair of pairs) {
    await write(pair);
    expect(await certificate.isOperators(leafOf(pair))).toBe(true);
  }
  expect(await certificate.isOperators(leafOf(pairs[1]))).toBe(true);
  expect(await certificate.isOperators(leafOf(pairs[0]))).toBe(false);
  expect(seen).toEqual(pairs.map(({ certPem }) => certPem));
});

it("keeps the last good pair while the files do not match", async () => {
  const [pair, next] = [newPair(), newPair()];
  await write(pair);
  const certificate = create();
  await certificate.start();
  await write({ ...next, keyPem: pair.keyPem });
  expect(await certificate.isOperators(leafOf(next))).toBe(false);
  expect(certificate.pair?.cert).toBe(pair.certPem);
  expect(certificate.problem).toContain("the key does not belong to the certificate");
});
