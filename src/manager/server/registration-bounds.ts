// The bounds of a registration, checked before anything of it is decoded or kept. Pure. Invariant: any pod of
// the cluster may register, so that no part of a registration costs more than a real proxy's. Used by
// proxy-stream.ts.
import { MAX_NAME_LENGTH } from "../../api/names.ts";
import type { RegistrationMessage } from "../../wire/messages.ts";
import { type PodKey, podKey } from "../facts/pod-key.ts";

/**
 * A proxy names five routes at most. Tables are named by hash: a short registration could name a million, and
 * the planner reads each.
 */
const MAX_IN_DOUBT = 15;
/** A route without its table. Its largest part is the list of user agents: 64 of 256 characters. */
const MAX_CLAIM_BYTES = 64 * 1024;
const MAX_CAPABILITIES = 64;
const MAX_CAPABILITY_CHARS = 64;

/**
 * The pod that the registration names; undefined if the names cannot be used. The key goes into log lines,
 * answers and a map.
 */
export function registeredPod({ pod }: RegistrationMessage): PodKey | undefined {
  if (pod === null || pod.name === "") return undefined;
  return [pod.name, pod.namespace].every((name) => name.length <= MAX_NAME_LENGTH) ? podKey(pod) : undefined;
}

/** The bound that the registration exceeds, as text; undefined if there is none. */
export function exceededBound({ capabilities, route }: RegistrationMessage): string | undefined {
  if (capabilities.length > MAX_CAPABILITIES) {
    return `a registration lists at most ${MAX_CAPABILITIES} capabilities, not ${capabilities.length}`;
  }
  if (capabilities.some((capability) => capability.length > MAX_CAPABILITY_CHARS)) {
    return `a capability has at most ${MAX_CAPABILITY_CHARS} characters`;
  }
  const { acknowledged = null, inDoubt = [] } = route ?? {};
  if (inDoubt.length > MAX_IN_DOUBT) return `a registration names at most ${MAX_IN_DOUBT} routes in doubt, not ${inDoubt.length}`;
  const isLong = [...(acknowledged === null ? [] : [acknowledged]), ...inDoubt].some(({ body }) => body.length > MAX_CLAIM_BYTES);
  return isLong ? `a route in a registration has at most ${MAX_CLAIM_BYTES} bytes` : undefined;
}
