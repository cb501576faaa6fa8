// The kinds of this project as resources of the client.
import type { Resource } from "../kube/client/resource.ts";
import { type CircuitBreaker, circuitBreakerKind } from "./circuit-breaker.ts";
import { type FaultInjection, faultInjectionKind } from "./fault-injection.ts";
import { resourceOf } from "./kind.ts";
import { type ManagerState, managerStateKind } from "./manager-state.ts";
import { type MeshCluster, meshClusterKind } from "./mesh-cluster.ts";
import { type OwnershipSlice, ownershipSliceKind } from "./ownership-slice.ts";
import { type ShardingConfig, shardingConfigKind } from "./sharding-config.ts";
import { type TrafficPolicy, trafficPolicyKind } from "./traffic-policy.ts";
import { type VirtualApp, virtualAppKind } from "./virtual-app.ts";

export const VIRTUAL_APPS: Resource<VirtualApp> = resourceOf(virtualAppKind);
export const SHARDING_CONFIGS: Resource<ShardingConfig> = resourceOf(shardingConfigKind);
export const TRAFFIC_POLICIES: Resource<TrafficPolicy> = resourceOf(trafficPolicyKind);
export const CIRCUIT_BREAKERS: Resource<CircuitBreaker> = resourceOf(circuitBreakerKind);
export const FAULT_INJECTIONS: Resource<FaultInjection> = resourceOf(faultInjectionKind);
export const MANAGER_STATES: Resource<ManagerState> = resourceOf(managerStateKind);
export const MESH_CLUSTERS: Resource<MeshCluster> = resourceOf(meshClusterKind);
export const OWNERSHIP_SLICES: Resource<OwnershipSlice> = resourceOf(ownershipSliceKind);
