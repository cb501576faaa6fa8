import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { handshake } from "../../test/support/tls-handshake.ts";
import { createCa, crossSignCa, issueServerCertificate, signServerCertificate } from "./certificates.ts";

const now = Date.UTC(2030, 0, 1);
const ca = createCa({ commonName: "mesh ca", now });

describe("certificates", () => {
  it("creates a self-signed CA that is marked as a CA", () => {
    const certificate = new X509Certificate(ca.certPem);
    expect(certificate.ca).toBe(true);
    expect(certificate.subject).toBe("CN=mesh ca");
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });

  it("signs a server certificate for names and addresses", () => {
    const leaf = issueServerCertificate(ca, {
      dnsNames: ["api.mesh.svc", "localhost"],
      ipAddresses: ["127.0.0.1", "::1", "fd00::a:1"],
      now,
      days: 30,
    });
    const certificate = new X509Certificate(leaf.certPem);
    expect(certificate.checkIssued(new X509Certificate(ca.certPem))).toBe(true);
    expect(certificate.verify(new X509Certificate(ca.certPem).publicKey)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(leaf.keyPem))).toBe(true);
    expect(certificate.ca).toBe(false);
    expect(certificate.checkHost("api.mesh.svc")).toBe("api.mesh.svc");
    expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(certificate.checkIP("::1")).toBe("::1");
    expect(certificate.checkIP("fd00::a:1")).toBe("fd00::a:1");
    expect(certificate.validToDate.getTime()).toBe(now + 30 * 86_400_000);
  });

  it("writes dates after 2049 so that they can be read back", () => {
    const late = createCa({ commonName: "late", now: Date.UTC(2049, 11, 1), days: 365 });
    expect(new X509Certificate(late.certPem).validToDate.getUTCFullYear()).toBe(2050);
  });

  it("refuses a certificate without names, and one for an invalid address", () => {
    expect(() => issueServerCertificate(ca, { now })).toThrow(/neither a DNS name/);
    expect(() => issueServerCertificate(ca, { ipAddresses: ["localhost"], now })).toThrow(/not an IP address/);
  });
});

describe("a certificate for a given key", () => {
  it("holds that key and verifies in a handshake", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const today = createCa({ commonName: "today's", now: Date.now() });
    const certPem = signServerCertificate(today, publicKey, { dnsNames: ["localhost"], now: Date.now(), days: 1 });
    expect(new X509Certificate(certPem).checkPrivateKey(privateKey)).toBe(true);
    const served = { certPem, keyPem: pkcs8(privateKey) };
    expect(await handshake(served, today.certPem, "localhost")).toBe("ok");
    expect(await handshake(served, today.certPem, "kubernetes.default.svc")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  });
});

describe("CAs of a rotation", () => {
  const at = Date.now();
  const cas = ["one", "two", "three"].map((commonName) => createCa({ commonName, now: at, maxIntermediates: 4 }));
  const [one, two, three] = cas as [(typeof cas)[0], (typeof cas)[0], (typeof cas)[0]];
  const leaf = issueServerCertificate(three, { dnsNames: ["localhost"], now: at, days: 1 });
  const crossed = [crossSignCa(two, three.certPem, 4), crossSignCa(one, two.certPem, 4)];
  const served = { ...leaf, certPem: [leaf.certPem, ...crossed].join("") };

  it("verify a leaf of the newest CA from any of the older CAs", async () => {
    for (const trusted of [one, two, three]) expect(await handshake(served, trusted.certPem, "localhost")).toBe("ok");
    for (const bundle of [
      [one, two, three],
      [three, one],
      [two, three],
    ]) {
      expect(await handshake(served, bundle.map(({ certPem }) => certPem).join(""), "localhost")).toBe("ok");
    }
  });
  it("do not verify it without the cross-signed certificates", async () => {
    expect(await handshake(leaf, two.certPem, "localhost")).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    const stranger = createCa({ commonName: "three", now: at, maxIntermediates: 4 });
    expect(await handshake(served, stranger.certPem, "localhost")).not.toBe("ok");
  });
  it("cannot sign each other with maxIntermediates 0", async () => {
    const strict = createCa({ commonName: "strict", now: at });
    const chain = { ...leaf, certPem: leaf.certPem + crossSignCa(strict, three.certPem, 4) };
    expect(await handshake(chain, strict.certPem, "localhost")).not.toBe("ok");
  });
  it("sign each other for as long as both are valid", () => {
    const short = createCa({ commonName: "short", now: at, days: 10, maxIntermediates: 4 });
    const cross = new X509Certificate(crossSignCa(short, three.certPem, 4));
    expect(cross.validToDate).toEqual(new X509Certificate(short.certPem).validToDate);
    expect([cross.subject, cross.issuer, cross.ca]).toEqual(["CN=three", "CN=short", true]);
  });
});

describe("a CA of another tool", () => {
  it.each([
    ["rsa", generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey],
    ["P-384", generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey],
    ["ed25519", generateKeyPairSync("ed25519").privateKey],
  ])("with a key of type %s signs", (_type, key) => {
    // This project's CA signs the other CA's key. A leaf needs only the CA's name, key and key identifier.
    const root = createCa({ commonName: "root", now });
    const certPem = signServerCertificate(root, createPublicKey(key), { commonName: "elsewhere", dnsNames: ["x"], now });
    const signed = new X509Certificate(
      signServerCertificate({ certPem, keyPem: pkcs8(key) }, createPublicKey(createPrivateKey(ca.keyPem)), {
        dnsNames: ["y"],
        now,
      }),
    );
    expect(signed.verify(createPublicKey(key))).toBe(true);
    expect(signed.issuer).toBe("CN=elsewhere");
  });
});

function pkcs8(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}
