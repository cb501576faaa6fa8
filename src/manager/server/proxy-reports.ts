// What the manager tells others of a proxy, and which of its reports it keeps. Pure.
import { isDeepStrictEqual } from "node:util";
import { MAX_INT32 } from "../../api/fields.ts";
import { dnsSubdomainSchema } from "../../api/names.ts";
import { MAX_RULE_SNAPSHOTS } from "../../api/policy-status.ts";
import { plainText } from "../../base/plain-text.ts";
import { MAX_SHARES } from "../../mesh/contract/budget-type.ts";
import {
  type BacklogMessage,
  type ClusterReportMessage,
  type LockAccessMessage,
  MAX_UNREACHABLE,
  type PolicyReportMessage,
  type ReportMessage,
  type Reports,
  type ShareReportMessage,
  type UnnamedLockMessage,
} from "../../mesh/contract/messages.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import type { Delivery } from "../../mesh/link/delivery.ts";
import type { ProxyRecord } from "../../mesh/link/proxy-record.ts";
import { tablesIn } from "../../mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";

export function tablesOf({ route: { acknowledged, outstanding, inDoubt } }: ProxyRecord<unknown>): RouteTable[] {
  return [acknowledged, outstanding?.resource, ...inDoubt].flatMap((snapshot) =>
    snapshot === undefined ? [] : tablesIn(snapshot),
  );
}

export function factsOf({ stream, capabilities, route, otherDeliveries, reports }: ProxyRecord<unknown>): ProxyFacts {
  const { acknowledged, outstanding, inDoubt, mayHoldMore, version } = route;
  return {
    ...reports,
    capabilities,
    connected: stream !== undefined,
    acknowledged,
    outstanding: outstanding?.resource,
    inDoubt,
    mayHoldMore,
    version,
    problems: problemsByType(route, otherDeliveries),
  };
}

function problemsByType(route: Delivery, otherDeliveries: ReadonlyMap<string, Delivery>): ProxyFacts["problems"] {
  const byType: Record<string, readonly string[]> = {};
  if (route.problems.length > 0) byType[ROUTE.name] = route.problems;
  for (const [name, { problems }] of otherDeliveries) {
    if (problems.length > 0) byType[name] = problems;
  }
  return byType;
}

/**
 * Keeps only valid values, since they go into conditions and into rules that users are asked to add to a
 * Role. Undefined if nothing has changed, or if the kind of report is not known.
 */
export function withReport(reports: Reports, message: ReportMessage): Reports | undefined {
  const { report: _, ...kind } = message;
  const next = {
    ...reports,
    ...kind,
    ...("backlog" in message && { backlog: acceptedBacklog(message.backlog) }),
    ...("lock" in message && { lock: acceptedLockAccess(message.lock) }),
    ...("unnamedLock" in message && { unnamedLock: acceptedUnnamedLock(message.unnamedLock) }),
    ...("webhookProblem" in message && { webhookProblem: plainText(message.webhookProblem, MAX_REASON_CHARS) }),
    ...("clusters" in message && { clusters: acceptedClusters(message.clusters) }),
    ...("policies" in message && { policies: acceptedPolicies(message.policies) }),
    ...("shares" in message && { shares: acceptedShares(message.shares) }),
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

// Null means "not known".
function acceptedLockAccess(access: LockAccessMessage): LockAccessMessage | null {
  if (!RESOURCES.has(access.resource)) return null;
  const verbs = new Set(access.deniedVerbs);
  if (!verbs.isSubsetOf(VERBS)) return null;
  return { ...access, deniedVerbs: [...verbs], reason: plainText(access.reason, MAX_REASON_CHARS) };
}

// A VirtualApp can name no other lock.
function acceptedUnnamedLock(lock: UnnamedLockMessage): UnnamedLockMessage | null {
  return RESOURCES.has(lock.resource) && dnsSubdomainSchema.safeParse(lock.lockName).success ? lock : null;
}

const MAX_NAME_CHARS = 253;
/** The last second that RFC 3339 can express. */
const MAX_TIME_MS = Date.UTC(9_999, 11, 31, 23, 59, 59);

function acceptedPolicies({ digest, rules }: PolicyReportMessage): PolicyReportMessage {
  const states = rules.slice(0, MAX_RULE_SNAPSHOTS).map((rule) => ({
    ...rule,
    uid: plainText(rule.uid, MAX_NAME_CHARS),
    rule: plainText(rule.rule, MAX_NAME_CHARS),
    sinceMs: Math.min(rule.sinceMs, MAX_TIME_MS),
    cause: plainText(rule.cause, MAX_REASON_CHARS),
  }));
  return { digest: plainText(digest, 64), rules: states };
}

function acceptedClusters({ unreachable }: ClusterReportMessage): ClusterReportMessage {
  const accepted = unreachable.slice(0, MAX_UNREACHABLE).map(({ cluster, reason }) => ({
    cluster: plainText(cluster, MAX_NAME_CHARS),
    reason: plainText(reason, MAX_REASON_CHARS),
  }));
  return { unreachable: accepted };
}

function acceptedShares({ version, shares }: ShareReportMessage): ShareReportMessage {
  const accepted = shares.slice(0, MAX_SHARES).map((share) => ({
    ...share,
    uid: plainText(share.uid, MAX_NAME_CHARS),
    rule: plainText(share.rule, MAX_NAME_CHARS),
  }));
  return { version, shares: accepted };
}
