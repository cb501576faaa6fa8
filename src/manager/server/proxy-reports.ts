// What a proxy has reported, by kind. Pure. Invariant: a report changes only its own kind, and only as far as
// it makes sense: it goes into conditions, and into rules that people are asked to add to a Role.
import { isDeepStrictEqual } from "node:util";
import { MAX_INT32 } from "../../api/fields.ts";
import { dnsSubdomainSchema } from "../../api/names.ts";
import { MAX_RULE_SNAPSHOTS } from "../../api/policy-status.ts";
import { plainText } from "../../base/plain-text.ts";
import {
  type BacklogMessage,
  type LockAccessMessage,
  NO_REPORTS,
  type PolicyReportMessage,
  type ReportMessage,
  type Reports,
  type UnnamedLockMessage,
} from "../../wire/messages.ts";

/** The reports after a reconnection. Those of locks, policies and webhooks outlive a connection. */
export function reportsAfter({ lock, unnamedLock, policies, webhookProblem }: Reports): Reports {
  return { ...NO_REPORTS, lock, unnamedLock, policies, webhookProblem };
}

/** Returns the reports with this one; undefined if nothing has changed, or if the kind is not known. */
export function withReport(reports: Reports, message: ReportMessage): Reports | undefined {
  const { report: _, ...kind } = message;
  const next = {
    ...reports,
    ...kind,
    ...("backlog" in message && { backlog: acceptedBacklog(message.backlog) }),
    ...("lock" in message && { lock: acceptedLockAccess(message.lock) }),
    ...("unnamedLock" in message && { unnamedLock: acceptedUnnamedLock(message.unnamedLock) }),
    ...("webhookProblem" in message && { webhookProblem: plainText(message.webhookProblem, MAX_REASON_CHARS) }),
    ...("policies" in message && { policies: acceptedPolicies(message.policies) }),
  };
  return isDeepStrictEqual(next, reports) ? undefined : next;
}

// A number is a uint32 on the wire and an int32 in the status: the API server would refuse the whole status.
function acceptedBacklog({ heldNamespaces, drainingWrites }: BacklogMessage): BacklogMessage {
  return { heldNamespaces: Math.min(heldNamespaces, MAX_INT32), drainingWrites: Math.min(drainingWrites, MAX_INT32) };
}

/** The kinds of client-go's resource locks, as in a Role. */
const RESOURCES: ReadonlySet<string> = new Set(["leases.coordination.k8s.io", "configmaps", "endpoints"]);
const VERBS: ReadonlySet<string> = new Set(["get", "list", "watch", "create", "update", "patch", "delete"]);
const MAX_REASON_CHARS = 256;

// Null ("not known") if the report is not about a lock, or about a verb that no elector uses.
function acceptedLockAccess(access: LockAccessMessage): LockAccessMessage | null {
  if (!RESOURCES.has(access.resource)) return null;
  const verbs = new Set(access.deniedVerbs);
  if (!verbs.isSubsetOf(VERBS)) return null;
  return { ...access, deniedVerbs: [...verbs], reason: plainText(access.reason, MAX_REASON_CHARS) };
}

// A VirtualApp can name only such a lock.
function acceptedUnnamedLock(lock: UnnamedLockMessage): UnnamedLockMessage | null {
  return RESOURCES.has(lock.resource) && dnsSubdomainSchema.safeParse(lock.lockName).success ? lock : null;
}

const MAX_NAME_CHARS = 253;
/** The last second that RFC 3339 can express. */
const MAX_TIME_MS = Date.UTC(9_999, 11, 31, 23, 59, 59);

function acceptedPolicies({ digest, rules }: PolicyReportMessage): PolicyReportMessage {
  const states = rules.slice(0, MAX_RULE_SNAPSHOTS).map((rule) => ({
    uid: plainText(rule.uid, MAX_NAME_CHARS),
    rule: plainText(rule.rule, MAX_NAME_CHARS),
    opened: rule.opened,
    sinceMs: Math.min(rule.sinceMs, MAX_TIME_MS),
  }));
  return { digest: plainText(digest, 64), rules: states };
}
