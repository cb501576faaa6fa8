import { createPrivateKey, X509Certificate } from "node:crypto";
import { expect, it } from "vitest";
import { createCa, crossSignCa, issueServerCertificate, type KeyCertificate, type LeafOptions } from "../../base/certificates.ts";
import { checkCertificate } from "./check-certificate.ts";
import { SERVING_NAMES } from "./serving-certificate.ts";

const NOW = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
const newCa = (commonName: string, days = 100) => createCa({ commonName, now: NOW, days, maxIntermediates: 4 });
const ca = newCa("mesh");

const leafOf = (by: KeyCertificate, options: Partial<LeafOptions> = {}) =>
  issueServerCertificate(by, { ...SERVING_NAMES, now: NOW, days: 1, ...options });

function check(
  chain: readonly string[],
  keyPem: string,
  trusts: readonly (readonly string[])[] = [[ca.certPem]],
  now = NOW,
  clientName?: string,
) {
  return checkCertificate(chain.join(""), {
    privateKey: createPrivateKey(keyPem),
    trusts: trusts.map((pems) => pems.map((pem) => new X509Certificate(pem))),
    now,
    clientName,
  });
}

it("accepts a certificate of a mesh CA for the names that operators use", () => {
  const { certPem, keyPem } = leafOf(ca);
  expect(check([certPem], keyPem).serialNumber).toBe(new X509Certificate(certPem).serialNumber);
});

it("accepts the name of a client only where the certificate has it and is for clients", () => {
  const clientName = "spiffe://ctrlmesh/ns/ops/pod/a/uid";
  const [with_, without] = [leafOf(ca, { clientName }), leafOf(ca)];
  expect(check([with_.certPem], with_.keyPem, undefined, undefined, clientName).subjectAltName).toContain(clientName);
  expect(() => check([without.certPem], without.keyPem, undefined, undefined, clientName)).toThrow(`the client ${clientName}`);
  expect(() => check([with_.certPem], with_.keyPem, undefined, undefined, `${clientName}2`)).toThrow("does not name the client");
});

it("names every problem at once", () => {
  const { certPem } = leafOf(newCa("other"), { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"] });
  expect(() => check([certPem], leafOf(ca).keyPem, [[ca.certPem]], NOW + 2 * DAY_MS)).toThrow(
    /another key; it is good from 2025-12-31T23:55:00.000Z to 2026-01-02T00:00:00.000Z, and not now; it does not lead to a CA of the mesh; it is not for kubernetes, .*, ::1$/,
  );
});

it("accepts a chain over cross-signed CAs to one that clients loaded long ago", () => {
  const [second, third] = [newCa("second"), newCa("third")];
  const crossed = [crossSignCa(second, third.certPem, 2), crossSignCa(ca, second.certPem, 3)];
  const { certPem, keyPem } = leafOf(third);
  for (const anchors of [[ca.certPem], [second.certPem], [third.certPem]]) check([certPem, ...crossed], keyPem, [anchors]);
  check([certPem, ...crossed.reverse()], keyPem, [[ca.certPem], [third.certPem]]);
  expect(() => check([certPem, ...crossed.slice(0, 1)], keyPem, [[second.certPem], [newCa("other").certPem]])).toThrow(/lead to/);
});

it("refuses an expired certificate, and a chain over an expired CA", () => {
  const short = newCa("short", 10);
  const { certPem, keyPem } = leafOf(short, { days: 50 });
  check([certPem], keyPem, [[short.certPem]]);
  const later = NOW + 11 * DAY_MS;
  expect(() => check([certPem], keyPem, [[short.certPem]], later)).toThrow(/lead to/);
  expect(() => check([certPem, crossSignCa(ca, short.certPem, 2)], keyPem, [[ca.certPem]], later)).toThrow(/lead to/);
});

it("refuses a CA's certificate, and an issuer that has only the name of a CA", () => {
  expect(() => check([ca.certPem], ca.keyPem)).toThrow(/it is a CA's/);
  const { certPem, keyPem } = leafOf(newCa("mesh"));
  expect(() => check([certPem], keyPem)).toThrow(/lead to/);
});

it("refuses a leaf of the mesh as a CA, since each pod with a leaf could sign with it", () => {
  const pod = leafOf(ca, { commonName: "pod" });
  const { certPem, keyPem } = leafOf(pod);
  expect(() => check([certPem, pod.certPem], keyPem)).toThrow(/lead to/);
});
