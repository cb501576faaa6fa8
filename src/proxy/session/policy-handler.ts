// The handler of the resource type "policy": enforces the policies immediately, and acknowledges them when
// they are stored. Invariants: it waits for no write and no handover. A set or a rule that cannot be read
// leaves the last good one in force. Without policies it says so, until a manager has sent some or sends none.
import type { Logger } from "../../base/log.ts";
import type { PolicyReportMessage, UpdateMessage } from "../../mesh/contract/messages.ts";
import { type PolicyResource, policiesDigest, type ReadPolicies, readPolicies } from "../../mesh/contract/policy-type.ts";
import { NO_POLICIES, type PolicySet, type RuleOrigin } from "../../policy/policy.ts";
import type { BreakerFile } from "../policies/breaker-file.ts";
import type { RunningPolicies } from "../policies/policies.ts";
import type { PolicyFile } from "../policies/policy-file.ts";
import { type Answers, takeWhole } from "./resource-handler.ts";

export interface PolicyHandlerDeps {
  readonly policies: RunningPolicies;
  readonly file: PolicyFile;
  readonly breakers: BreakerFile;
  readonly report: (report: PolicyReportMessage) => void;
  readonly log: Logger;
}

export function createPolicyHandler({ policies, file, breakers, report, log }: PolicyHandlerDeps) {
  let current: PolicyResource | undefined;
  /** Whether the manager sends policies; undefined as long as that is not known. */
  let isSent: boolean | undefined;
  policies.onChange((hasMoved) => {
    report(policies.report);
    if (hasMoved) void breakers.save(() => ({ breakers: policies.openBreakers }));
  });
  return {
    announced(isNowSent: boolean): void {
      // A restart without a manager need not wait for what does not come.
      if (!isNowSent && isSent !== false && current === undefined) void file.saveNone();
      isSent = isNowSent;
    },
    /**
     * True if there are no policies and the manager may send some. The proxy must not serve without them:
     * neither a new one, nor one whose file is lost (by a full disk).
     */
    get isAwaited(): boolean {
      return current === undefined && isSent !== false;
    },
    async restore(): Promise<void> {
      const [stored, opened] = await Promise.all([file.load(), breakers.load()]);
      policies.restore(opened?.breakers ?? []);
      if (stored === undefined) return;
      if ("none" in stored) {
        isSent = false;
        return;
      }
      current = stored;
      policies.enforce(stored, stored.digest);
    },
    take(update: UpdateMessage, answers: Answers) {
      const read = takeWhole(update, answers, readPolicies, { log, refused: "policies refused, the last good ones stay" });
      if (read === undefined) return;
      const { problems } = read;
      if (problems.length > 0)
        log.warn({ problems }, "policies of a newer version: these rules stay as they were, or are left out");
      const next = withKept(read, current);
      const counts = { limits: next.limits.length, faults: next.faults.length, egress: next.egress.length };
      if (next.digest !== current?.digest) log.info(counts, "policies enforced");
      current = next;
      policies.enforce(next, next.digest);
      void file
        .save(() => current ?? next)
        .then(() => {
          if (current !== next) return;
          if (problems.length === 0) answers.ack();
          else answers.nack(problems);
        });
    },
  };
}

/**
 * A rule stays in force as it was if it cannot be read, or if the manager says so. The digest remains that of
 * what was sent, by which the manager knows that its set is in force.
 */
function withKept({ resource, unread }: ReadPolicies, before: PolicySet = NO_POLICIES): PolicyResource {
  const { version, digest, limits, faults, egress, keep } = resource;
  const kept = new Set(keep);
  const isKept = ({ origin }: { readonly origin: RuleOrigin }) =>
    kept.has(origin.uid) || unread.some(({ uid, rule }) => uid === origin.uid && rule === origin.rule);
  const set: PolicySet = {
    limits: [...limits, ...before.limits.filter(isKept)],
    faults: [...faults, ...before.faults.filter(isKept)],
    egress: [...egress, ...before.egress.filter(isKept)],
  };
  return { version, digest: unread.length === 0 ? digest : policiesDigest(set), ...set };
}
