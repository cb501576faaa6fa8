// The shares that one proxy has of the budgets of rules, as a resource type. A type of its own, since shares
// change often and policies are large.
import { z } from "zod";
import type { Immutable } from "../../base/json.ts";
import { WHOLE_BUDGET } from "../../policy/policy.ts";
import { jsonType, type Versioned } from "./resource-type.ts";

/** A proxy reports and a manager deals no more shares for one pod. */
export const MAX_SHARES = 256;

export const shareSchema = z.object({
  /** The uid of the object that has the rule. */
  uid: z.string().min(1),
  rule: z.string().min(1),
  /** Of the whole budget. */
  millionths: z.int().min(0).max(WHOLE_BUDGET),
});
const bodySchema = z.object({ shares: z.array(shareSchema).max(MAX_SHARES) });

/** The share of a rule whose budget its pods divide. */
export type BudgetShare = Immutable<z.output<typeof shareSchema>>;
export type BudgetResource = Versioned & Immutable<z.output<typeof bodySchema>>;

export const BUDGET = jsonType("budget", bodySchema);
