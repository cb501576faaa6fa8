// What happens to a snapshot that comes from the manager: check, enforce, store, and only then acknowledge. Invariant: an
// ACK says that the rules are in force, that no write which they refuse is under way, and that a restart cannot bring older
// rules back. Called by mesh-client for each message; no I/O of its own but the file.
import { type Clock, sleep } from "../../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { PodRef, SnapshotMessage } from "../../wire/messages.ts";
import { SnapshotInvalidError, snapshotFromWire } from "../../wire/snapshot-codec.ts";
import type { Enforcer } from "./enforcer.ts";
import type { SessionMetrics } from "./session-metrics.ts";
import type { SnapshotFile } from "./snapshot-file.ts";

/** How the intake answers on the stream that a snapshot came on. */
export interface Answers {
  ack(nonce: number, version: number): void;
  nack(nonce: number, version: number, problems: readonly string[]): void;
}

export interface SnapshotIntake {
  /** Puts the stored snapshot in force, if there is a usable one. */
  restore(): Promise<void>;
  take(message: SnapshotMessage, answers: Answers): void;
  readonly held: Held;
  /** Resolves when nothing is being stored. */
  idle(): Promise<void>;
}

/**
 * What this proxy may hold, for its hello. A new manager believes nothing but this, so it must cover every write under way:
 *
 * - What is in force refuses new writes in what it lost, but older ones may still run there. So a snapshot is told as held
 *   (`acknowledged`) only from the moment when an ACK could be sent; until then the last such one is, and with it what it lost.
 * - That one alone would hide what was gained since, where writes are let through already. So all that came into force since is
 *   told too (`inDoubt`): writes were let through by one of these and by nothing else.
 * - The manager ends the doubt only upon an ACK, and sends a snapshot to be acknowledged whatever it wishes; that ACK waits for
 *   the writes, as every one does. So a hello can be said at any time, and a write without end blocks its ACK and nothing more.
 * - A process that starts again holds what its disk says, which was stored after the writes had ended and before the ACK.
 */
export interface Held {
  readonly acknowledged: Snapshot | undefined;
  /** Oldest first; empty if `acknowledged` is in force. With more than MAX_IN_DOUBT it is not known what else there was. */
  readonly inDoubt: readonly Snapshot[];
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
  const { enforcer, file, metrics, log } = deps;
  let storing: Promise<void> = Promise.resolve();
  let stored: string | undefined;
  let held: Held = { acknowledged: undefined, inDoubt: [] };

  const enforce = (snapshot: Snapshot) => {
    const same = enforcer.current?.snapshot.digest === snapshot.digest;
    if (!same) held = { ...held, inDoubt: [...held.inDoubt.slice(-MAX_IN_DOUBT), snapshot] };
    if (same) enforcer.relabel(snapshot);
    else enforcer.enforce(snapshot);
    metrics.routeVersion.set(snapshot.version);
    if (!same)
      log.info({ version: snapshot.version, digest: snapshot.digest, subset: snapshot.subset }, "route snapshot enforced");
  };

  // One after the other, and only the newest: an older one that waits is skipped.
  const store = (snapshot: Snapshot): Promise<void> => {
    storing = storing.then(async () => {
      while (enforcer.current?.snapshot === snapshot && stored !== snapshot.digest && !deps.signal.aborted) {
        try {
          await file.save(snapshot);
          stored = snapshot.digest;
        } catch (error) {
          log.error({ err: error }, "snapshot not acknowledged: it cannot be stored");
          await sleep(deps.clock, STORE_RETRY_MS, deps.signal).catch(() => undefined);
        }
      }
    });
    return storing;
  };

  const acknowledge = (message: SnapshotMessage, snapshot: Snapshot, answers: Answers) => {
    enforcer.whenSettled(async () => {
      await store(snapshot);
      // The newest snapshot gets the only ACK that counts; while the file was written another may have come.
      if (enforcer.current?.snapshot !== snapshot || stored !== snapshot.digest) return;
      held = { acknowledged: snapshot, inDoubt: [] };
      answers.ack(message.nonce, snapshot.version);
    });
  };

  return {
    async restore() {
      const snapshot = await file.load();
      if (snapshot === undefined) return;
      stored = snapshot.digest;
      enforce(snapshot);
      held = { acknowledged: snapshot, inDoubt: [] };
    },
    take(message, answers) {
      let snapshot: Snapshot;
      try {
        snapshot = decode(message, deps.pod, enforcer.current?.snapshot);
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
    },
    get held() {
      return held;
    },
    idle: () => storing,
  };
}

function decode(message: SnapshotMessage, pod: PodRef, current: Snapshot | undefined): Snapshot {
  const snapshot = snapshotFromWire(message);
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
