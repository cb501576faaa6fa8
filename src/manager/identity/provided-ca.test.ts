import { generateKeyPairSync } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { createCa, crossSignCa, type KeyCertificate } from "../../base/certificates.ts";
import { silentLogger } from "../../base/log.ts";
import { SECRETS } from "../../kube/client/resources.ts";
import type { AuthoritySource } from "./authority.ts";
import { createProvidedCa } from "./provided-ca.ts";

const ref = { namespace: "ctrlmesh-system", name: "my-ca" };
const settleMs = 600_000;
const { signal } = new AbortController();
let clock: FakeClock;
let client: FakeKubeClient;
let source: AuthoritySource;
const made = (commonName: string, days?: number) =>
  createCa({ commonName, now: clock.now(), maxIntermediates: 2, ...(days === undefined ? {} : { days }) });
const give = ({ certPem, keyPem }: KeyCertificate, issuer = "") => {
  const texts = { "tls.crt": certPem, "tls.key": keyPem, "ca.crt": issuer };
  const data = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  client.put(SECRETS, { metadata: ref, data: Object.fromEntries(data) });
};
/** The certificate with "same" in its names written otherwise; no test here checks its signature. */
const named = (text: string, pem: string) => {
  const der = Buffer.from(pem.replaceAll(/-----[^-]+-----/g, ""), "base64")
    .toString("latin1")
    .replaceAll("same", text);
  const lines =
    Buffer.from(der, "latin1")
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
};
beforeEach(() => {
  clock = createFakeClock();
  client = createFakeKubeClient();
  source = createProvidedCa({ client, ...ref, settleMs, clock, log: silentLogger() });
});

describe("a CA that the user provides", () => {
  it("is awaited and never written", async () => {
    await expect(source.refresh(signal)).rejects.toMatchObject({ code: "CA_MISSING" });
    const ca = made("own");
    give(ca);
    expect(await source.refresh(signal)).toEqual({ signer: ca, chainPem: "", trustPem: ca.certPem });
    expect(new Set(client.calls.map(({ verb }) => verb))).toEqual(new Set(["get"]));
  });
  it("with a key that cannot sign leaves is an error that names the key, and replaces no other CA", async () => {
    give(made("good"));
    await source.refresh(signal);
    const { privateKey } = generateKeyPairSync("ed448");
    give({ ...made("odd"), keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString() });
    await expect(source.refresh(signal)).rejects.toMatchObject({
      code: "CERTIFICATE_INVALID",
      message: "reading Secret ctrlmesh-system/my-ca, key tls.key: a key of type ed448 cannot be used, only EC, RSA and Ed25519",
    });
  });
  it("with an issuer is sent with every leaf, and both are trusted", async () => {
    const [root, middle] = [made("root"), made("middle")];
    const certPem = crossSignCa(root, middle.certPem, 0);
    give({ certPem, keyPem: middle.keyPem }, root.certPem);
    expect(await source.refresh(signal)).toMatchObject({ chainPem: certPem, trustPem: certPem + root.certPem });
  });
  it("that replaces another one is trusted at once and signs later, and the other stays trusted", async () => {
    const [old, fresh] = [made("old", 100), made("fresh")];
    give(old);
    await source.refresh(signal);
    give(fresh);
    const coming = await source.refresh(signal);
    expect([coming.signer, coming.nextPem]).toEqual([old, fresh.certPem]);
    expect([coming.trustPem.includes(old.certPem), coming.trustPem.includes(fresh.certPem)]).toEqual([true, true]);
    await clock.advance(settleMs);
    const done = await source.refresh(signal);
    expect([done.signer, done.nextPem, done.trustPem.includes(old.certPem)]).toEqual([fresh, undefined, true]);
    await clock.advance(100 * 86_400_000);
    expect((await source.refresh(signal)).trustPem).toBe(fresh.certPem);
  });
  it("with a renewed certificate for the same key goes on signing", async () => {
    const ca = made("same");
    give(ca);
    await source.refresh(signal);
    const renewed = { ...ca, certPem: crossSignCa(ca, ca.certPem, 2) };
    give(renewed);
    expect((await source.refresh(signal)).signer).toEqual(renewed);
  });
  it("with the same key and another name is trusted first, as any other CA", async () => {
    const ca = made("same");
    give(ca);
    await source.refresh(signal);
    const renamed = { ...ca, certPem: named("else", ca.certPem) };
    give(renamed);
    expect(await source.refresh(signal)).toMatchObject({ signer: ca, nextPem: renamed.certPem });
    await clock.advance(settleMs);
    expect((await source.refresh(signal)).signer).toEqual(renamed);
  });
  it("that is larger than half of the bundle that a proxy reads is an error", async () => {
    const [ca, issuers] = [made("many"), Array.from({ length: 60 }, (_, index) => made(`issuer-${index}`).certPem)];
    give(ca, issuers.join(""));
    await expect(source.refresh(signal)).rejects.toMatchObject({
      code: "CERTIFICATE_INVALID",
      message: expect.stringContaining("Secret ctrlmesh-system/my-ca: tls.crt and ca.crt together over 32768 characters"),
    });
  });
  it("that is damaged is an error that names the key", async () => {
    give({ ...made("x"), keyPem: made("y").keyPem });
    await expect(source.refresh(signal)).rejects.toThrow(/Secret ctrlmesh-system\/my-ca, key tls\.key: not the key/);
  });
});
