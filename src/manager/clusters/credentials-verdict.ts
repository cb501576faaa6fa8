// What a status says of the certificates and the token by which the mesh reaches a cluster. Pure.
import type { MeshClusterStatus } from "../../api/mesh-cluster.ts";
import type { CredentialEnd } from "../cluster-namespaces/credential-ends.ts";

/** Enough to notice it and to wait for somebody who may renew it. */
export const SOON_MS = 14 * 86_400_000;
/** Of what lives shorter, programs renew each one well before this part of its life is left. */
const SOON_PART = 1 / 10;

type CredentialsReason = "Valid" | "ExpiringSoon" | "Expired" | "NotKnown";

export interface CredentialsVerdict {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: CredentialsReason;
  readonly message: string;
}

const WORDS: Readonly<Record<CredentialEnd["of"], readonly [what: string, remedy: string]>> = {
  ServerCertificate: ["the certificate of the cluster's API server", "renew it in the cluster"],
  CertificateAuthority: ["the CA in certificateAuthorityData", "add its successor there"],
  KubeconfigCertificateAuthority: ["the CA in the kubeconfig of kubeconfigSecret", "add its successor to the Secret"],
  KubeconfigClientCertificate: ["the client certificate in the kubeconfig of kubeconfigSecret", "put a new one into the Secret"],
  KubeconfigToken: ["the token in the kubeconfig of kubeconfigSecret", "put a new one into the Secret"],
};

export function credentialsVerdict(ends: readonly CredentialEnd[], nowMs: number): CredentialsVerdict {
  const [first] = byEnd(ends);
  if (first === undefined)
    return { status: "Unknown", reason: "NotKnown", message: "the manager has not seen a certificate or token that ends" };
  const bad = byEnd(ends).find((end) => nowMs >= soonAtMs(end));
  const [what, remedy] = WORDS[(bad ?? first).of];
  if (bad === undefined) return { status: "True", reason: "Valid", message: `${what} ends first, at ${timeOf(first)}` };
  const isOver = nowMs >= (bad.endsMs ?? 0);
  const at = bad.endsMs === undefined ? "" : ` at ${timeOf(bad)}`;
  const message = `${what} ${isOver ? "ended" : "ends"}${at}: ${remedy}`;
  return { status: "False", reason: isOver ? "Expired" : "ExpiringSoon", message };
}

/** The first known end. */
export function earliestExpiry(ends: readonly CredentialEnd[]): MeshClusterStatus["earliestExpiry"] {
  const first = byEnd(ends).find(({ endsMs }) => endsMs !== undefined);
  return first && { of: first.of, time: timeOf(first) };
}

/** When the verdict changes next, if the ends stay as they are. */
export function nextVerdictMs(ends: readonly CredentialEnd[], nowMs: number): number | undefined {
  const times = ends.flatMap((end) => [soonAtMs(end), end.endsMs ?? 0]).filter((atMs) => atMs > nowMs);
  return times.length === 0 ? undefined : Math.min(...times);
}

function soonAtMs({ endsMs = 0, beginsMs }: CredentialEnd): number {
  const lifeMs = beginsMs === undefined ? Number.POSITIVE_INFINITY : Math.max(0, endsMs - beginsMs);
  return endsMs - Math.min(SOON_MS, lifeMs * SOON_PART);
}

function byEnd(ends: readonly CredentialEnd[]): readonly CredentialEnd[] {
  return [...ends].sort((a, b) => (a.endsMs ?? 0) - (b.endsMs ?? 0));
}

function timeOf({ endsMs = 0 }: CredentialEnd): string {
  return `${new Date(endsMs).toISOString().slice(0, 19)}Z`;
}
