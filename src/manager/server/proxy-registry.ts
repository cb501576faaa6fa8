// What the manager knows about each pod's proxy: what it should enforce, what it may be enforcing, and the
// stream to it. Invariant: facts are removed only with the pod, so a lost connection loses no claim.
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { plainTexts } from "../../base/plain-text.ts";
import type { AckMessage, NackMessage, ReportMessage, UpdateMessage } from "../../mesh/contract/messages.ts";
import type { ResourceType, Versioned } from "../../mesh/contract/resource-type.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import type { PodKey, ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import { disconnect, type ProxyRecord, type ProxyRegistration, register } from "../../mesh/link/proxy-record.ts";
import { type RecordEffect, type RecordEvent, stepRecord } from "../../mesh/link/record-step.ts";
import { factsOf, tablesOf, withReport } from "./proxy-reports.ts";
import { createSharedTables, createSharedUpdates } from "./shared-resources.ts";

export interface ProxyStream {
  send(update: UpdateMessage): void;
  /** Ends the stream. The proxy comes back. */
  end(reason: string): void;
}

type Known = ProxyRecord<ProxyStream>;

export type ProxyRegistry = ReturnType<typeof createProxyRegistry>;

/** Without a pause, a pod with 500 different reports a second would have its app planned as often. */
const REPORTS_MS = 200;

interface ProxyRegistryOptions {
  readonly log: Logger;
  /** @param seconds from sending a route to its acknowledgement */
  readonly onRouteAcked?: (seconds: number) => void;
  readonly clock?: Clock;
}

export function createProxyRegistry({ log, onRouteAcked, clock = systemClock }: ProxyRegistryOptions) {
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

  const enter = (pod: PodKey, record: Known, type: ResourceType<Versioned>, event: RecordEvent) => {
    const { state, effects } = stepRecord(record, type, event, updates);
    records.set(pod, state);
    for (const effect of effects) carryOut(pod, state, type, effect);
  };
  function carryOut(pod: PodKey, { stream }: Known, type: ResourceType<Versioned>, effect: RecordEffect) {
    switch (effect.kind) {
      case "acknowledged": {
        const sentMs = type === ROUTE && stream !== undefined ? routeSentMs.get(stream) : undefined;
        if (sentMs !== undefined) onRouteAcked?.((clock.monotonicMs() - sentMs) / 1000);
        return;
      }
      case "refused":
        return log.error({ pod, type: type.name, problems: effect.problems }, "resource refused");
      case "needs-whole":
        return log.info({ pod, type: type.name }, "the proxy asks for the whole resource");
      case "send":
        stream?.send(effect.update);
        if (type === ROUTE && stream !== undefined) routeSentMs.set(stream, clock.monotonicMs());
        return;
      case "changed":
        return changed(pod);
      default:
        effect satisfies never;
    }
  }
  const recordOf = (pod: PodKey, stream: ProxyStream): Known | undefined => {
    const record = records.get(pod);
    return record?.stream === stream ? record : undefined;
  };

  return {
    tables,
    /** See `register` in src/mesh/link/proxy-record.ts. @param epoch the epoch that the proxy has promised to follow */
    connected(pod: PodKey, registration: ProxyRegistration, stream: ProxyStream, epoch = knownEpoch): void {
      const next = register({ epoch: knownEpoch, records }, { key: pod, registration, stream, epoch });
      knownEpoch = epoch;
      for (const [key, record] of next.records) records.set(key, record);
      for (const [ended, reason] of next.ends) ended.end(reason);
      if (next.isLate) log.info({ pod, stream: registration.streamNumber }, "late registration ignored");
      for (const type of types.values()) {
        const record = recordOf(pod, stream);
        if (record !== undefined) enter(pod, record, type, { kind: "registered" });
      }
      // The planner decides again which route to send, now that it knows what the proxies hold.
      for (const [key] of next.records) changed(key);
    },
    /** Ignored if the pod has a newer stream. */
    disconnected(pod: PodKey, stream: ProxyStream): void {
      const record = recordOf(pod, stream);
      if (record === undefined) return;
      records.set(pod, disconnect(record));
      changed(pod);
    },
    acked(pod: PodKey, stream: ProxyStream, { type: name, nonce }: Pick<AckMessage, "type" | "nonce">): void {
      const record = recordOf(pod, stream);
      const type = types.get(name);
      if (record !== undefined && type !== undefined) enter(pod, record, type, { kind: "acked", nonce });
    },
    nacked(pod: PodKey, stream: ProxyStream, nack: Omit<NackMessage, "version">): void {
      const record = recordOf(pod, stream);
      const type = types.get(nack.type);
      if (record === undefined || type === undefined) return;
      enter(pod, record, type, { kind: "nacked", nack: { ...nack, problems: plainTexts(nack.problems) } });
    },
    reported(pod: PodKey, stream: ProxyStream, report: ReportMessage): void {
      const record = recordOf(pod, stream);
      const reports = record && withReport(record.reports, report);
      if (record === undefined || reports === undefined) return;
      records.set(pod, { ...record, reports });
      changedByReport(pod);
    },
    /**
     * Sets the resource of one type that the proxy has to enforce. Ignored for a pod that has not registered. A
     * proxy that does not accept the type gets nothing, which is a problem among its facts. The route has to be
     * published again after each registration, and every type after a change of the leader's epoch.
     */
    publish<R extends Versioned>(pod: PodKey, type: ResourceType<R>, resource: R): void {
      types.set(type.name, type);
      const record = records.get(pod);
      if (record === undefined) return; // only a registration makes a record
      enter(pod, record, type, { kind: "published", resource });
    },
    /** Removes a pod that no longer exists, ends its stream, and returns what was known of it. */
    forget(pod: PodKey): ProxyFacts | undefined {
      const record = records.get(pod);
      const facts = record && factsOf(record);
      record?.stream?.end("the pod is gone");
      records.delete(pod);
      return facts;
    },
    facts(pod: PodKey): ProxyFacts | undefined {
      const record = records.get(pod);
      return record && factsOf(record);
    },
    get pods(): Iterable<PodKey> {
      return records.keys();
    },
    /** Called with each pod whose facts have changed. After a report, others within 200 ms are one change. */
    onChange: (listener: (pod: PodKey) => void): void => void listeners.push(listener),
    close(reason: string): void {
      for (const record of records.values()) record.stream?.end(reason);
    },
  };
}
