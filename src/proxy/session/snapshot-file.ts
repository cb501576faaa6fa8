// The file with the last good snapshot, the last moves and the state of the lock gate, so that a restarted
// proxy serves while the manager is away. Invariant: what is read is whole and was written for this pod, or
// it is nothing; a file that cannot be used is removed. Called by the session, which acknowledges a snapshot
// only after `save`: the snapshot is stored, or (on a full disk) the old snapshot is removed. Else a restart
// could enforce an older snapshot.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { isErrno, readBounded, removeFile, replaceFile } from "../../base/durable-file.ts";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { PodRef } from "../../wire/messages.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { ClosedGate, StoredLock } from "./session.ts";
import { LOST_MOVES, type MovesContent, movesFromContent, movesToContent, type StoredMoves } from "./stored-moves.ts";

/** Bound of the file in bytes; a table of 10,000 namespaces takes about 0.3 MB. */
const MAX_SNAPSHOT_BYTES = 32 * 1024 * 1024;

export interface SnapshotFile {
  /** The stored snapshot if it is this pod's; undefined if there is none or it cannot be used. */
  load(): Promise<Snapshot | undefined>;
  /**
   * A snapshot that is not stored comes into force at once. Until the next `save`, another process does not
   * believe the stored moves: clients may have been told of more. Synchronous, since nothing of the snapshot
   * may be shown before.
   */
  willChange(): void;
  /**
   * Stores the snapshot in place of what was there. If it cannot be written, `save` removes the old one
   * instead and resolves.
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

/** The moves that are stored beside the snapshot. */
export interface MovesMemory {
  /** What was there; set by `load` if there was something. */
  before: StoredMoves | undefined;
  /** What is stored with the next `save`. */
  read: () => StoredMoves;
}

export function createSnapshotFile(options: {
  readonly path: string;
  readonly pod: PodRef;
  readonly log: Logger;
  readonly lock?: LockMemory;
  readonly moves?: MovesMemory;
  readonly maxBytes?: number;
}): SnapshotFile {
  const { path, pod, log, lock, moves, maxBytes = MAX_SNAPSHOT_BYTES } = options;

  const unsavedPath = `${path}.unsaved`;
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
      if (moves !== undefined && stored !== undefined) moves.before = existsSync(unsavedPath) ? LOST_MOVES : stored.moves;
      return stored?.snapshot;
    },
    willChange() {
      try {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(unsavedPath, "");
      } catch (error) {
        log.warn({ err: error, path: unsavedPath }, "unsaved moves not noted: after a crash an informer may miss a move");
      }
    },
    async save(snapshot) {
      try {
        const text = snapshotToJson(snapshot, pod, lock, moves?.read());
        if (Buffer.byteLength(text) > maxBytes) throw new MeshError("SNAPSHOT_FILE", `snapshot is over ${maxBytes} bytes`);
        await replaceFile(path, text);
        await removeFile(unsavedPath).catch(() => undefined);
      } catch (error) {
        await keepLockOnly(path, lockToJson(snapshot, pod, lock), error);
        log.warn({ err: error, path }, "snapshot not stored: a restart needs the manager");
      }
    },
  };
}

// The old snapshot must go, since it may say more than what is about to be acknowledged; its room may do for
// the rest.
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

/** What of the lock is not in the snapshot. */
type LockState = Pick<StoredLock, "closed" | "longestLeaseMs">;

const FORMAT = 3;
const MAX_LEASE_MS = 3_600_000;

const LEASE_MS = z
  .number()
  .nonnegative()
  .transform((ms) => Math.min(ms, MAX_LEASE_MS));

const CONTENT = z.object({
  format: z.literal(FORMAT),
  pod: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  /** Null where the snapshot found no room. The body is in base64. */
  route: z.object({ version: z.number().nonnegative(), digest: z.string(), body: z.string() }).nullable(),
  lock: z.object({
    lockName: z.string(),
    subset: z.string(),
    // Half a gate would open at once.
    closed: z.object({ lock: z.string(), leaseMs: LEASE_MS }).nullable(),
    longestLeaseMs: LEASE_MS.optional(),
  }),
  /** Absent without a snapshot: then they are lost. */
  moves: z.unknown().optional(),
});
type FileContent = z.input<typeof CONTENT>;

/** What a process leaves to the next. */
interface Stored {
  readonly snapshot: Snapshot | undefined;
  readonly lock: StoredLock;
  readonly moves: StoredMoves;
}

/** The file's text. */
export function snapshotToJson(snapshot: Snapshot, pod: PodRef, lock?: LockState, moves?: StoredMoves): string {
  const { version, digest } = snapshot;
  const route = { version, digest, body: Buffer.from(ROUTE.encode(snapshot)).toString("base64") };
  return toJson(pod, route, snapshot, lock, moves && movesToContent(moves));
}

/** The file's text where there is no room for the snapshot. */
function lockToJson(snapshot: Snapshot, pod: PodRef, lock?: LockState): string {
  return toJson(pod, null, snapshot, lock);
}

function toJson(
  pod: PodRef,
  route: FileContent["route"],
  { lockName, subset }: Snapshot,
  state?: LockState,
  moves?: MovesContent,
): string {
  const lock = { lockName, subset, closed: state?.closed ?? null, longestLeaseMs: state?.longestLeaseMs };
  const content: FileContent = { format: FORMAT, pod, route, lock, moves };
  return JSON.stringify(content);
}

/**
 * Reads the file's text.
 * @throws MeshError `SNAPSHOT_FILE` for another pod's or unreadable text, `RESOURCE_INVALID` for a snapshot
 * with problems
 */
export function storedFromJson(text: string, pod: PodRef): Stored {
  const { pod: owner, route, lock, moves } = parse(text);
  // A pod of a StatefulSet comes back under its name with another uid, perhaps in another subset. A pod of
  // unknown uid is not believed to be this one either, unless this one's uid is unknown too: then the folder
  // has to end with the pod.
  if (owner.namespace !== pod.namespace || owner.name !== pod.name || owner.uid !== pod.uid) {
    throw new MeshError(
      "SNAPSHOT_FILE",
      `reading stored snapshot: it belongs to pod ${owner.namespace}/${owner.name} (${owner.uid})`,
    );
  }
  const snapshot = route === null ? undefined : ROUTE.decode(Buffer.from(route.body, "base64"), route);
  if (snapshot !== undefined && snapshot.podNamespace !== pod.namespace)
    throw new MeshError("SNAPSHOT_FILE", `reading stored snapshot: it is for a pod in namespace ${snapshot.podNamespace}`);
  return {
    snapshot,
    lock: { ...lock, closed: lock.closed ?? undefined, longestLeaseMs: lock.longestLeaseMs },
    moves: movesFromContent(moves),
  };
}

function parse(text: string): z.output<typeof CONTENT> {
  try {
    return CONTENT.parse(JSON.parse(text));
  } catch (cause) {
    throw new MeshError("SNAPSHOT_FILE", "reading stored snapshot", { cause });
  }
}
