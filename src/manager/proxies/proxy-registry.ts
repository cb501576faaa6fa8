// What the manager knows about each pod's proxy: what it should enforce, what it may be enforcing, and the stream to it.
// Invariant: at most one snapshot a proxy is unacknowledged, and its undoing; what else comes meanwhile is coalesced to the newest. Facts only
// leave when the pod is gone, so that a lost connection never looks like a lost claim.
import type { Logger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { NackMessage, RegistrationMessage, ReportMessage } from "../../wire/messages.ts";
import type { ProxyFacts } from "../facts/proxy-facts.ts";
import { createDeltaCache } from "./delta-cache.ts";
import { createNonces } from "./nonces.ts";
import {
  applyRegistration,
  baseOf,
  doubtfulState,
  emptyState,
  factsOf,
  giveUpOutstanding,
  isUndone,
  type ProxyState,
  type ProxyStream,
  recordEnforced,
  takeReport,
} from "./proxy-state.ts";
import { createTableInterner } from "./table-interner.ts";

export type { ProxyStream } from "./proxy-state.ts";

export interface ProxyRegistry {
  /**
   * A proxy's stream has opened with its registration. An older stream of the same pod is ended; if this one is the older, by the
   * proxy's own count, it is ended and changes nothing. With the first one of another epoch all others are ended, and their pods may
   * hold anything until they have registered again: who has promised less may follow another leader meanwhile.
   * @param epoch to which the proxy has given its promise
   */
  connected(pod: string, registration: RegistrationMessage, stream: ProxyStream, epoch?: number): void;
  /** The stream is gone; ignored if the pod has a newer one. */
  disconnected(pod: string, stream: ProxyStream): void;
  acked(pod: string, stream: ProxyStream, nonce: number): void;
  nacked(pod: string, stream: ProxyStream, nack: NackMessage): void;
  reported(pod: string, stream: ProxyStream, report: ReportMessage): void;
  /** What the pod's proxy is to enforce from now on; ignored for a pod that has not registered to this manager. */
  publish(pod: string, snapshot: Snapshot): void;
  /** The pod is gone: its stream is closed, and it is told nothing more. Gives back what was known of it. */
  forget(pod: string): ProxyFacts | undefined;
  facts(pod: string): ProxyFacts | undefined;
  readonly pods: Iterable<string>;
  /** Calls the listener with the pod whose facts have changed. */
  onChange(listener: (pod: string) => void): void;
  /** Ends all streams. */
  close(reason: string): void;
}

/** What came back for a snapshot. */
export type SnapshotAnswer = "acked" | "refused" | "needs-snapshot";

export interface ProxyRegistryOptions {
  readonly log: Logger;
  /** Told of every snapshot that is sent. */
  readonly onSent?: (pod: string, snapshot: Snapshot, isDelta: boolean) => void;
  /** Told of every answer to one. */
  readonly onAnswer?: (pod: string, snapshot: Snapshot, answer: SnapshotAnswer) => void;
}

export function createProxyRegistry({ log, onSent, onAnswer }: ProxyRegistryOptions): ProxyRegistry {
  const states = new Map<string, ProxyState>();
  const listeners: ((pod: string) => void)[] = [];
  const interner = createTableInterner();
  const deltas = createDeltaCache();
  const nonces = createNonces();
  let promisedEpoch = 0;

  const changed = (pod: string) => {
    for (const listener of listeners) listener(pod);
  };
  const send = (pod: string, state: ProxyState, stream: ProxyStream, snapshot: Snapshot, wholeOnly: boolean) => {
    const base = wholeOnly ? undefined : baseOf(state);
    const delta = base === undefined ? undefined : deltas.between(base, snapshot);
    const nonce = nonces.next(snapshot, state.lastNonce);
    state.lastNonce = nonce;
    state.outstanding = { snapshot, nonce, isDelta: delta !== undefined };
    stream.send(snapshot, nonce, delta);
    onSent?.(pod, snapshot, delta !== undefined);
  };
  const flush = (pod: string, state: ProxyState, wholeOnly = false) => {
    const { stream, desired, enforced } = state;
    if (stream === undefined || desired === undefined) return;
    if (isUndone(state)) giveUpOutstanding(state); // its ACK may wait for a write that hangs, and the write is allowed again
    if (state.outstanding !== undefined) return;
    const isEnforced = desired.digest === enforced?.digest && state.inDoubt.length === 0 && !state.unresolved;
    if (isEnforced || desired.digest === state.refusedDigest) return;
    send(pod, state, stream, desired, wholeOnly);
  };
  const current = (pod: string, stream: ProxyStream): ProxyState | undefined => {
    const state = states.get(pod);
    return state?.stream === stream ? state : undefined;
  };
  /** The state that a registration is about: a pod made anew under the same name is another pod, of which nothing is known. */
  const stateFor = (pod: string, uid: string): ProxyState => {
    const known = states.get(pod);
    if (known?.uid === uid) return known;
    known?.stream?.end("the pod has been made anew");
    const state = emptyState(uid);
    states.set(pod, state);
    return state;
  };

  const startEpoch = (epoch: number) => {
    promisedEpoch = epoch;
    for (const [pod, state] of states) {
      states.set(pod, doubtfulState(state));
      state.stream?.end(`the leader's epoch is ${epoch} now: registration and promise are to be said anew`);
      changed(pod);
    }
  };

  return {
    connected(pod, registration, stream, epoch = promisedEpoch) {
      if (epoch !== promisedEpoch) startEpoch(epoch);
      const state = stateFor(pod, registration.pod?.uid ?? "");
      const number = registration.stream ?? 0; // 0: an older version that does not count has taken the place of a newer one
      if (number > 0 && number < state.streamNumber) {
        log.info({ pod, stream: registration.stream, newest: state.streamNumber }, "late registration ignored");
        stream.end(`the pod has opened a newer stream: ${registration.stream ?? 0} is older than ${state.streamNumber}`);
        return;
      }
      state.stream?.end("the pod has opened a newer stream");
      state.stream = stream;
      applyRegistration(state, registration, interner);
      changed(pod); // what it is sent is decided anew, now that it is known what it holds
    },
    disconnected(pod, stream) {
      const state = current(pod, stream);
      if (state === undefined) return;
      state.stream = undefined;
      state.leader = false;
      changed(pod);
    },
    acked(pod, stream, nonce) {
      const state = current(pod, stream);
      if (state?.outstanding?.nonce !== nonce) return;
      const { snapshot } = state.outstanding;
      recordEnforced(state, snapshot);
      onAnswer?.(pod, snapshot, "acked");
      flush(pod, state);
      changed(pod);
    },
    nacked(pod, stream, { nonce, problems, needsSnapshot = false }) {
      const state = current(pod, stream);
      if (state?.outstanding?.nonce !== nonce) return;
      const { snapshot, isDelta } = state.outstanding;
      state.outstanding = undefined;
      if (needsSnapshot && isDelta) {
        log.info({ pod, version: snapshot.version }, "the whole snapshot is asked for");
        onAnswer?.(pod, snapshot, "needs-snapshot");
        flush(pod, state, true);
        return;
      }
      state.refusedDigest = snapshot.digest;
      state.problems = problems;
      log.error({ pod, problems }, "snapshot refused");
      onAnswer?.(pod, snapshot, "refused");
      flush(pod, state);
      changed(pod);
    },
    reported(pod, stream, report) {
      const state = current(pod, stream);
      if (state === undefined) return;
      takeReport(state, report);
      changed(pod);
    },
    publish(pod, snapshot) {
      const state = states.get(pod);
      if (state === undefined) return; // of a proxy that has said nothing yet nothing is known: only its registration makes a state
      state.desired = interner.own(snapshot);
      if (snapshot.digest !== state.refusedDigest) state.problems = [];
      flush(pod, state);
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
