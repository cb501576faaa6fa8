import { describe, expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../base/certificates.ts";
import type { Secret } from "../../kube/client/resources.ts";
import { advanceCa, createCaState } from "./ca-rotation.ts";
import { formatCaSecret, parseCaSecret, ROTATE_ANNOTATION } from "./managed-ca.ts";

const now = Date.UTC(2026, 0, 1);
const ref = { namespace: "ctrlmesh-system", name: "ctrlmesh-ca" };
const first = createCaState(now);
const withNext = advanceCa({ ...first, rotationWanted: true }, { now, settleMs: 0 })?.state ?? first;
const after = advanceCa(withNext, { now: now + 1, settleMs: 0 })?.state ?? first;
const good = formatCaSecret(withNext, { metadata: ref });
const spoiled = (data: Record<string, string | undefined>): Secret => ({
  ...good,
  data: Object.fromEntries(
    Object.entries({ ...good.data, ...data }).flatMap(([key, text]) => (text === undefined ? [] : [[key, text]])),
  ),
});
const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("the Secret of the mesh CA", () => {
  it("holds every state and returns it", () => {
    for (const state of [first, withNext, after]) expect(parseCaSecret(formatCaSecret(state, { metadata: ref }))).toEqual(state);
    expect(after).toMatchObject({ old: [first.signing.certPem], promotedAtMs: now + 1 });
    expect(Object.keys(formatCaSecret(after, good).data ?? {}).sort()).toEqual(["cross.crt", "old.crt", "tls.crt", "tls.key"]);
  });
  it("keeps other writers' keys and annotations, except a rotation request that was granted", () => {
    const found = {
      metadata: { ...ref, labels: { a: "b" }, annotations: { c: "d", [ROTATE_ANNOTATION]: "" } },
      data: { x: "eA==" },
    };
    expect(parseCaSecret(formatCaSecret(first, { metadata: ref })).rotationWanted).toBe(false);
    const written = formatCaSecret(first, found);
    expect([written.metadata.labels?.a, written.metadata.annotations, written.data?.x]).toEqual(["b", { c: "d" }, "eA=="]);
    const desired = { ...written, metadata: { ...written.metadata, annotations: { [ROTATE_ANNOTATION]: "" } } };
    expect(parseCaSecret(desired).rotationWanted).toBe(true);
  });
  it.each([
    ["without a certificate", { "tls.crt": undefined }, /ctrlmesh-system\/ctrlmesh-ca, key tls\.crt: no PEM certificate/],
    ["without a key", { "tls.key": undefined }, /key tls\.key: not a PEM private key/],
    ["with half a key", { "tls.key": base64(first.signing.keyPem.slice(0, 80)) }, /key tls\.key: not a PEM private key/],
    [
      "with another's key",
      { "tls.key": base64(createCa({ commonName: "x", now }).keyPem) },
      /key tls\.key: not the key of the cert/,
    ],
    ["with a leaf", leafData(), /key tls\.crt: not the certificate of a CA/],
    ["with a damaged certificate", { "tls.crt": base64(damaged(first.signing.certPem)) }, /key tls\.crt: not a certificate/],
    ["with half of the next CA", { "next.key": undefined }, /key next\.key: not a PEM private key/],
    [
      "with the next CA's key alone",
      { "next.crt": undefined, "next-cross.crt": undefined },
      /key next-cross\.crt: it is missing/,
    ],
    ["with rubbish among the old", { "old.crt": base64("rubbish") }, /key old\.crt: no PEM certificate/],
  ])("%s is an error that names the key, and shows nothing of it", (_what, data, message) => {
    const parse = () => parseCaSecret(spoiled(data));
    expect(parse).toThrow(message);
    expect(parse).not.toThrow(/BEGIN|[A-Za-z0-9+/]{40}/);
  });
  it("of another owner is left alone", () => {
    expect(() => parseCaSecret({ ...good, metadata: ref })).toThrow(
      /lacks the label app\.kubernetes\.io\/managed-by=ctrlmesh-manager/,
    );
  });
});

function leafData(): Record<string, string> {
  const leaf = issueServerCertificate(first.signing, { dnsNames: ["x"], now });
  return { "tls.crt": base64(leaf.certPem), "tls.key": base64(leaf.keyPem) };
}

function damaged(pem: string): string {
  return pem.replace(/\n.{20}/, `\n${"A".repeat(20)}`);
}
