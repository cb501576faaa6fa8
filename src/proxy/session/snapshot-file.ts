// The file with the last good snapshot and the state of the lock gate, so that a restarted proxy serves while the manager is away. Invariant:
// what is read is whole and was written for this pod, or it is nothing; a file that cannot be used is removed. Called by the session,
// which acknowledges a snapshot only after it is stored: else a restart could bring back what was given away.

import { isErrno, readBounded, removeFile, replaceFile } from "../../base/durable-file.ts";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { PodRef } from "../../wire/messages.ts";
import type { ClosedGate, StoredLock } from "./session.ts";
import { lockToJson, type Stored, snapshotToJson, storedFromJson } from "./snapshot-json.ts";

/** Bound of the file in bytes; a table of 10,000 namespaces takes about 0.3 MB. */
const MAX_SNAPSHOT_BYTES = 32 * 1024 * 1024;

export interface SnapshotFile {
  /** The stored snapshot if it is this pod's; undefined if there is none or it cannot be used. */
  load(): Promise<Snapshot | undefined>;
  /**
   * Stores the snapshot in place of what was there. Where it cannot be written, the old one is removed instead.
   * @throws MeshError `SNAPSHOT_FILE` if it is not known what is there: the old one, this one, or nothing
   */
  save(snapshot: Snapshot): Promise<void>;
}

/** What is stored beside the snapshot. */
export interface LockMemory {
  /** What was there; set by `load`. */
  before: StoredLock | undefined;
  /** What is stored with the next `save`. */
  closed: ClosedGate | undefined;
  /** As `closed`. */
  longestLeaseMs: number | undefined;
}

export function createSnapshotFile(options: {
  readonly path: string;
  readonly pod: PodRef;
  readonly log: Logger;
  readonly lock?: LockMemory;
  readonly maxBytes?: number;
}): SnapshotFile {
  const { path, pod, log, lock, maxBytes = MAX_SNAPSHOT_BYTES } = options;

  const read = async (): Promise<Stored | undefined> => {
    try {
      return storedFromJson(await readBounded(path, maxBytes), pod);
    } catch (error) {
      if (isErrno(error, "ENOENT")) return undefined;
      log.warn({ err: error, path }, "stored snapshot ignored and removed");
      await removeFile(path).catch((err) => log.warn({ err, path }, "stored snapshot cannot be removed"));
      return undefined;
    }
  };
  return {
    async load() {
      const stored = await read();
      if (lock !== undefined) {
        lock.before = stored?.lock;
        lock.closed = stored?.lock?.closed;
        lock.longestLeaseMs = stored?.lock?.longestLeaseMs;
      }
      return stored?.snapshot;
    },
    async save(snapshot) {
      try {
        const text = snapshotToJson(snapshot, pod, lock);
        if (Buffer.byteLength(text) > maxBytes) throw new MeshError("SNAPSHOT_FILE", `snapshot is over ${maxBytes} bytes`);
        await replaceFile(path, text);
      } catch (error) {
        await keepLockOnly(path, lockToJson(snapshot, pod, lock), error);
        log.warn({ err: error, path }, "snapshot not stored: a restart needs the manager");
      }
    },
  };
}

// The old snapshot must go, since it may say more than what is about to be acknowledged; its room may do for the rest.
async function keepLockOnly(path: string, text: string, cause: unknown): Promise<void> {
  try {
    await replaceFile(path, text);
    return;
  } catch {
    await removeFile(path).catch(() => {
      throw new MeshError("SNAPSHOT_FILE", "storing snapshot: the old one can be neither replaced nor removed", { cause });
    });
  }
  await replaceFile(path, text).catch(() => undefined);
}
