// The fields around the spec of a policy kind. They are the same for all policy kinds.
import { z } from "zod";
import { AGE_COLUMN, conditionPath, type KindDefinition, objectMetaSchema, type PrinterColumn } from "./kind.ts";
import { policyStatusSchema } from "./policy-status.ts";

const COLUMNS: readonly PrinterColumn[] = [
  {
    name: "Accepted",
    type: "string",
    description: "Status of the condition Accepted.",
    jsonPath: conditionPath("Accepted", "status"),
  },
  {
    name: "Reason",
    type: "string",
    description: "Reason of the condition Accepted, as one word.",
    jsonPath: conditionPath("Accepted", "reason"),
  },
  { name: "Pods", type: "integer", description: "Pods that the policy is for.", jsonPath: ".status.targets.total" },
  { name: "Synced", type: "integer", description: "Proxies that enforce the newest rules.", jsonPath: ".status.targets.synced" },
  {
    name: "Open",
    type: "integer",
    description: "Pods with an open breaker. A rule that always refuses requests does not count.",
    jsonPath: ".status.targets.opened",
  },
  AGE_COLUMN,
  {
    name: "Message",
    type: "string",
    description: "Message of the condition Accepted.",
    jsonPath: conditionPath("Accepted", "message"),
    priority: 1,
  },
];

/** What differs between the policy kinds. */
interface PolicyKindParts<Group extends string, Kind extends string, Spec extends z.ZodType> {
  readonly group: Group;
  readonly kind: Kind;
  readonly plural: string;
  readonly shortName: string;
  readonly description: string;
  readonly spec: Spec;
  /** Default: metadata without rules. */
  readonly metadata?: typeof objectMetaSchema;
}

export function policyKind<const Group extends string, const Kind extends string, Spec extends z.ZodType>(
  parts: PolicyKindParts<Group, Kind, Spec>,
) {
  const { group, kind, plural, shortName, description, spec, metadata = objectMetaSchema } = parts;
  const schema = z.strictObject({
    apiVersion: z.literal<`${Group}/v1alpha1`>(`${group}/v1alpha1`),
    kind: z.literal(kind),
    metadata,
    spec,
    // A status that this version cannot read counts as none; the manager writes it again.
    status: policyStatusSchema
      .optional()
      .catch(undefined)
      .describe("The state that the manager last observed. Only the manager writes the status."),
  });
  return {
    group,
    kind,
    plural,
    shortNames: [shortName],
    scope: "Namespaced",
    columns: COLUMNS,
    schema: schema.describe(description),
  } as const satisfies KindDefinition;
}
