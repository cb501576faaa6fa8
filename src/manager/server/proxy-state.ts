// What is known about one proxy, and how a registration or a report changes it. Pure.
import { isDeepStrictEqual } from "node:util";
import { MAX_INT32 } from "../../api/fields.ts";
import { dnsSubdomainSchema } from "../../api/names.ts";
import { MAX_RULE_SNAPSHOTS } from "../../api/policy-status.ts";
import { plainText } from "../../base/plain-text.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import { MAX_SHARES } from "../../wire/budget-type.ts";
import {
  type BacklogMessage,
  type LockAccessMessage,
  NO_REPORTS,
  type PolicyReportMessage,
  type ReportMessage,
  type Reports,
  type ShareReportMessage,
  type UnnamedLockMessage,
  type UpdateMessage,
} from "../../wire/messages.ts";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { ProxyFacts } from "../facts/proxy-facts.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import type { RouteClaims } from "./registration-tables.ts";

export interface ProxyStream {
  send(update: UpdateMessage): void;
  /** Ends the stream. The proxy comes back. */
  end(reason: string): void;
}

/** A registration whose tables are resolved. */
export interface ProxyRegistration {
  readonly uid: string;
  /** The proxy's own count of its streams. */
  readonly streamNumber: number;
  readonly capabilities: readonly string[];
  readonly route: RouteClaims;
}

export interface ProxyState {
  readonly uid: string;
  streamNumber: number;
  stream: ProxyStream | undefined;
  capabilities: ReadonlySet<string>;
  route: Delivery<Snapshot>;
  otherDeliveries: Map<string, Delivery>;
  reports: Reports;
}

export function emptyState(uid: string): ProxyState {
  return {
    uid,
    streamNumber: 0,
    stream: undefined,
    capabilities: new Set(),
    route: createDelivery(),
    otherDeliveries: new Map(),
    reports: NO_REPORTS,
  };
}

/** At the start of a new epoch: the proxy may enforce anything until it registers again. */
export function doubtfulState({ uid, streamNumber, reports, route }: ProxyState): ProxyState {
  const { version, lastNonce } = route;
  return {
    ...emptyState(uid),
    streamNumber,
    // Another leader may have dealt other shares in the meantime.
    reports: { ...reportsAfter(reports), shares: null },
    route: createDelivery({ version, lastNonce, mayHoldMore: true }),
  };
}

/** The claims replace what was known: the proxy may have restarted with an older route, or with none. */
export function applyRegistration(state: ProxyState, { streamNumber, capabilities, route }: ProxyRegistration): void {
  state.streamNumber = streamNumber;
  state.capabilities = new Set(capabilities);
  state.reports = reportsAfter(state.reports);
  state.route = createDelivery({
    acknowledged: route.acknowledged,
    inDoubt: route.inDoubt,
    mayHoldMore: route.mayHoldMore,
    version: Math.max(state.route.version, route.version),
    lastNonce: state.route.lastNonce,
  });
  // The planner decides again which route to send. Other types have no claims: what is desired stays.
  for (const [name, { desired, lastNonce }] of state.otherDeliveries)
    state.otherDeliveries.set(name, createDelivery({ desired, lastNonce }));
}

export function deliveryOf<R extends Versioned>(state: ProxyState, type: Pick<ResourceType<R>, "name">): Delivery<R>;
export function deliveryOf(state: ProxyState, { name }: { readonly name: string }): Delivery {
  if (name === ROUTE.name) return state.route;
  const delivery = state.otherDeliveries.get(name) ?? createDelivery();
  state.otherDeliveries.set(name, delivery);
  return delivery;
}

export function tablesOf({ route: { acknowledged, outstanding, inDoubt } }: ProxyState): RouteTable[] {
  return [acknowledged, outstanding?.resource, ...inDoubt].flatMap((snapshot) => snapshot?.table ?? []);
}

export function factsOf({ stream, capabilities, route, otherDeliveries, reports }: ProxyState): ProxyFacts {
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

/** The reports after a reconnection. Those of locks, policies, webhooks and shares outlive a connection. */
function reportsAfter({ lock, unnamedLock, policies, webhookProblem, shares }: Reports): Reports {
  return { ...NO_REPORTS, lock, unnamedLock, policies, webhookProblem, shares };
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
    uid: plainText(rule.uid, MAX_NAME_CHARS),
    rule: plainText(rule.rule, MAX_NAME_CHARS),
    opened: rule.opened,
    sinceMs: Math.min(rule.sinceMs, MAX_TIME_MS),
    halfOpen: rule.halfOpen,
    cause: plainText(rule.cause, MAX_REASON_CHARS),
  }));
  return { digest: plainText(digest, 64), rules: states };
}

function acceptedShares({ version, shares }: ShareReportMessage): ShareReportMessage {
  const accepted = shares.slice(0, MAX_SHARES).map((share) => ({
    uid: plainText(share.uid, MAX_NAME_CHARS),
    rule: plainText(share.rule, MAX_NAME_CHARS),
    millionths: share.millionths,
    wantsMore: share.wantsMore,
  }));
  return { version, shares: accepted };
}
