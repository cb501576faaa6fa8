// Reads and writes the Secret of the mesh's own CA. Pure. Invariant: a Secret that is incomplete, damaged or
// not the mesh's is an error, since a new CA in its place would cut off every running proxy.
import type { KeyCertificate } from "../../base/certificates.ts";
import { MeshError } from "../../base/errors.ts";
import { joinPem, readCertificates, splitPem } from "../../base/pem.ts";
import type { Secret } from "../../kube/client/resources.ts";
import { checkCa } from "./authority.ts";
import { isOfManager, MANAGED_BY, MANAGER } from "./mesh-namespaces.ts";

export interface CaState {
  readonly signing: KeyCertificate;
  /** Is trusted and will sign. `crossPem` is the same name and key, signed by the CA that signs now. */
  readonly next?: KeyCertificate & { readonly crossPem: string };
  /** PEM: CAs that have signed and are still trusted. */
  readonly old: readonly string[];
  /** PEM, newest first: certificates that lead from newer CAs to older valid ones. */
  readonly cross: readonly string[];
  /** When `signing` took over from another CA. */
  readonly promotedAtMs?: number;
  readonly rotationWanted: boolean;
}

/** Users set it, with any value, to rotate the CA now. */
export const ROTATE_ANNOTATION = "ctrlmesh.kruise.io/rotate";
const PROMOTED_ANNOTATION = "ctrlmesh.kruise.io/promoted-at";
const KEYS = ["tls.crt", "tls.key", "next.crt", "next.key", "next-cross.crt", "old.crt", "cross.crt"] as const;
type Key = (typeof KEYS)[number];

/** @throws MeshError `CERTIFICATE_INVALID` that names the Secret and the key */
export function parseCaSecret(secret: Secret): CaState {
  const { namespace = "", name = "", annotations } = secret.metadata;
  const where = (key: Key) => `Secret ${namespace}/${name}, key ${key}`;
  if (!isOfManager(secret)) {
    const what = `it lacks the label ${MANAGED_BY}=${MANAGER}; to use your own CA, set --ca-secret (CTRLMESH_CA_SECRET)`;
    throw new MeshError("CERTIFICATE_INVALID", `reading Secret ${namespace}/${name}: ${what}`);
  }
  const text = (key: Key) => Buffer.from(secret.data?.[key] ?? "", "base64").toString();
  const pair = (certKey: Key, keyKey: Key): KeyCertificate => {
    const keyPair = { certPem: joinPem(text(certKey)), keyPem: text(keyKey) };
    checkCa({ ...keyPair, certPem: text(certKey) }, where(certKey), where(keyKey));
    return keyPair;
  };
  const bundle = (key: Key): string[] => {
    if (text(key).trim() !== "") readCertificates(text(key), where(key));
    return splitPem(text(key));
  };
  const signing = pair("tls.crt", "tls.key");
  const hasNext = KEYS.some((key) => key.startsWith("next") && text(key) !== "");
  const [crossPem] = bundle("next-cross.crt");
  if (hasNext && crossPem === undefined)
    throw new MeshError("CERTIFICATE_INVALID", `reading ${where("next-cross.crt")}: it is missing`);
  const promotedAtMs = Date.parse(annotations?.[PROMOTED_ANNOTATION] ?? "");
  return {
    signing,
    ...(crossPem === undefined ? {} : { next: { ...pair("next.crt", "next.key"), crossPem } }),
    old: bundle("old.crt"),
    cross: bundle("cross.crt"),
    ...(Number.isNaN(promotedAtMs) ? {} : { promotedAtMs }),
    rotationWanted: annotations?.[ROTATE_ANNOTATION] !== undefined,
  };
}

/** Returns the Secret with this state in it. Other keys, labels and annotations stay. */
export function formatCaSecret(state: CaState, secret: Pick<Secret, "metadata" | "type" | "data">): Secret {
  const { signing, next, old, cross, promotedAtMs } = state;
  const texts: Record<Key, string> = {
    "tls.crt": signing.certPem,
    "tls.key": signing.keyPem,
    "next.crt": next?.certPem ?? "",
    "next.key": next?.keyPem ?? "",
    "next-cross.crt": next?.crossPem ?? "",
    "old.crt": old.join(""),
    "cross.crt": cross.join(""),
  };
  const data: Record<string, string> = { ...secret.data };
  for (const key of KEYS) {
    if (texts[key] === "") delete data[key];
    else data[key] = Buffer.from(texts[key]).toString("base64");
  }
  const annotations: Record<string, string> = { ...secret.metadata.annotations };
  delete annotations[ROTATE_ANNOTATION];
  if (state.rotationWanted) annotations[ROTATE_ANNOTATION] = "now";
  if (promotedAtMs !== undefined) annotations[PROMOTED_ANNOTATION] = new Date(promotedAtMs).toISOString();
  return {
    ...secret,
    type: secret.type ?? "kubernetes.io/tls", // the API server then insists on tls.crt and tls.key
    metadata: { ...secret.metadata, labels: { ...secret.metadata.labels, [MANAGED_BY]: MANAGER }, annotations },
    data,
  };
}
