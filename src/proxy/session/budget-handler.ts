// The handler of the resource type "budget": the shares that this pod has of the budgets of policies. Invariant:
// a report never says less than what is in force or what a restart can bring back, since the manager gives the
// difference to other pods. Without the manager the last shares stay in force, also over a restart.
import { z } from "zod";
import type { Timer } from "../../base/clock.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { BUDGET, type BudgetShare, shareSchema } from "../../mesh/contract/budget-type.ts";
import type { PodRef, ShareReportMessage } from "../../mesh/contract/messages.ts";
import { WANT_MS } from "../../policy/limiters/shared-bucket.ts";
import { ruleKey } from "../../policy/policy.ts";
import type { RunningPolicies } from "../policies/policies.ts";
import { createPodFile, type Slot } from "../state/state-folder.ts";
import { type ResourceHandler, takeWhole } from "./resource-handler.ts";

export interface BudgetHandlerDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly policies: Pick<RunningPolicies, "share" | "wantsMore" | "onWant">;
  readonly slot: Slot;
  readonly pod: PodRef;
  readonly report: (report: ShareReportMessage) => void;
}

interface Shares {
  readonly version: number;
  readonly shares: readonly BudgetShare[];
}

const CONTENT = z.object({ version: z.number(), shares: z.array(shareSchema) });

export function createBudgetHandler({ policies, slot, pod, report, clock, log }: BudgetHandlerDeps) {
  const file = createPodFile(slot, CONTENT, pod, { ignored: "stored shares of budgets ignored", onFullDisk: "remove", log });
  let current: Shares = { version: 0, shares: [] };
  /** The last shares that are on the disk, or for which the disk has none. */
  let settled = current;
  /** What is in force, or what a restart may bring back: a new manager must not deal any of it to another pod. */
  let mayHold: readonly BudgetShare[] = [];
  let timer: Timer | undefined;
  const tell = () => {
    const shares = mayHold.map((share) => ({ ...share, wantsMore: policies.wantsMore(share) }));
    report({ version: settled.version, shares });
    timer?.cancel();
    // The want ends by itself.
    timer = shares.some(({ wantsMore }) => wantsMore) ? clock.after(WANT_MS, tell) : undefined;
  };
  policies.onWant(tell);
  const handler: ResourceHandler = {
    take(update, answers) {
      const refused = "shares of budgets refused, the last ones stay";
      const next = takeWhole(update, answers, BUDGET.decode, { log, refused });
      if (next === undefined) return;
      current = { version: next.version, shares: next.shares };
      mayHold = larger(mayHold, next.shares);
      policies.share(current.shares);
      tell();
      void file
        .save(() => current)
        .then((saved) => {
          if (current.version !== next.version) return;
          if (saved.is !== "unknown") [settled, mayHold] = [current, current.shares];
          tell();
          answers.ack();
        });
    },
  };
  return {
    ...handler,
    async restore(): Promise<void> {
      const stored = await file.load();
      if (stored === undefined) return;
      current = stored;
      [settled, mayHold] = [stored, stored.shares];
      policies.share(stored.shares);
      tell();
    },
    async idle(): Promise<void> {
      timer?.cancel();
      await file.idle();
    },
  };
}

/** The larger share of each rule. */
function larger(a: readonly BudgetShare[], b: readonly BudgetShare[]): BudgetShare[] {
  const byRule = new Map<string, BudgetShare>();
  for (const share of [...b, ...a]) {
    const key = ruleKey(share);
    const other = byRule.get(key);
    if (other === undefined || other.millionths < share.millionths) byRule.set(key, share);
  }
  return [...byRule.values()];
}
