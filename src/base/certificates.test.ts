import { createPrivateKey, X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createCa, issueServerCertificate } from "./certificates.ts";

const now = Date.UTC(2030, 0, 1);
const ca = createCa({ commonName: "mesh ca", now });

describe("certificates", () => {
  it("makes a certificate authority that signs itself and is marked as one", () => {
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

  it("refuses a certificate for nothing and for something that is no address", () => {
    expect(() => issueServerCertificate(ca, { now })).toThrow(/neither a DNS name/);
    expect(() => issueServerCertificate(ca, { ipAddresses: ["localhost"], now })).toThrow(/no IP address/);
  });
});
