// The fields around the spec, which are the same for all policy kinds.
import { z } from "zod";
import { observedStatus } from "./fields.ts";
import {
  AGE_COLUMN,
  conditionColumns,
  integerColumn,
  type KindDefinition,
  objectMetaSchema,
  type PrinterColumn,
} from "./kind.ts";
import { policyStatusSchema } from "./policy-status.ts";

const ACCEPTED = conditionColumns("Accepted");
const COLUMNS: readonly PrinterColumn[] = [
  ACCEPTED.status,
  ACCEPTED.reason,
  integerColumn("Pods", ".status.targets.total", "Pods that the policy is for."),
  integerColumn("Synced", ".status.targets.synced", "Proxies that enforce the newest rules."),
  integerColumn(
    "Open",
    ".status.targets.opened",
    "Pods with an open breaker. A rule that always refuses requests does not count.",
  ),
  AGE_COLUMN,
  ACCEPTED.message,
];

interface PolicyKindParts<Group extends string, Kind extends string, Spec extends z.ZodType> {
  readonly group: Group;
  readonly kind: Kind;
  readonly plural: string;
  readonly shortName: string;
  readonly description: string;
  readonly spec: Spec;
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
    status: observedStatus(policyStatusSchema),
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
