// What the manager knows about each pod's proxy: what it should enforce, what it may be enforcing, and the
// stream to it. Invariant: facts are removed only with the pod, so a lost connection loses no claim.
import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { plainTexts } from "../../base/plain-text.ts";
import type { AckMessage, NackMessage, ReportMessage } from "../../wire/messages.ts";
import { acceptsType, type ResourceType, type Versioned } from "../../wire/resource-type.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { PodKey, ProxyFacts } from "../facts/proxy-facts.ts";
import { acknowledge, endStream, refuse, setDesired, takeUpdate } from "./delivery.ts";
import {
  applyRegistration,
  deliveryOf,
  doubtfulState,
  emptyState,
  factsOf,
  type ProxyRegistration,
  type ProxyState,
  type ProxyStream,
  tablesOf,
  withReport,
} from "./proxy-state.ts";
import { createSharedTables, createSharedUpdates, type SharedTables } from "./shared-resources.ts";

export interface ProxyRegistry {
  /**
   * If a pod has two streams, the older one by the proxy's own count is ended. The first registration of
   * another epoch ends all other streams, because a proxy that has promised an older epoch may follow another
   * leader. Their pods may hold anything until they register again.
   * @param epoch the epoch that the proxy has promised to follow
   */
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
  const states = new Map<PodKey, ProxyState>();
  const listeners: ((pod: PodKey) => void)[] = [];
  const types = new Map<string, ResourceType<Versioned>>();
  const tables = createSharedTables(() => [...states.values()].flatMap(tablesOf), clock);
  const updates = createSharedUpdates();
  const routeSentMs = new WeakMap<ProxyState, number>();
  let promisedEpoch = 0;

  const changed = (pod: PodKey) => {
    for (const listener of listeners) listener(pod);
  };
  /** The proxies with a report in the last REPORTS_MS, and whether another report has come since. */
  const recentReports = new Map<ProxyState, boolean>();
  const changedByReport = (pod: PodKey, state: ProxyState) => {
    if (recentReports.has(state)) {
      recentReports.set(state, true);
      return;
    }
    recentReports.set(state, false);
    clock.after(REPORTS_MS, () => {
      const hasMore = recentReports.get(state);
      recentReports.delete(state);
      if (hasMore && states.get(pod) === state) changedByReport(pod, state);
    });
    changed(pod);
  };
  const flush = (state: ProxyState, type: ResourceType<Versioned>, mayDiff = true) => {
    const delivery = deliveryOf(state, type);
    if (state.stream === undefined || delivery.desired === undefined) return;
    if (!state.capabilities.has(acceptsType(type.name))) {
      delivery.problems = [`the proxy does not support resource type "${type.name}"`];
      return;
    }
    const takesDeltas = type.delta !== undefined && state.capabilities.has(type.delta.capability);
    const update = takeUpdate(delivery, type, updates, mayDiff && takesDeltas);
    if (update === undefined) return;
    state.stream.send(update);
    if (type === ROUTE) routeSentMs.set(state, clock.monotonicMs());
  };
  const stateOf = (pod: PodKey, stream: ProxyStream): ProxyState | undefined => {
    const state = states.get(pod);
    return state?.stream === stream ? state : undefined;
  };
  // A new pod with the same name is another pod, of which nothing is known.
  const stateFor = (pod: PodKey, uid: string): ProxyState => {
    const knownState = states.get(pod);
    if (knownState?.uid === uid) return knownState;
    knownState?.stream?.end("the pod has been made anew");
    const state = emptyState(uid);
    states.set(pod, state);
    return state;
  };
  const startEpoch = (epoch: number) => {
    promisedEpoch = epoch;
    for (const [pod, state] of states) {
      states.set(pod, doubtfulState(state));
      state.stream?.end(`the leader's epoch is ${epoch} now: the proxy has to register and promise again`);
      changed(pod);
    }
  };

  return {
    tables,
    connected(pod, registration, stream, epoch = promisedEpoch) {
      if (epoch !== promisedEpoch) startEpoch(epoch);
      const state = stateFor(pod, registration.uid);
      const { streamNumber: newest } = state;
      if (registration.streamNumber < newest) {
        log.info({ pod, stream: registration.streamNumber, newest }, "late registration ignored");
        stream.end(`the pod has opened a newer stream: ${registration.streamNumber} is older than ${newest}`);
        return;
      }
      state.stream?.end("the pod has opened a newer stream");
      state.stream = stream;
      applyRegistration(state, registration);
      for (const type of types.values()) flush(state, type);
      changed(pod); // the planner decides again which route to send, now that it knows what the proxy holds
    },
    disconnected(pod, stream) {
      const state = stateOf(pod, stream);
      if (state === undefined) return;
      state.stream = undefined;
      for (const type of types.values()) endStream(deliveryOf(state, type));
      state.reports = { ...state.reports, leader: false };
      changed(pod);
    },
    acked(pod, stream, { type: name, nonce }) {
      const state = stateOf(pod, stream);
      const type = types.get(name);
      if (state === undefined || type === undefined || !acknowledge(deliveryOf(state, type), nonce)) return;
      const sentMs = type === ROUTE ? routeSentMs.get(state) : undefined;
      if (sentMs !== undefined) onRouteAcked?.((clock.monotonicMs() - sentMs) / 1000);
      flush(state, type);
      changed(pod);
    },
    nacked(pod, stream, nack) {
      const state = stateOf(pod, stream);
      const type = types.get(nack.type);
      if (state === undefined || type === undefined) return;
      const problems = plainTexts(nack.problems);
      const answer = refuse(deliveryOf(state, type), { ...nack, problems });
      if (answer === undefined) return;
      flush(state, type, answer !== "needs-whole");
      if (answer === "needs-whole") {
        log.info({ pod, type: type.name }, "the proxy asks for the whole resource");
        return;
      }
      log.error({ pod, type: type.name, problems }, "resource refused");
      changed(pod);
    },
    reported(pod, stream, report) {
      const state = stateOf(pod, stream);
      if (state === undefined) return;
      const reports = withReport(state.reports, report);
      if (reports === undefined) return;
      state.reports = reports;
      changedByReport(pod, state);
    },
    publish(pod, type, resource) {
      types.set(type.name, type);
      const state = states.get(pod);
      if (state === undefined) return; // only a registration makes a state
      const delivery = deliveryOf(state, type);
      const { problems } = delivery;
      setDesired(delivery, resource);
      flush(state, type);
      if (!isDeepStrictEqual(delivery.problems, problems)) changed(pod);
    },
    forget(pod) {
      const state = states.get(pod);
      const facts = state && factsOf(state);
      state?.stream?.end("the pod is gone");
      states.delete(pod);
      return facts;
    },
    facts: (pod) => {
      const state = states.get(pod);
      return state === undefined ? undefined : factsOf(state);
    },
    get pods() {
      return states.keys();
    },
    onChange: (listener) => listeners.push(listener),
    close(reason) {
      for (const state of states.values()) state.stream?.end(reason);
    },
  };
}
