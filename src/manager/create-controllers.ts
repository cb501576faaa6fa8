// All controllers of the manager. They run only in the leader.
import type { ManagerStateStatus } from "../api/manager-state.ts";
import type { EventRecorder } from "../runtime/events.ts";
import { addWebhookConfigurationController } from "./admission/configuration/add.ts";
import { addAppController } from "./app-controller/add.ts";
import { createPublishedPlans } from "./apps/published-plans.ts";
import { addClusterNamespacesController } from "./cluster-namespaces/add.ts";
import { addClustersController } from "./clusters/add.ts";
import type { ReplicaLeadership } from "./context/leadership.ts";
import type { Base, PodWatches } from "./create-base.ts";
import type { Servers } from "./create-servers.ts";
import { addDecisionsController } from "./decisions/add.ts";
import { addLabelsController } from "./labels/add.ts";
import { createLabelStates } from "./labels/label-state.ts";
import { addManagerStateController } from "./manager-state/add.ts";
import { addPeersController } from "./peers/add.ts";
import { addPlacementsController } from "./placements/add.ts";
import { addPoliciesController } from "./policies/add.ts";
import { addProfilesController } from "./profiles/add.ts";
import { createEvictor } from "./restart/evictor.ts";
import { addRolloutController } from "./rollout/add.ts";
import { addPlacementController } from "./sharding/placement/add.ts";
import { addShardsController } from "./sharding/shards/add.ts";
import { addSlicesController } from "./slices/add.ts";
import { addTrustController } from "./trust/add.ts";

export function createControllers(
  base: Base,
  parts: PodWatches & Servers & { readonly events: EventRecorder; readonly leadership: ReplicaLeadership },
) {
  const { config } = base;
  const { pods, past, events, mesh, webhooks, snapshots, leadership } = parts;
  const status = (): ManagerStateStatus => ({
    namespace: config.namespace,
    endpoints: [{ name: config.podName, podIP: config.podIP, leader: true }],
    ports: { grpcLeaderElectionPort: snapshots.port, grpcNonLeaderElectionPort: snapshots.port },
  });
  const states = addManagerStateController({ ...base, status });
  const target = {
    namespace: config.namespace,
    serviceName: config.serviceName,
    url: config.webhookUrl,
    timeoutSeconds: config.webhookTimeoutSeconds,
    warnsOfMoves: config.warnOfMoves,
  };
  const entries = webhooks && { target, size: { isTooLarge: false } };
  const { isLeader } = leadership;
  const evictor = createEvictor({ ...base, pods, events, isLeader });
  const { labelFamilies: families } = config;
  const labels = createLabelStates(families);
  const plans = createPublishedPlans();
  const common = { ...base, pods, past, events, evictor, labels, plans, settleMs: config.restartSettleMs, webhooks: entries };
  const apps = base.sources.map((source) => addAppController(source, common));
  const trust = mesh ? [addTrustController({ ...base, identity: mesh.identity })] : [];
  const configurations =
    mesh && entries ? [addWebhookConfigurationController({ ...base, ...entries, identity: mesh.identity })] : [];
  const others = [
    addPlacementController({ ...base, pods, plans }),
    addShardsController(base),
    addRolloutController({ ...base, pods, events, evictor }),
    addLabelsController({ ...base, families, states: labels, perSecond: config.labelsPerSecond }),
    addPoliciesController({ ...base, pods, events }),
    addPeersController({ ...base, pods }),
    addClustersController({ ...base, events, plans }),
    addClusterNamespacesController(base),
    addProfilesController({ ...base, events }),
    addPlacementsController({ ...base, events, plans }),
    addDecisionsController({ ...base, events }),
    addSlicesController({ ...base, events, plans, isOn: config.ownershipSlices }),
  ];
  return { states, all: [base.watched.runnable, ...apps, ...others, states, ...trust, ...configurations] };
}
