// Whether a replica leads, for one that does not contend yet. Invariant: a held lease counts until this process has seen it unchanged for
// its whole duration, as in leader election itself. managed-ca.ts asks.
import type { Clock } from "../../base/clock.ts";
import { LEASES } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import { mayTake, type Observation, observe } from "../../runtime/lease-record.ts";

export interface LeaseHolderOptions {
  readonly client: Pick<KubeClient, "get">;
  readonly namespace: string;
  readonly name: string;
  readonly clock: Clock;
}

/** True while the lease has a holder that may be alive. It throws the client's error. */
export function createIsLed({ client, namespace, name, clock }: LeaseHolderOptions): (signal: AbortSignal) => Promise<boolean> {
  let observation: Observation | undefined;
  return async (signal) => {
    try {
      const lease = await client.get(LEASES, { namespace, name }, { signal });
      observation = observe(observation, lease, clock.monotonicMs());
      return !mayTake(observation, "", clock.monotonicMs());
    } catch (error) {
      if (isStatus(error, "NotFound")) return false;
      throw error;
    }
  };
}
