// What the manager knows of one proxy: what it should enforce, what it may be enforcing, and the stream to it.
// Pure. Invariants: only a registration and an acknowledgement reduce what a proxy may be enforcing; in a new
// epoch every proxy may be enforcing anything until it registers again.
import { NO_REPORTS, type Reports } from "../contract/messages.ts";
import { ROUTE } from "../contract/route-type.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { createDelivery, type Delivery, withoutStream } from "./delivery.ts";
import type { Claims } from "./held-claims.ts";

/** @template S the handle of a stream */
export interface ProxyRecord<S> {
  readonly uid: string;
  readonly streamNumber: number;
  /** Undefined while the proxy is not connected. */
  readonly stream: S | undefined;
  readonly capabilities: ReadonlySet<string>;
  readonly route: Delivery<Snapshot>;
  readonly otherDeliveries: ReadonlyMap<string, Delivery>;
  readonly reports: Reports;
}

/** The routes that a proxy may enforce, by its own words. */
export type RouteClaims = Claims & { readonly version: number };

/** A registration whose tables are resolved. */
export interface ProxyRegistration {
  readonly uid: string;
  /** The proxy's own count of its streams. */
  readonly streamNumber: number;
  readonly capabilities: readonly string[];
  readonly route: RouteClaims;
}

export interface Arrival<K, S> {
  readonly key: K;
  readonly registration: ProxyRegistration;
  readonly stream: S;
  /** The epoch that the proxy has promised to follow. */
  readonly epoch: number;
}

export interface RegistrationOutcome<K, S> {
  /** The new records. */
  readonly records: readonly (readonly [K, ProxyRecord<S>])[];
  /** Streams to end, with the reason. */
  readonly ends: readonly (readonly [S, string])[];
  /** A newer stream of the same proxy has registered before. */
  readonly isLate: boolean;
}

/**
 * If a pod has two streams, the older one by the proxy's own count ends. The first registration of another
 * epoch ends all other streams, because a proxy that has promised an older epoch may follow another leader.
 */
export function register<K, S>(
  known: { readonly epoch: number; readonly records: ReadonlyMap<K, ProxyRecord<S>> },
  { key, registration, stream, epoch }: Arrival<K, S>,
): RegistrationOutcome<K, S> {
  const ends: [S, string][] = [];
  const end = (record: ProxyRecord<S> | undefined, reason: string) => {
    if (record?.stream !== undefined) ends.push([record.stream, reason]);
  };
  const records = new Map<K, ProxyRecord<S>>();
  if (epoch !== known.epoch) {
    for (const [other, record] of known.records) {
      records.set(other, inNewEpoch(record));
      end(record, `the leader's epoch is ${epoch} now: the proxy has to register and promise again`);
    }
  }
  let record = records.get(key) ?? known.records.get(key);
  // A new pod with the same name is another pod, of which nothing is known.
  if (record?.uid !== registration.uid) {
    end(record, "the pod has been made anew");
    record = emptyRecord(registration.uid);
  }
  const isLate = registration.streamNumber < record.streamNumber;
  if (isLate) {
    ends.push([stream, `the pod has opened a newer stream: ${registration.streamNumber} is older than ${record.streamNumber}`]);
  } else {
    end(record, "the pod has opened a newer stream");
    records.set(key, afterRegistration(record, registration, stream));
  }
  return { records: [...records], ends, isLate };
}

/** The proxy may still enforce what it was sent, and no answer will come. */
export function disconnect<S>(record: ProxyRecord<S>): ProxyRecord<S> {
  return {
    ...record,
    stream: undefined,
    route: withoutStream(record.route),
    otherDeliveries: new Map([...record.otherDeliveries].map(([name, delivery]) => [name, withoutStream(delivery)])),
    reports: { ...record.reports, leader: false },
  };
}

function emptyRecord<S>(uid: string): ProxyRecord<S> {
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

/** The proxy may enforce anything until it registers again. */
function inNewEpoch<S>({ uid, streamNumber, reports, route }: ProxyRecord<S>): ProxyRecord<S> {
  const { version, lastNonce } = route;
  return {
    ...emptyRecord(uid),
    streamNumber,
    // Another leader may have dealt other shares in the meantime.
    reports: { ...reportsAfter(reports), shares: null },
    route: createDelivery({ version, lastNonce, mayHoldMore: true }),
  };
}

/** The claims replace what was known: the proxy may have restarted with an older route, or with none. */
function afterRegistration<S>(
  before: ProxyRecord<S>,
  { streamNumber, capabilities, route }: ProxyRegistration,
  stream: S,
): ProxyRecord<S> {
  const { lastNonce } = before.route;
  const version = Math.max(before.route.version, route.version);
  return {
    ...before,
    streamNumber,
    stream,
    capabilities: new Set(capabilities),
    reports: reportsAfter(before.reports),
    // The planner decides again which route to send. Other types have no claims: what is desired stays.
    route: createDelivery({ ...route, version, lastNonce }),
    otherDeliveries: new Map(
      [...before.otherDeliveries].map(([name, { desired, lastNonce }]) => [name, createDelivery({ desired, lastNonce })]),
    ),
  };
}

/** The reports after a reconnection. Those of locks, policies, webhooks, clusters and shares outlive a connection. */
function reportsAfter({ lock, unnamedLock, policies, webhookProblem, clusters, shares }: Reports): Reports {
  return { ...NO_REPORTS, lock, unnamedLock, policies, webhookProblem, clusters, shares };
}

export function deliveryOf(record: ProxyRecord<unknown>, { name }: { readonly name: string }): Delivery {
  return name === ROUTE.name ? record.route : (record.otherDeliveries.get(name) ?? createDelivery());
}

export function withDelivery<S>(record: ProxyRecord<S>, { name }: { readonly name: string }, delivery: Delivery): ProxyRecord<S> {
  if (name === ROUTE.name) return { ...record, route: delivery as Delivery<Snapshot> };
  return { ...record, otherDeliveries: new Map(record.otherDeliveries).set(name, delivery) };
}
