// A mesh's identity for tests, with CAs and leaves that a test can change. Replaces src/manager/identity.
import { createCa, issueServerCertificate, type KeyCertificate } from "../../src/base/certificates.ts";

export interface FakeIdentity {
  readonly serving: KeyCertificate | undefined;
  readonly trustPem: string;
  onChange(listener: () => void): () => void;
  /** Uses a new leaf of the newest CA. */
  renewLeaf(): void;
  /** Trusts one more CA, which signs the next leaf. */
  addCa(): void;
  /** Trusts the newest CA only. */
  dropOldCas(): void;
}

/** @param names DNS names and addresses of the leaves; the default is localhost and 127.0.0.1 */
export function createFakeIdentity(names: { readonly dnsNames?: readonly string[] } = {}): FakeIdentity {
  const listeners = new Set<() => void>();
  let cas: readonly KeyCertificate[] = [];
  let serving: KeyCertificate | undefined;
  let made = 0;
  const changed = () => {
    for (const listener of listeners) listener();
  };
  const identity: FakeIdentity = {
    get serving() {
      return serving;
    },
    get trustPem() {
      return cas.map(({ certPem }) => certPem).join("");
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    renewLeaf() {
      const ca = cas.at(-1) as KeyCertificate;
      const { dnsNames = ["localhost"] } = names;
      serving = issueServerCertificate(ca, { dnsNames, ipAddresses: ["127.0.0.1"], now: Date.now() });
      changed();
    },
    addCa() {
      cas = [...cas, createCa({ commonName: `ca ${++made}`, now: Date.now() })];
      changed();
    },
    dropOldCas() {
      cas = cas.slice(-1);
      changed();
    },
  };
  identity.addCa();
  identity.renewLeaf();
  return identity;
}
