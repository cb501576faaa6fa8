// The addresses of API server and manager for pods, and the cluster's version, which injection needs. They may change
// while a manager runs, so they are read again from time to time. Invariant: a failed read keeps the last facts.
import type { Timer } from "../../base/clock.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { SERVICES, type Service } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";

export interface KnownCluster {
  /** The version from /version, for example "v1.36.3". */
  readonly gitVersion: string;
  /** The Service `kubernetes` in `default`. */
  readonly kubernetesService: { readonly ips: readonly string[]; readonly port: number };
  /** The cluster IPs of the manager's own Service; empty if there is no such Service, or a headless one. */
  readonly managerIPs: readonly string[];
}

export interface ClusterFacts extends Runnable {
  readonly known: KnownCluster | undefined;
}

interface ClusterFactsOptions extends Pick<ProcessContext, "clock" | "log"> {
  readonly client: Pick<KubeClient, "get" | "list" | "request">;
  readonly service: { readonly namespace: string; readonly name: string };
}

const LOOK_MS = 10 * 60_000;
/** Until the facts are known, pods of apps cannot be created. */
const RETRY_MS = 1_000;
const HTTPS_PORT = 443;

export function createClusterFacts({ client, service: own, clock, log }: ClusterFactsOptions): ClusterFacts {
  const stopping = new AbortController();
  const { signal } = stopping;
  let known: KnownCluster | undefined;
  let timer: Timer | undefined;

  const look = async () => {
    try {
      const ownService = { namespace: own.namespace, fieldSelector: `metadata.name=${own.name}` };
      const [version, service, managers] = await Promise.all([
        client.request({ method: "GET", path: "/version", signal }),
        client.get(SERVICES, { namespace: "default", name: "kubernetes" }, { signal }),
        // A list, which the manager may do anyway, needs no further right.
        client.list(SERVICES, { ...ownService, signal }),
      ]);
      known = {
        gitVersion: String((version as { gitVersion?: unknown }).gitVersion ?? ""),
        kubernetesService: { ips: ipsOf(service), port: portOf(service) },
        managerIPs: managers.items.flatMap(ipsOf),
      };
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, "the cluster's version and addresses could not be read");
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

function ipsOf({ spec = {} }: Service): string[] {
  const { clusterIP, clusterIPs = clusterIP === undefined ? [] : [clusterIP] } = spec;
  return clusterIPs.filter((ip) => ip !== "" && ip !== "None");
}

function portOf({ spec: { ports = [] } = {} }: Service): number {
  return (ports.find(({ name }) => name === "https") ?? ports[0])?.port ?? HTTPS_PORT;
}
