import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../base/certificates.ts";
import { endOfAuthorities, endsOfConnection } from "./credential-ends.ts";

const NOW = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
const inDays = (days: number) => NOW + days * DAY_MS;
const ca = (days: number) => createCa({ commonName: `ca-${days}`, now: NOW, days });
const token = (claims: unknown) => `h.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.s`;
const connection = (more: object = {}) => ({ caPem: undefined, clientCert: undefined, token: () => "", ...more });
const ends = (more: object, server?: X509Certificate) =>
  endsOfConnection(connection(more), server).map(({ of, endsMs }) => [of, endsMs]);

describe("the ends of a connection", () => {
  it("are those of the server's certificate, the CA, the client certificate and the token", () => {
    const authority = ca(3_650);
    const [server, client] = [20, 90].map(
      (days) => issueServerCertificate(authority, { dnsNames: ["a"], now: NOW, days }).certPem,
    );
    const more = {
      caPem: authority.certPem,
      clientCert: client,
      token: () => token({ exp: inDays(1) / 1_000, iat: NOW / 1_000 }),
    };
    expect(ends(more, new X509Certificate(server ?? ""))).toEqual([
      ["ServerCertificate", inDays(20)],
      ["KubeconfigCertificateAuthority", inDays(3_650)],
      ["KubeconfigClientCertificate", inDays(90)],
      ["KubeconfigToken", inDays(1)],
    ]);
    expect(endsOfConnection(connection(more))[2]).toMatchObject({ of: "KubeconfigToken", beginsMs: NOW });
  });

  it.each<[string, string]>([
    ["no JSON Web Token", "a-secret-token"],
    ["no claims", token("text")],
    ["no number", token({ exp: "2027" })],
    ["a time that no date has", token({ exp: 1e300 })],
    ["a time before all dates", token({ exp: -1e300 })],
    ["a header that ends early", "a..b"],
  ])("leave out a token with %s", (_, text) => {
    expect(ends({ token: () => text })).toEqual([]);
  });

  it("may be in the year 9999, and have no garbage", () => {
    const years = Math.floor((Date.UTC(9999, 11, 30) - NOW) / DAY_MS);
    expect(ends({ clientCert: ca(years).certPem })).toEqual([["KubeconfigClientCertificate", inDays(years)]]);
    expect(ends({ caPem: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", clientCert: "" })).toEqual([]);
  });
});

describe("the end of several CAs", () => {
  it("is the end of the last one, since others may be kept for a rotation", () => {
    const bundle = [ca(-1), ca(10), ca(900)].map(({ certPem }) => certPem).join("");
    expect(endOfAuthorities("CertificateAuthority", bundle)).toMatchObject([{ endsMs: inDays(900) }]);
  });

  it("is the end of the one that has signed the server's certificate, if there is one", () => {
    const [old, next] = [ca(10), ca(900)];
    const leaf = new X509Certificate(issueServerCertificate(old, { dnsNames: ["a"], now: NOW }).certPem);
    expect(endOfAuthorities("CertificateAuthority", old.certPem + next.certPem, leaf)).toMatchObject([{ endsMs: inDays(10) }]);
    expect(endOfAuthorities("CertificateAuthority", next.certPem, leaf)).toMatchObject([{ endsMs: inDays(900) }]);
  });
});
