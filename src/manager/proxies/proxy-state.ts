// What is known about one proxy, and how a registration and an acknowledgement change it. Pure. Invariant: facts only get narrower by what
// the proxy itself has said. Owned by the proxy registry.
import type { Snapshot } from "../../route/snapshot.ts";
import type { LockAccessMessage, RegistrationMessage, ReportMessage, SnapshotMessage } from "../../wire/messages.ts";
import type { SnapshotDelta } from "../../wire/snapshot-delta.ts";
import type { ProxyFacts } from "../facts/proxy-facts.ts";
import { acceptedLockAccess } from "./lock-report.ts";
import type { TableInterner } from "./table-interner.ts";

/** The sending side of one proxy's stream. */
export interface ProxyStream {
  /** @param delta what to send instead of the whole, if the proxy is known to enforce its base */
  send(snapshot: Snapshot, nonce: number, delta?: SnapshotDelta): void;
  /** Ends the stream; the proxy comes back. */
  end(reason: string): void;
}

/**
 * No version is above it: each is one more than the last. What a registration says beyond is a lie or a broken file; were it taken, the versions
 * that follow would soon be no safe integers, which every proxy refuses, and the status would keep that for the managers to come.
 */
const MAX_VERSION = 2 ** 48;

export interface ProxyState {
  uid: string;
  /** The number of its newest stream. */
  streamNumber: number;
  takesDeltas: boolean;
  /** Of what was sent last; 0 if nothing was. */
  lastNonce: number;
  stream: ProxyStream | undefined;
  desired: Snapshot | undefined;
  enforced: Snapshot | undefined;
  outstanding: Outstanding | undefined;
  inDoubt: readonly Snapshot[];
  unresolved: boolean;
  version: number;
  refusedDigest: string;
  problems: readonly string[];
  leader: boolean;
  held: number;
  drainingWrites: number;
  lock: LockAccessMessage | null;
}

export interface Outstanding {
  readonly snapshot: Snapshot;
  readonly nonce: number;
  readonly isDelta: boolean;
}

/** The state of a pod of which nothing is known. */
export function emptyState(uid: string): ProxyState {
  return {
    uid,
    streamNumber: 0,
    takesDeltas: false,
    lastNonce: 0,
    stream: undefined,
    desired: undefined,
    enforced: undefined,
    outstanding: undefined,
    inDoubt: [],
    unresolved: false,
    version: 0,
    refusedDigest: "",
    problems: [],
    leader: false,
    held: 0,
    drainingWrites: 0,
    lock: null,
  };
}

/** The state of a pod of which nothing that was known counts any more: it may hold anything, until its next registration. */
export function doubtfulState({ uid, streamNumber, version, lock }: ProxyState): ProxyState {
  return { ...emptyState(uid), streamNumber, version, lock, unresolved: true };
}

/** Takes what the proxy says at registration over what was known: it may have restarted with an older snapshot, or with none. */
export function applyRegistration(state: ProxyState, registration: RegistrationMessage, interner: TableInterner): void {
  state.streamNumber = registration.stream ?? 0;
  state.takesDeltas = registration.takesDeltas ?? false;
  // A permission (`lock`) outlives a connection: that a proxy comes back says nothing about it, and its next report does.
  state.leader = false;
  state.held = 0;
  state.drainingWrites = 0;
  state.outstanding = undefined;
  state.desired = undefined;
  state.refusedDigest = "";
  state.problems = [];
  state.version = Math.max(state.version, registration.version <= MAX_VERSION ? registration.version : 0);
  const told = (message: SnapshotMessage) => (message.version <= MAX_VERSION ? interner.told(message) : undefined);
  state.enforced = registration.enforced === null ? undefined : told(registration.enforced);
  const inDoubt = registration.inDoubt.map(told);
  state.inDoubt = inDoubt.filter((snapshot) => snapshot !== undefined);
  const holdsSomething = registration.enforced !== null || registration.digest !== "" || registration.version > 0;
  // What a proxy of another version holds is not known until it has acknowledged one of ours.
  state.unresolved = (holdsSomething && state.enforced === undefined) || inDoubt.includes(undefined);
}

/** The proxy enforces this, and nothing else any more. */
export function recordEnforced(state: ProxyState, enforced: Snapshot): void {
  state.enforced = enforced;
  state.version = Math.max(state.version, enforced.version);
  state.outstanding = undefined;
  state.inDoubt = [];
  state.unresolved = false;
  state.problems = [];
  state.refusedDigest = "";
}

export function takeReport(state: ProxyState, { leader, lock, held = 0, drainingWrites = 0 }: ReportMessage): void {
  state.leader = leader;
  state.held = held;
  state.drainingWrites = drainingWrites;
  state.lock = acceptedLockAccess(lock);
}

/** The proxy has been sent something else meanwhile, and is to have again what it acknowledged last. */
export function isUndone({ desired, enforced, outstanding, inDoubt }: ProxyState): boolean {
  if (outstanding === undefined || enforced === undefined || inDoubt.length > 0) return false;
  return desired?.digest === enforced.digest && outstanding.snapshot.digest !== enforced.digest;
}

/** What is on its way is waited for no more. The proxy may come to enforce it all the same, until it acknowledges something newer. */
export function giveUpOutstanding(state: ProxyState): void {
  if (state.outstanding !== undefined) state.inDoubt = [...state.inDoubt, state.outstanding.snapshot];
  state.outstanding = undefined;
}

/** What a delta may be the difference to: what the proxy enforces for certain, and alone. */
export function baseOf(state: ProxyState): Snapshot | undefined {
  return state.takesDeltas && !state.unresolved && state.inDoubt.length === 0 ? state.enforced : undefined;
}

/** The state as others see it. */
export function factsOf(state: ProxyState): ProxyFacts {
  const { stream, enforced, outstanding, inDoubt, unresolved, version, problems, leader, held, drainingWrites, lock } = state;
  return {
    connected: stream !== undefined,
    enforced,
    outstanding: outstanding?.snapshot,
    inDoubt,
    unresolved,
    version,
    problems,
    leader,
    held,
    drainingWrites,
    lock,
  };
}
