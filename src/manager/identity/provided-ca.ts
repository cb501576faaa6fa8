// A CA that cert-manager or a user provides: tls.crt and tls.key of a Secret, and ca.crt if it has an issuer.
// Invariants: a successor is trusted for `settleMs` before it signs, unless the signing CA has expired; each
// CA that this replica has read stays trusted while it is valid.
import { X509Certificate } from "node:crypto";
import type { KeyCertificate } from "../../base/certificates.ts";
import { MeshError } from "../../base/errors.ts";
import { joinPem, MAX_PEM_CHARS, readCertificates, splitPem } from "../../base/pem.ts";
import { SECRETS } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { getIfThere } from "../../runtime/patch-current.ts";
import { type Authority, type AuthorityOptions, type AuthoritySource, checkCa, expiryOf } from "./authority.ts";

/** While the CA changes, the bundle that proxies read contains both CAs. */
const MAX_TRUST_CHARS = MAX_PEM_CHARS / 2;

export function createProvidedCa(options: AuthorityOptions & { readonly client: Pick<KubeClient, "get"> }): AuthoritySource {
  const { client, namespace, name, settleMs, clock, log } = options;
  let signing: ProvidedCa | undefined;
  let next: { readonly ca: ProvidedCa; readonly sinceMs: number } | undefined;
  let trustPem = "";

  async function read(signal: AbortSignal): Promise<ProvidedCa> {
    const secret = await getIfThere(client, SECRETS, { namespace, name }, { signal });
    if (secret === undefined) throw new MeshError("CA_MISSING", `reading the CA: there is no Secret ${namespace}/${name} yet`);
    return parse(secret.data ?? {}, `Secret ${namespace}/${name}`);
  }

  return {
    async refresh(signal) {
      const found = await read(signal);
      const now = clock.now();
      if (isSameSigner(found, next?.ca ?? signing)) {
        // A renewed certificate with the same name and key verifies the same leaves.
        if (next === undefined) signing = found;
        else next = { ...next, ca: found };
      } else if (signing === undefined) {
        signing = found;
      } else {
        next = { ca: found, sinceMs: now };
        log.info({ secret: `${namespace}/${name}` }, "another CA is provided: it is trusted now, and will sign");
      }
      if (next !== undefined && (now >= next.sinceMs + settleMs || expiryOf(signing?.signer.certPem ?? "") <= now)) {
        signing = next.ca;
        next = undefined;
        log.info({ secret: `${namespace}/${name}` }, "the CA that was provided signs");
      }
      const pems = splitPem(joinPem(found.trustPem, signing?.trustPem ?? "", trustPem));
      trustPem = pems.filter((pem) => expiryOf(pem) > now).join("");
      const { signer, chainPem } = signing ?? found;
      const authority: Authority = { signer, chainPem, trustPem };
      if (next === undefined) return authority;
      return { ...authority, nextPem: next.ca.signer.certPem, nextSignsAtMs: next.sinceMs + settleMs };
    },
  };
}

interface ProvidedCa {
  readonly signer: KeyCertificate;
  readonly chainPem: string;
  readonly trustPem: string;
}

// Verifiers look for a leaf's issuer by name, so another name is another CA, whatever its key.
function isSameSigner({ signer }: ProvidedCa, before: ProvidedCa | undefined): boolean {
  if (signer.keyPem !== before?.signer.keyPem) return false;
  return new X509Certificate(signer.certPem).subject === new X509Certificate(before.signer.certPem).subject;
}

function parse(data: Readonly<Record<string, string>>, secret: string): ProvidedCa {
  const text = (key: string) => Buffer.from(data[key] ?? "", "base64").toString();
  const signer = { certPem: text("tls.crt"), keyPem: text("tls.key") };
  checkCa(signer, `${secret}, key tls.crt`, `${secret}, key tls.key`);
  if (text("ca.crt").trim() !== "") readCertificates(text("ca.crt"), `${secret}, key ca.crt`);
  const [own = "", ...above] = splitPem(signer.certPem);
  const isRoot = (pem: string) => readCertificates(pem, secret).every((certificate) => certificate.checkIssued(certificate));
  // An intermediate CA is trusted itself, since some verifiers stop there and others want the root.
  const trustPem = joinPem(own, ...above, text("ca.crt"));
  if (trustPem.length > MAX_TRUST_CHARS) {
    const what = `tls.crt and ca.crt together over ${MAX_TRUST_CHARS} characters, which every webhook entry and every sidecar would carry`;
    throw new MeshError("CERTIFICATE_INVALID", `reading ${secret}: ${what}`);
  }
  return {
    signer: { certPem: own, keyPem: signer.keyPem },
    chainPem: [own, ...above].filter((pem) => !isRoot(pem)).join(""),
    trustPem,
  };
}
