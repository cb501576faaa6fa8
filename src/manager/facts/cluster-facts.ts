// The API server's address for pods, and its version, which injection needs. Clusters are upgraded while a
// manager runs, so both are read again from time to time. Invariant: a failed read keeps the last facts.
import type { Clock, Timer } from "../../base/clock.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import { SERVICES, type Service } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";

export interface KnownCluster {
  /** The version from /version, for example "v1.36.3". */
  readonly gitVersion: string;
  /** The Service `kubernetes` in `default`. */
  readonly kubernetesService: { readonly ips: readonly string[]; readonly port: number };
}

export interface ClusterFacts extends Runnable {
  readonly known: KnownCluster | undefined;
}

interface ClusterFactsOptions {
  readonly client: Pick<KubeClient, "get" | "request">;
  readonly clock: Clock;
  readonly log: Logger;
}

const LOOK_MS = 10 * 60_000;
/** Until the facts are known, pods of apps cannot be created. */
const RETRY_MS = 1_000;
const HTTPS_PORT = 443;

export function createClusterFacts({ client, clock, log }: ClusterFactsOptions): ClusterFacts {
  const stopping = new AbortController();
  const { signal } = stopping;
  let known: KnownCluster | undefined;
  let timer: Timer | undefined;

  const look = async () => {
    try {
      const [version, service] = await Promise.all([
        client.request({ method: "GET", path: "/version", signal }),
        client.get(SERVICES, { namespace: "default", name: "kubernetes" }, { signal }),
      ]);
      known = {
        gitVersion: String((version as { gitVersion?: unknown }).gitVersion ?? ""),
        kubernetesService: addressOf(service),
      };
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, "the cluster's version and address could not be read");
    }
    if (!signal.aborted) timer = clock.after(known === undefined ? RETRY_MS : LOOK_MS, () => void look());
  };

  return {
    name: "cluster facts",
    get known() {
      return known;
    },
    // Does not wait: an API server that does not answer must not delay the other parts.
    async start() {
      void look();
    },
    async stop() {
      stopping.abort();
      timer?.cancel();
    },
  };
}

function addressOf({ spec = {} }: Service): KnownCluster["kubernetesService"] {
  const { clusterIP, clusterIPs = clusterIP === undefined ? [] : [clusterIP], ports = [] } = spec;
  const port = (ports.find(({ name }) => name === "https") ?? ports[0])?.port ?? HTTPS_PORT;
  return { ips: clusterIPs, port };
}
