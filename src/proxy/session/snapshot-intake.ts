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
  /**
   * Resolves when what is in force could be acknowledged. A Hello says the same as an ACK, so it must not come earlier: it
   * would give away a namespace in which a write is still under way.
   */
  settled(): Promise<void>;
  /** Resolves when nothing is being stored. */
  idle(): Promise<void>;
}

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

  const enforce = (snapshot: Snapshot) => {
    const same = enforcer.current?.snapshot.digest === snapshot.digest;
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
      if (enforcer.current?.snapshot === snapshot && stored === snapshot.digest) answers.ack(message.nonce, snapshot.version);
    });
  };

  return {
    async restore() {
      const snapshot = await file.load();
      if (snapshot === undefined) return;
      stored = snapshot.digest;
      enforce(snapshot);
    },
    take(message, answers) {
      try {
        const snapshot = decode(message, deps.pod, enforcer.current?.snapshot);
        enforce(snapshot);
        acknowledge(message, snapshot, answers);
      } catch (error) {
        const { reason, problems } = rejection(error);
        metrics.snapshotRejected.inc({ reason });
        log.warn({ err: error, version: message.version }, "route snapshot refused, the last good one stays");
        answers.nack(message.nonce, message.version, problems);
      }
    },
    settled: () =>
      new Promise((resolve) => {
        enforcer.whenSettled(async () => {
          if (enforcer.current !== undefined) await store(enforcer.current.snapshot);
          resolve();
        });
      }),
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
