// What the manager knows about each pod's proxy: what it should enforce, what it may be enforcing, and the stream to it.
// Invariant: at most one snapshot a proxy is unacknowledged; what comes meanwhile is coalesced to the newest. Facts only
// leave when the pod is gone, so that a lost connection never looks like a lost claim.
import type { Logger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { HelloMessage, LockReviewMessage, NackMessage, ReportMessage, SnapshotMessage } from "../../wire/messages.ts";
import { snapshotFromWire } from "../../wire/snapshot-codec.ts";
import { acceptedReview } from "./lock-report.ts";

/** The sending side of one proxy's stream. */
export interface ProxyStream {
  send(snapshot: Snapshot, nonce: number): void;
  /** Ends the stream; the proxy comes back. */
  end(reason: string): void;
}

/** What is known about one proxy. */
export interface ProxyFacts {
  readonly connected: boolean;
  /** What the proxy enforces: the newest snapshot that it acknowledged, or spoke of at hello. */
  readonly enforced: Snapshot | undefined;
  /** Sent and not yet answered: the proxy may enforce it any moment. */
  readonly outstanding: Snapshot | undefined;
  /** What it said at hello to have come to enforce after `enforced`, without having been able to acknowledge it. */
  readonly inDoubt: readonly Snapshot[];
  /** The proxy enforces something that it could not tell at hello; over with its first ACK. */
  readonly unresolved: boolean;
  /** The highest version that the proxy has spoken of. */
  readonly version: number;
  /** Why the proxy refused the newest snapshot; empty if it did not. */
  readonly problems: readonly string[];
  /** The pod holds the operator's lock. */
  readonly leader: boolean;
  /** What the API server said about the operator's use of its renamed lock; null while the proxy has not told. */
  readonly lock: LockReviewMessage | null;
}

interface ProxyState {
  uid: string;
  stream: ProxyStream | undefined;
  wanted: Snapshot | undefined;
  enforced: Snapshot | undefined;
  outstanding: { readonly snapshot: Snapshot; readonly nonce: number } | undefined;
  inDoubt: readonly Snapshot[];
  unresolved: boolean;
  version: number;
  refusedDigest: string;
  problems: readonly string[];
  leader: boolean;
  lock: LockReviewMessage | null;
}

export interface ProxyRegistry {
  /** A proxy's stream has opened with its hello. An older stream of the same pod is ended. */
  connected(pod: string, hello: HelloMessage, stream: ProxyStream): void;
  /** The stream is gone; ignored if the pod has a newer one. */
  disconnected(pod: string, stream: ProxyStream): void;
  acked(pod: string, stream: ProxyStream, nonce: number): void;
  nacked(pod: string, stream: ProxyStream, nack: NackMessage): void;
  reported(pod: string, stream: ProxyStream, report: ReportMessage): void;
  /** What the pod's proxy is to enforce from now on; ignored for a pod that has not said hello to this manager. */
  publish(pod: string, snapshot: Snapshot): void;
  /** The pod is gone: its claims end and its stream is closed. */
  forget(pod: string): void;
  facts(pod: string): ProxyFacts | undefined;
  readonly pods: Iterable<string>;
  /** Calls the listener with the pod whose facts have changed. */
  onChange(listener: (pod: string) => void): void;
  /** Ends all streams. */
  close(reason: string): void;
}

export function createProxyRegistry({ log }: { readonly log: Logger }): ProxyRegistry {
  const states = new Map<string, ProxyState>();
  const listeners: ((pod: string) => void)[] = [];
  let lastNonce = 0;

  const changed = (pod: string) => {
    for (const listener of listeners) listener(pod);
  };
  const stateOf = (pod: string): ProxyState => {
    const state = states.get(pod) ?? emptyState();
    states.set(pod, state);
    return state;
  };
  const flush = (state: ProxyState) => {
    const { stream, wanted, outstanding, enforced } = state;
    if (stream === undefined || wanted === undefined || outstanding !== undefined) return;
    const isEnforced = wanted.digest === enforced?.digest && state.inDoubt.length === 0;
    if (isEnforced || wanted.digest === state.refusedDigest) return;
    const nonce = ++lastNonce;
    state.outstanding = { snapshot: wanted, nonce };
    stream.send(wanted, nonce);
  };
  const current = (pod: string, stream: ProxyStream): ProxyState | undefined => {
    const state = states.get(pod);
    return state?.stream === stream ? state : undefined;
  };

  return {
    connected(pod, hello, stream) {
      const state = stateOf(pod);
      state.stream?.end("the pod has opened a newer stream");
      state.stream = stream;
      state.leader = false;
      takeHello(state, hello);
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
      settle(state, state.outstanding.snapshot);
      flush(state);
      changed(pod);
    },
    nacked(pod, stream, { nonce, problems }) {
      const state = current(pod, stream);
      if (state?.outstanding?.nonce !== nonce) return;
      state.refusedDigest = state.outstanding.snapshot.digest;
      state.problems = problems;
      state.outstanding = undefined;
      log.error({ pod, problems }, "snapshot refused");
      flush(state);
      changed(pod);
    },
    reported(pod, stream, { leader, lock }) {
      const state = current(pod, stream);
      if (state === undefined) return;
      state.leader = leader;
      state.lock = acceptedReview(lock);
      changed(pod);
    },
    publish(pod, snapshot) {
      const state = states.get(pod);
      if (state === undefined) return; // of a proxy that has said nothing yet nothing is known: only its hello makes a state
      state.wanted = snapshot;
      if (snapshot.digest !== state.refusedDigest) state.problems = [];
      flush(state);
    },
    forget(pod) {
      states.get(pod)?.stream?.end("the pod is gone");
      states.delete(pod);
    },
    facts: (pod) => {
      const state = states.get(pod);
      if (state === undefined) return undefined;
      const { stream, enforced, outstanding, inDoubt, unresolved, version, problems, leader, lock } = state;
      return {
        connected: stream !== undefined,
        enforced,
        outstanding: outstanding?.snapshot,
        inDoubt,
        unresolved,
        version,
        problems,
        leader,
        lock,
      };
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

function emptyState(): ProxyState {
  return {
    uid: "",
    stream: undefined,
    wanted: undefined,
    enforced: undefined,
    outstanding: undefined,
    inDoubt: [],
    unresolved: false,
    version: 0,
    refusedDigest: "",
    problems: [],
    leader: false,
    lock: null,
  };
}

// What the proxy says at hello decides over what was known: it may have restarted with an older snapshot, or with none.
function takeHello(state: ProxyState, hello: HelloMessage): void {
  const uid = hello.pod?.uid ?? "";
  const sameUid = uid === state.uid;
  state.uid = uid;
  // A permission outlives a connection: that a proxy comes back says nothing about it, and its next report does.
  if (!sameUid) state.lock = null;
  state.outstanding = undefined;
  state.wanted = undefined;
  state.refusedDigest = "";
  state.problems = [];
  state.version = Math.max(sameUid ? state.version : 0, hello.version);
  state.enforced = hello.enforced === null ? undefined : decode(hello.enforced);
  const inDoubt = hello.inDoubt.map(decode);
  state.inDoubt = inDoubt.filter((snapshot) => snapshot !== undefined);
  const holdsSomething = hello.enforced !== null || hello.digest !== "" || hello.version > 0;
  // What a proxy of another version holds is not known until it has acknowledged one of ours.
  state.unresolved = (holdsSomething && state.enforced === undefined) || inDoubt.includes(undefined);
}

function decode(message: SnapshotMessage): Snapshot | undefined {
  try {
    return snapshotFromWire(message);
  } catch {
    return undefined;
  }
}

function settle(state: ProxyState, enforced: Snapshot): void {
  state.enforced = enforced;
  state.version = Math.max(state.version, enforced.version);
  state.outstanding = undefined;
  state.inDoubt = [];
  state.unresolved = false;
  state.problems = [];
  state.refusedDigest = "";
}
