// What happens to a snapshot that comes from the manager: check, enforce, store, and only then acknowledge. Invariant: an
// ACK says that the rules are in force, that no write which they refuse is under way, of this process or of the one before, and
// that a restart cannot bring older rules back. Called by mesh-client for each message; no I/O of its own but the file.
import { type Clock, sleep } from "../../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { subsetDisplayName } from "../../route/subset-name.ts";
import type { AckMessage, PodRef, SnapshotDeltaMessage, SnapshotMessage } from "../../wire/messages.ts";
import { SnapshotInvalidError, snapshotFromWire } from "../../wire/snapshot-codec.ts";
import { applyDelta } from "../../wire/snapshot-delta.ts";
import type { Enforcer } from "./enforcer.ts";
import { createInheritedWrites, INHERITED_WRITES_MS, NO_INHERITED_WRITES } from "./inherited-writes.ts";
import type { SessionMetrics } from "./session-metrics.ts";
import type { SnapshotFile } from "./snapshot-file.ts";

/** How the intake answers on the stream that a snapshot came on. */
export interface Answers {
  ack(nonce: number, version: number): void;
  nack(nonce: number, version: number, problems: readonly string[]): void;
}

export interface DeltaAnswers extends Answers {
  /** Nothing is wrong with the delta, but it cannot be applied here. */
  needsSnapshot(nonce: number, version: number): void;
}

export interface SnapshotIntake {
  /**
   * Puts the stored snapshot in force, if there is a usable one.
   * @param endedCleanly the process before left no write behind: see clean-end.ts
   * @param hasPromised a process before has followed a leader, so that it may have served though nothing is stored
   */
  restore(endedCleanly: boolean, hasPromised?: boolean): Promise<void>;
  take(message: SnapshotMessage, answers: Answers): void;
  /** As `take`, for the difference to what is in force. What is stored and told is always the whole. */
  takeDelta(delta: SnapshotDeltaMessage, answers: DeltaAnswers): void;
  /** Stores what is in force once more, since what is stored beside it has changed; nothing if it is not stored yet. */
  storeAgain(): void;
  readonly held: Held;
  /** No write of the process before can be carried out any more. */
  readonly isSettled: boolean;
  /** Resolves when nothing is being stored. */
  idle(): Promise<void>;
}

/**
 * What this proxy may hold, for its registration. A new manager believes nothing but this, so it must cover every write under way:
 *
 * - What is in force refuses new writes in what it lost, but older ones may still run there. So a snapshot is told as held
 *   (`acknowledged`) only from the moment when an ACK could be sent; until then the last such one is, and with it what it lost.
 * - That one alone would hide what was gained since, where writes are let through already. So all that came into force since is
 *   told too (`inDoubt`): writes were let through by one of these and by nothing else.
 * - The manager ends the doubt only upon an ACK, and sends a snapshot to be acknowledged whatever it wishes; that ACK waits for
 *   the writes, as every one does. So a registration can be said at any time, and a write without end blocks its ACK and nothing more.
 * - A process that starts again holds what its disk says, which was stored after the writes had ended and before the ACK. Writes of
 *   the process before may outlive it, and where it was killed also be in what it had gained and not stored yet. Until they are over
 *   nothing is acknowledged, and this process may hold anything besides (`mayHoldMore`).
 */
export interface Held {
  readonly acknowledged: Snapshot | undefined;
  /** Oldest first; empty if `acknowledged` is in force. With more than MAX_IN_DOUBT it is not known what else there was. */
  readonly inDoubt: readonly Snapshot[];
  /** It may hold anything besides. */
  readonly mayHoldMore: boolean;
}

/** A disk that is full for a day must not fill the memory. More are told as "anything". */
export const MAX_IN_DOUBT = 4;

const STORE_RETRY_MS = 1_000;

export interface IntakeDeps {
  readonly pod: PodRef;
  readonly enforcer: Enforcer;
  readonly file: SnapshotFile;
  readonly metrics: SessionMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export function createSnapshotIntake(deps: IntakeDeps): SnapshotIntake {
  const { enforcer, file, metrics, clock, log } = deps;
  let storing: Promise<void> = Promise.resolve();
  let stored: string | undefined;
  let held: Omit<Held, "mayHoldMore"> = { acknowledged: undefined, inDoubt: [] };
  let inherited = NO_INHERITED_WRITES;

  const enforce = (snapshot: Snapshot) => {
    const same = enforcer.current?.snapshot.digest === snapshot.digest;
    if (!same) held = { ...held, inDoubt: [...held.inDoubt.slice(-MAX_IN_DOUBT), snapshot] };
    if (same) enforcer.relabel(snapshot);
    else enforcer.enforce(snapshot);
    metrics.routeVersion.set(snapshot.version);
    if (!same)
      log.info(
        { version: snapshot.version, digest: snapshot.digest, subset: subsetDisplayName(snapshot.subset) },
        "route snapshot enforced",
      );
  };

  const save = async (snapshot: Snapshot) => {
    while (enforcer.current?.snapshot === snapshot && stored !== snapshot.digest && !deps.signal.aborted) {
      stored = undefined; // a save that fails half way leaves nobody knows what
      try {
        await file.save(snapshot);
        stored = snapshot.digest;
      } catch (error) {
        log.error({ err: error }, "snapshot not acknowledged: it cannot be stored");
        await sleep(clock, STORE_RETRY_MS, deps.signal).catch(() => undefined);
      }
    }
  };
  // One after the other, and only the newest: an older one that waits is skipped.
  const store = (snapshot: Snapshot): Promise<void> => {
    storing = storing.then(() => save(snapshot));
    return storing;
  };
  const storeAgain = () => {
    storing = storing.then(async () => {
      const snapshot = enforcer.current?.snapshot;
      if (snapshot === undefined || stored !== snapshot.digest) return;
      stored = undefined;
      await save(snapshot);
    });
  };

  const acknowledge = (message: AckMessage, snapshot: Snapshot, answers: Answers) => {
    enforcer.whenSettled(async () => {
      await inherited.outlast();
      await store(snapshot);
      // The newest snapshot gets the only ACK that counts; while the file was written another may have come.
      if (enforcer.current?.snapshot !== snapshot || stored !== snapshot.digest) return;
      held = { acknowledged: snapshot, inDoubt: [] };
      answers.ack(message.nonce, snapshot.version);
    });
  };

  const accept = (message: AckMessage, read: () => Snapshot, answers: Answers) => {
    let snapshot: Snapshot;
    try {
      snapshot = checked(read(), deps.pod, enforcer.current?.snapshot);
    } catch (error) {
      const { reason, problems } = rejection(error);
      metrics.snapshotRejected.inc({ reason });
      log.warn({ err: error, version: message.version }, "route snapshot refused, the last good one stays");
      answers.nack(message.nonce, message.version, problems);
      return;
    }
    // From here on it is in force: a NACK would be a lie.
    enforce(snapshot);
    acknowledge(message, snapshot, answers);
  };

  return {
    async restore(endedCleanly, hasPromised = false) {
      const snapshot = await file.load();
      if (!endedCleanly && (snapshot !== undefined || hasPromised)) {
        inherited = createInheritedWrites(clock, deps.signal);
        log.info(
          { waitMs: INHERITED_WRITES_MS },
          "the process before was killed: nothing is acknowledged until its writes are over",
        );
      }
      if (snapshot === undefined) return;
      stored = snapshot.digest;
      enforce(snapshot);
      held = { acknowledged: snapshot, inDoubt: [] };
    },
    take: (message, answers) => accept(message, () => snapshotFromWire(message), answers),
    takeDelta(delta, answers) {
      const { nonce, version } = delta;
      const base = enforcer.current?.snapshot;
      let next: Snapshot;
      try {
        if (base?.digest !== delta.baseDigest) throw new MeshError("DELTA_BASE", "delta to a snapshot that is not in force");
        next = applyDelta(base, delta);
      } catch (error) {
        metrics.snapshotRejected.inc({ reason: "delta" });
        log.info({ err: error, version }, "delta not taken, asking for the whole snapshot");
        answers.needsSnapshot(nonce, version);
        return;
      }
      accept(delta, () => next, answers);
    },
    storeAgain,
    get held() {
      return { ...held, mayHoldMore: !inherited.isOver };
    },
    get isSettled() {
      return inherited.isOver;
    },
    idle: () => storing,
  };
}

function checked(snapshot: Snapshot, pod: PodRef, current: Snapshot | undefined): Snapshot {
  if (snapshot.podNamespace !== pod.namespace) {
    throw new SnapshotInvalidError([`podNamespace: ${snapshot.podNamespace} is not this pod's namespace ${pod.namespace}`]);
  }
  if (current === undefined || snapshot.version >= current.version) return snapshot;
  // The same rules under an older number are no step back: the number in force stays.
  if (snapshot.digest === current.digest) return { ...snapshot, version: current.version };
  throw new MeshError("SNAPSHOT_STALE", `version: ${snapshot.version} is older than ${current.version}, which is in force`);
}

function rejection(error: unknown): { reason: string; problems: readonly string[] } {
  if (error instanceof SnapshotInvalidError) return { reason: "invalid", problems: error.problems };
  if (isMeshError(error, "SNAPSHOT_STALE")) return { reason: "stale", problems: [error.message] };
  return { reason: "error", problems: [errorMessage(error)] };
}
