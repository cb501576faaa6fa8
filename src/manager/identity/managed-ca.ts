// The mesh's own CA in its Secret, which the first replica makes and the leader rotates and restores.
// Invariants: a CA is made only if there is no Secret, this replica holds no CA and no other replica leads; a
// damaged Secret is an error, since a new CA would cut off every running proxy.
import { X509Certificate } from "node:crypto";
import type { KeyCertificate } from "../../base/certificates.ts";
import { MeshError } from "../../base/errors.ts";
import { joinPem, readCertificates, splitPem } from "../../base/pem.ts";
import { LEASES, SECRETS, type Secret } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import { createIfMissing } from "../../runtime/ensure.ts";
import { mayTake, type Observation, observe } from "../../runtime/lease-record.ts";
import { getIfThere } from "../../runtime/patch-current.ts";
import { type AuthorityOptions, type AuthoritySource, checkCa } from "./authority.ts";
import { advanceCa, authorityOf, type CaState, createCaState } from "./ca-rotation.ts";
import { isOfManager, MANAGED_BY, MANAGER } from "./mesh-namespaces.ts";

interface ManagedCaOptions extends AuthorityOptions {
  readonly client: Pick<KubeClient, "get" | "create" | "update">;
  readonly isLeader: () => boolean;
  /** True if some replica leads, possibly this one. @throws the client's error */
  readonly isLed: (signal: AbortSignal) => Promise<boolean>;
}

export function createManagedCa(options: ManagedCaOptions): AuthoritySource {
  const { client, namespace, name, isLeader, settleMs, clock, log } = options;
  const ref = { namespace, name };
  let currentCa: CaState | undefined;

  async function create(state: CaState, signal: AbortSignal): Promise<Secret> {
    const secret = await createIfMissing(client, SECRETS, formatCaSecret(state, { metadata: ref }), signal);
    if (secret === undefined) return client.get(SECRETS, ref, { signal });
    if (currentCa === undefined) log.warn({ secret: `${namespace}/${name}` }, "made a new mesh CA: there was none");
    else log.error({ secret: `${namespace}/${name}` }, "the Secret of the mesh CA was gone and is put back");
    return secret;
  }

  async function advance(secret: Secret, state: CaState, signal: AbortSignal): Promise<CaState> {
    const next = advanceCa(state, { now: clock.now(), settleMs });
    if (next === undefined) return state;
    try {
      await client.update(SECRETS, formatCaSecret(next.state, secret), { signal });
    } catch (error) {
      if (isStatus(error, "Conflict")) return state; // another writer was faster: the Secret is read again soon
      throw error;
    }
    log.info({ secret: `${namespace}/${name}` }, `rotating the mesh CA: ${next.step}`);
    return next.state;
  }

  return {
    async refresh(signal) {
      let secret = await getIfThere(client, SECRETS, ref, { signal });
      if (secret === undefined) {
        if (currentCa !== undefined && !isLeader()) return authorityOf(currentCa, settleMs);
        // The leader holds the trusted CA and is about to restore it.
        if (currentCa === undefined && !isLeader() && (await options.isLed(signal)))
          throw new MeshError("CA_MISSING", `reading Secret ${namespace}/${name}: it is gone, and the leader has to put it back`);
        secret = await create(currentCa ?? createCaState(clock.now()), signal);
      }
      const state = parseCaSecret(secret);
      if (currentCa !== undefined && !isSuccessor(state, currentCa)) {
        const what = "not the mesh's CA nor its successor";
        const remedy = "a restart of the manager takes it, and cuts off the proxies that trust the other";
        throw new MeshError("CERTIFICATE_INVALID", `reading Secret ${namespace}/${name}, key tls.crt: ${what}; ${remedy}`);
      }
      currentCa = isLeader() ? await advance(secret, state, signal) : state;
      return authorityOf(currentCa, settleMs);
    },
  };
}

// A user may have replaced the Secret by one that no running proxy trusts.
function isSuccessor(state: CaState, currentCa: CaState): boolean {
  const knownPems = [state.signing.certPem, ...state.old, ...(state.next === undefined ? [] : [state.next.certPem])];
  const { publicKey } = new X509Certificate(currentCa.signing.certPem);
  return (
    knownPems.includes(currentCa.signing.certPem) ||
    (currentCa.next !== undefined && knownPems.includes(currentCa.next.certPem)) ||
    state.cross.some((pem) => new X509Certificate(pem).verify(publicKey))
  );
}

/** For a replica that does not contend for the lease yet. A lease that is not renewed has no leader. */
export function createIsLed(options: Pick<ManagedCaOptions, "client" | "namespace" | "name" | "clock">) {
  const { client, namespace, name, clock } = options;
  let observation: Observation | undefined;
  return async (signal: AbortSignal): Promise<boolean> => {
    const lease = await getIfThere(client, LEASES, { namespace, name }, { signal });
    if (lease === undefined) return false;
    observation = observe(observation, lease, clock.monotonicMs());
    return !mayTake(observation, "", clock.monotonicMs());
  };
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

/** The Secret with this state. Other keys, labels and annotations stay. */
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
