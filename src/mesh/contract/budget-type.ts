// The shares that one proxy has of the budgets of rules, as a resource type. The body is JSON; this schema is
// its contract. A type of its own, since shares change often and policies are large.
import { z } from "zod";
import { WHOLE_BUDGET } from "../../policy/policy.ts";
import { decodeJson, digestOf, type ResourceType, type Versioned } from "./resource-type.ts";

/** The share of a rule whose budget its pods divide. */
export interface BudgetShare {
  /** The uid of the object that has the rule. */
  readonly uid: string;
  readonly rule: string;
  /** Of the whole budget. */
  readonly millionths: number;
}

export type BudgetResource = Versioned & { readonly shares: readonly BudgetShare[] };

/** A proxy reports and a manager deals no more shares for one pod. */
export const MAX_SHARES = 256;

export const shareSchema: z.ZodType<BudgetShare> = z.object({
  uid: z.string().min(1),
  rule: z.string().min(1),
  millionths: z.int().min(0).max(WHOLE_BUDGET),
});
const bodySchema = z.object({ shares: z.array(shareSchema).max(MAX_SHARES) });

export const BUDGET: ResourceType<BudgetResource> = {
  name: "budget",
  encode: ({ shares }) => encoded(shares),
  decode: (body, head) => ({ ...head, shares: decodeJson(body, head, bodySchema).shares }),
};

export function budgetDigest(shares: readonly BudgetShare[]): string {
  return digestOf(encoded(shares));
}

function encoded(shares: readonly BudgetShare[]): Buffer {
  return Buffer.from(JSON.stringify({ shares }));
}
