// The kind ManagerState: one cluster-scoped object with the replicas of the manager and their leader. The
// manager writes it; users and older proxies read it.
import { z } from "zod";
import type { Immutable } from "../base/immutable.ts";
import { celRules, listMap } from "./extensions.ts";
import { AGE_COLUMN, type KindDefinition, KRUISE_GROUP, objectMetaSchema } from "./kind.ts";

/** Name of the one object of this kind. */
export const MANAGER_STATE_NAME = "ctrlmesh-manager";

const portSchema = z.int().min(1).max(65_535);

const endpointSchema = z.object({
  name: z.string().max(253).describe("Name of the pod."),
  podIP: z.string().max(45).describe("Address of the pod."),
  leader: z.boolean().describe("True for the leader."),
});

const statusSchema = z.object({
  namespace: z.string().max(63).optional().describe("Namespace that the manager runs in."),
  endpoints: z.array(endpointSchema).max(64).optional().meta(listMap("name")).describe("The manager's replicas."),
  ports: z
    .object({
      grpcLeaderElectionPort: portSchema.optional().describe("gRPC port of the leader."),
      grpcNonLeaderElectionPort: portSchema.optional().describe("gRPC port of every replica."),
    })
    .optional()
    .describe("Ports of the manager's services."),
});

export const managerStateSchema = z
  .strictObject({
    apiVersion: z.literal(`${KRUISE_GROUP}/v1alpha1`),
    kind: z.literal("ManagerState"),
    metadata: objectMetaSchema,
    status: statusSchema.optional().catch(undefined).describe("The state that the manager last reported."),
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

export const managerStateKind: KindDefinition = {
  group: KRUISE_GROUP,
  kind: "ManagerState",
  plural: "managerstates",
  shortNames: [],
  scope: "Cluster",
  columns: [
    { name: "Namespace", type: "string", description: "Namespace that the manager runs in.", jsonPath: ".status.namespace" },
    {
      name: "Leader",
      type: "string",
      description: "Pod of the leader.",
      jsonPath: ".status.endpoints[?(@.leader==true)].name",
    },
    AGE_COLUMN,
  ],
  schema: managerStateSchema,
};
