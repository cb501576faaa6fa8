// What is known about one proxy, and how a registration changes it. Pure. Invariant: only the proxy's own
// messages can reduce what it may be enforcing.
import type { Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import { NO_REPORTS, type Reports, type UpdateMessage } from "../../wire/messages.ts";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { ProxyFacts } from "../facts/proxy-facts.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { reportsAfter } from "./proxy-reports.ts";
import type { RouteClaims } from "./registration-tables.ts";

/** The sending side of one proxy's stream. */
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
  /** The number of the newest stream. */
  streamNumber: number;
  stream: ProxyStream | undefined;
  capabilities: ReadonlySet<string>;
  route: Delivery<Snapshot>;
  /** The deliveries of all other types, by name. */
  otherDeliveries: Map<string, Delivery>;
  reports: Reports;
}

/** The state of a pod before anything is known about it. */
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

/**
 * The state of a pod at the start of a new epoch: what was known about its proxy no longer counts, so the
 * proxy may enforce anything until it registers again.
 */
export function doubtfulState({ uid, streamNumber, reports, route }: ProxyState): ProxyState {
  const { version, lastNonce } = route;
  return {
    ...emptyState(uid),
    streamNumber,
    reports: reportsAfter(reports),
    route: createDelivery({ version, lastNonce, mayHoldMore: true }),
  };
}

/**
 * Replaces the known state by a registration: the proxy may have restarted with an older route, or with none.
 */
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
  // The planner decides again which route to send, from what the proxy may enforce. The other types have no
  // claims, so their desired resources stay.
  for (const [name, { desired, lastNonce }] of state.otherDeliveries)
    state.otherDeliveries.set(name, createDelivery({ desired, lastNonce }));
}

/** Returns the delivery of a type, and makes it if there is none yet. */
export function deliveryOf<R extends Versioned>(state: ProxyState, type: Pick<ResourceType<R>, "name">): Delivery<R>;
export function deliveryOf(state: ProxyState, { name }: { readonly name: string }): Delivery {
  if (name === ROUTE.name) return state.route;
  const delivery = state.otherDeliveries.get(name) ?? createDelivery();
  state.otherDeliveries.set(name, delivery);
  return delivery;
}

/** The tables that the proxy may enforce. */
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
