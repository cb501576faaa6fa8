// The kind ManagerState: one cluster-scoped object, in which the manager names its replicas and their leader.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { celRules } from "./extensions.ts";
import { int, namedList, textUpTo } from "./fields.ts";
import { AGE_COLUMN, type KindDefinition, KRUISE_GROUP, objectMetaSchema, textColumn } from "./kind.ts";

export const MANAGER_STATE_NAME = "ctrlmesh-manager";

const portSchema = int(1, 65_535);

const endpointSchema = z.object({
  name: textUpTo(253).describe("Name of the pod."),
  podIP: textUpTo(45).describe("Address of the pod."),
  leader: z.boolean().describe("True for the leader."),
});

const statusSchema = z.object({
  namespace: optional(textUpTo(63)).describe("Namespace that the manager runs in."),
  endpoints: namedList(endpointSchema, 64).describe("The manager's replicas."),
  ports: optional(
    z.object({
      grpcLeaderElectionPort: optional(portSchema).describe("gRPC port of the leader."),
      grpcNonLeaderElectionPort: optional(portSchema).describe("gRPC port of every replica."),
    }),
  ).describe("Ports of the manager's services."),
});

const managerStateSchema = z
  .strictObject({
    apiVersion: z.literal(`${KRUISE_GROUP}/v1alpha1`),
    kind: z.literal("ManagerState"),
    metadata: objectMetaSchema,
    status: optional(statusSchema).catch(undefined).describe("The state that the manager last reported."),
  })
  .meta(
    celRules({
      rule: `self.metadata.name == '${MANAGER_STATE_NAME}'`,
      message: `there is one ManagerState, named ${MANAGER_STATE_NAME}`,
    }),
  )
  .describe("ManagerState lists the replicas of ctrlmesh-manager and names their leader. The manager writes it.");

export type ManagerState = Immutable<z.output<typeof managerStateSchema>>;
export type ManagerStateStatus = Immutable<z.output<typeof statusSchema>>;

export const managerStateKind = {
  group: KRUISE_GROUP,
  kind: "ManagerState",
  plural: "managerstates",
  shortNames: [],
  scope: "Cluster",
  columns: [
    textColumn("Namespace", ".status.namespace", "Namespace that the manager runs in."),
    textColumn("Leader", ".status.endpoints[?(@.leader==true)].name", "Pod of the leader."),
    AGE_COLUMN,
  ],
  schema: managerStateSchema,
} as const satisfies KindDefinition;
