// Tells the parts of the manager which replica leads. Invariants: controllers run only while this replica
// holds the lease; a replica that has lost it ends its process, since controllers cannot be started again.
import { randomUUID } from "node:crypto";
import { MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { formatAddress } from "../../base/settings.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { createLeaderElector, type LeaderElector } from "../../runtime/leader-election.ts";
import type { Leadership } from "../server/proxy-stream.ts";

export const LEASE_NAME = "ctrlmesh-manager";

export interface ReplicaLeadership {
  isLeader(): boolean;
  /** Undefined while this replica leads; else host:port of the leader, "" if nobody is known to lead. */
  leaderElsewhere(): string | undefined;
  readonly epochs: Leadership;
  /** Fires when the lease is lost; the reason is a MeshError `LEADERSHIP_LOST`. */
  readonly lost: AbortSignal;
  readonly runnable: Runnable;
}

interface ReplicaLeadershipOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly config: Readonly<Record<"namespace" | "podName" | "podIP", string>> & { readonly leaseDurationMs: number };
  readonly client: KubeClient;
  readonly grpcPort: () => number;
  readonly lead: (signal: AbortSignal) => Promise<void>;
}

export function createReplicaLeadership(options: ReplicaLeadershipOptions): ReplicaLeadership {
  const { config, client, grpcPort, lead, clock, random, log } = options;
  const { namespace, podName, podIP, leaseDurationMs } = config;
  const lost = new AbortController();
  let elector: LeaderElector | undefined;
  return {
    isLeader: () => elector?.isLeader ?? false,
    leaderElsewhere: () => (elector?.isLeader ? undefined : (elector?.leader.split("_").at(-1) ?? "")),
    epochs: {
      get epoch() {
        return elector?.epoch;
      },
    },
    lost: lost.signal,
    runnable: {
      name: "leader election",
      async start(starting) {
        elector = createLeaderElector({
          client,
          namespace,
          name: LEASE_NAME,
          clock,
          random,
          log,
          // Random, since two replicas may be configured alike; the address says where to send a proxy.
          identity: `${podName}_${randomUUID()}_${formatAddress({ host: podIP, port: grpcPort() })}`,
          // client-go's proportions: 15 s, 10 s, 2 s.
          leaseDurationMs,
          renewDeadlineMs: (leaseDurationMs * 2) / 3,
          retryPeriodMs: (leaseDurationMs * 2) / 15,
          callbacks: {
            onStartedLeading: lead,
            onStoppedLeading: () => lost.abort(new MeshError("LEADERSHIP_LOST", "leading: the lease is lost")),
          },
        });
        await elector.start(starting);
      },
      stop: async () => elector?.stop(),
    },
  };
}
