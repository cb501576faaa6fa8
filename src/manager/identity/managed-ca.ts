// The mesh's own CA in its Secret, which the first replica makes and the leader rotates. Invariants: a CA is
// made only if there is no Secret, this replica holds no CA and no other leads; the leader restores a deleted
// Secret.
import { X509Certificate } from "node:crypto";
import { MeshError } from "../../base/errors.ts";
import { LEASES, SECRETS, type Secret } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import { createIfMissing } from "../../runtime/ensure.ts";
import { mayTake, type Observation, observe } from "../../runtime/lease-record.ts";
import { getIfThere } from "../../runtime/patch-current.ts";
import type { AuthorityOptions, AuthoritySource } from "./authority.ts";
import { advanceCa, authorityOf, createCaState } from "./ca-rotation.ts";
import { type CaState, formatCaSecret, parseCaSecret } from "./ca-secret.ts";

export interface ManagedCaOptions extends AuthorityOptions {
  readonly client: Pick<KubeClient, "get" | "create" | "update">;
  readonly isLeader: () => boolean;
  /** True if a leader's lease is alive, this replica's own included. @throws the client's error */
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
      let secret = await getIfThere(client, SECRETS, ref, signal);
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

/** For a replica that does not contend yet: a holder counts until its lease has not changed for long. */
export function createIsLed({
  client,
  namespace,
  name,
  clock,
}: Omit<AuthorityOptions, "settleMs" | "log"> & Pick<ManagedCaOptions, "client">): ManagedCaOptions["isLed"] {
  let observation: Observation | undefined;
  return async (signal) => {
    const lease = await getIfThere(client, LEASES, { namespace, name }, signal);
    if (lease === undefined) return false;
    observation = observe(observation, lease, clock.monotonicMs());
    return !mayTake(observation, "", clock.monotonicMs());
  };
}
