// What the manager knows about each pod's proxy: what it should enforce, what it may be enforcing, and the
// stream to it. Invariant: facts are removed only with the pod, so a lost connection loses no claim.
import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { plainTexts } from "../../base/plain-text.ts";
import { acknowledge, refuse, withDesired } from "../../mesh/link/delivery.ts";
import {
  deliveryOf,
  disconnect,
  type ProxyRecord,
  type ProxyRegistration,
  register,
  withDelivery,
  withNextUpdate,
} from "../../mesh/link/proxy-record.ts";
import type { AckMessage, NackMessage, ReportMessage, UpdateMessage } from "../../wire/messages.ts";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { PodKey, ProxyFacts } from "../facts/proxy-facts.ts";
import { factsOf, tablesOf, withReport } from "./proxy-reports.ts";
import { createSharedTables, createSharedUpdates, type SharedTables } from "./shared-resources.ts";

export interface ProxyStream {
  send(update: UpdateMessage): void;
  /** Ends the stream. The proxy comes back. */
  end(reason: string): void;
}

type Known = ProxyRecord<ProxyStream>;

export interface ProxyRegistry {
  /** See `register` in src/mesh/link/proxy-record.ts. @param epoch the epoch that the proxy has promised to follow */
  connected(pod: PodKey, registration: ProxyRegistration, stream: ProxyStream, epoch?: number): void;
  /** Ignored if the pod has a newer stream. */
  disconnected(pod: PodKey, stream: ProxyStream): void;
  acked(pod: PodKey, stream: ProxyStream, ack: Pick<AckMessage, "type" | "nonce">): void;
  nacked(pod: PodKey, stream: ProxyStream, nack: Omit<NackMessage, "version">): void;
  reported(pod: PodKey, stream: ProxyStream, report: ReportMessage): void;
  /**
   * Sets the resource of one type that the proxy has to enforce. Ignored for a pod that has not registered. A
   * proxy that does not accept the type gets nothing, which is a problem among its facts. The route has to be
   * published again after each registration, and every type after a change of the leader's epoch.
   */
  publish<R extends Versioned>(pod: PodKey, type: ResourceType<R>, resource: R): void;
  /** Removes a pod that no longer exists, ends its stream, and returns what was known of it. */
  forget(pod: PodKey): ProxyFacts | undefined;
  facts(pod: PodKey): ProxyFacts | undefined;
  readonly pods: Iterable<PodKey>;
  /** Called with each pod whose facts have changed. After a report, others within 200 ms are one change. */
  onChange(listener: (pod: PodKey) => void): void;
  readonly tables: SharedTables;
  close(reason: string): void;
}

/** Without a pause, a pod with 500 different reports a second would have its app planned as often. */
const REPORTS_MS = 200;

interface ProxyRegistryOptions {
  readonly log: Logger;
  /** @param seconds from sending a route to its acknowledgement */
  readonly onRouteAcked?: (seconds: number) => void;
  readonly clock?: Clock;
}

export function createProxyRegistry({ log, onRouteAcked, clock = systemClock }: ProxyRegistryOptions): ProxyRegistry {
  const records = new Map<PodKey, Known>();
  const listeners: ((pod: PodKey) => void)[] = [];
  const types = new Map<string, ResourceType<Versioned>>();
  const tables = createSharedTables(() => [...records.values()].flatMap(tablesOf), clock);
  const updates = createSharedUpdates();
  const routeSentMs = new WeakMap<ProxyStream, number>();
  let knownEpoch = 0;

  const changed = (pod: PodKey) => {
    for (const listener of listeners) listener(pod);
  };
  /** The proxies with a report in the last REPORTS_MS, and whether another report has come since. */
  const recentReports = new Map<PodKey, boolean>();
  const changedByReport = (pod: PodKey) => {
    const isRecent = recentReports.has(pod);
    recentReports.set(pod, isRecent);
    if (isRecent) return;
    clock.after(REPORTS_MS, () => {
      const hasMore = recentReports.get(pod);
      recentReports.delete(pod);
      if (hasMore && records.has(pod)) changedByReport(pod);
    });
    changed(pod);
  };

  /** Keeps the record, and sends the next update of the type, if there is one. */
  const keepAndSend = (pod: PodKey, record: Known, type: ResourceType<Versioned>, mayDiff = true) => {
    const next = withNextUpdate(record, type, updates, mayDiff);
    records.set(pod, next.record);
    if (next.update === undefined) return;
    record.stream?.send(next.update);
    if (type === ROUTE && record.stream !== undefined) routeSentMs.set(record.stream, clock.monotonicMs());
  };
  const recordOf = (pod: PodKey, stream: ProxyStream): Known | undefined => {
    const record = records.get(pod);
    return record?.stream === stream ? record : undefined;
  };

  return {
    tables,
    connected(pod, registration, stream, epoch = knownEpoch) {
      const next = register({ epoch: knownEpoch, records }, { key: pod, registration, stream, epoch });
      knownEpoch = epoch;
      for (const [key, record] of next.records) records.set(key, record);
      for (const [ended, reason] of next.ends) ended.end(reason);
      if (next.isLate) log.info({ pod, stream: registration.streamNumber }, "late registration ignored");
      for (const type of types.values()) {
        const record = recordOf(pod, stream);
        if (record !== undefined) keepAndSend(pod, record, type);
      }
      // The planner decides again which route to send, now that it knows what the proxies hold.
      for (const [key] of next.records) changed(key);
    },
    disconnected(pod, stream) {
      const record = recordOf(pod, stream);
      if (record === undefined) return;
      records.set(pod, disconnect(record));
      changed(pod);
    },
    acked(pod, stream, { type: name, nonce }) {
      const record = recordOf(pod, stream);
      const type = types.get(name);
      const delivery = record && type && acknowledge(deliveryOf(record, type), nonce);
      if (record === undefined || type === undefined || delivery === undefined) return;
      const sentMs = type === ROUTE ? routeSentMs.get(stream) : undefined;
      if (sentMs !== undefined) onRouteAcked?.((clock.monotonicMs() - sentMs) / 1000);
      keepAndSend(pod, withDelivery(record, type, delivery), type);
      changed(pod);
    },
    nacked(pod, stream, nack) {
      const record = recordOf(pod, stream);
      const type = types.get(nack.type);
      if (record === undefined || type === undefined) return;
      const problems = plainTexts(nack.problems);
      const refused = refuse(deliveryOf(record, type), { ...nack, problems });
      if (refused === undefined) return;
      keepAndSend(pod, withDelivery(record, type, refused.delivery), type, refused.isRefused);
      if (!refused.isRefused) {
        log.info({ pod, type: type.name }, "the proxy asks for the whole resource");
        return;
      }
      log.error({ pod, type: type.name, problems }, "resource refused");
      changed(pod);
    },
    reported(pod, stream, report) {
      const record = recordOf(pod, stream);
      const reports = record && withReport(record.reports, report);
      if (record === undefined || reports === undefined) return;
      records.set(pod, { ...record, reports });
      changedByReport(pod);
    },
    publish(pod, type, resource) {
      types.set(type.name, type);
      const record = records.get(pod);
      if (record === undefined) return; // only a registration makes a record
      const { problems } = deliveryOf(record, type);
      keepAndSend(pod, withDelivery(record, type, withDesired(deliveryOf(record, type), resource)), type);
      const published = records.get(pod);
      if (published && !isDeepStrictEqual(deliveryOf(published, type).problems, problems)) changed(pod);
    },
    forget(pod) {
      const record = records.get(pod);
      const facts = record && factsOf(record);
      record?.stream?.end("the pod is gone");
      records.delete(pod);
      return facts;
    },
    facts: (pod) => {
      const record = records.get(pod);
      return record && factsOf(record);
    },
    get pods() {
      return records.keys();
    },
    onChange: (listener) => listeners.push(listener),
    close(reason) {
      for (const record of records.values()) record.stream?.end(reason);
    },
  };
}
