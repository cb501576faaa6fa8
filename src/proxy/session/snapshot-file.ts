// The last good snapshot, the last moves and the lock gate in the state folder, for a restart without the
// manager. Invariants: what is read is whole and was written by this pod, and a file that cannot be used is
// removed; `save` leaves no older snapshot, since a restart could enforce that.
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import { digestOf } from "../../mesh/contract/resource-type.ts";
import { ROUTE, routeFromJson } from "../../mesh/contract/route-type.ts";
import type { MovesMemory } from "../../mesh/moves/stored-moves.ts";
import {
  LOST_MOVES,
  type MovesContent,
  movesFromContent,
  movesToContent,
  type StoredMoves,
} from "../../mesh/moves/stored-moves.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import { isSamePod, OWNER, type StateFolder } from "../state/state-folder.ts";
import type { LockMemory, StoredLock } from "./memory.ts";

export type SnapshotFile = ReturnType<typeof createSnapshotFile>;

export function createSnapshotFile(
  { snapshot: slot, unsaved }: Pick<StateFolder, "snapshot" | "unsaved">,
  pod: PodRef,
  log: Logger,
  onLockChange: () => void = () => undefined,
) {
  let lockBefore: StoredLock | undefined;
  let movesBefore: StoredMoves | undefined;
  let lock: LockState = { closed: undefined, longestLeaseMs: undefined };
  let readMoves = () => LOST_MOVES;
  /** Counts `willChange`: the marker stays while routes newer than the stored ones are in force. */
  let changes = 0;

  const read = async (): Promise<Stored | undefined> => {
    try {
      const text = await slot.read();
      return text === undefined ? undefined : storedFromJson(text, pod);
    } catch (error) {
      const { path } = slot;
      log.warn({ err: error, path }, "stored snapshot ignored and removed");
      await slot.remove().catch((err) => log.warn({ err, path }, "stored snapshot cannot be removed"));
      return undefined;
    }
  };
  const setLock = (next: LockState) => {
    if (isDeepStrictEqual(next, lock)) return;
    lock = next;
    onLockChange();
  };
  const lockMemory: LockMemory = {
    get before() {
      return lockBefore;
    },
    keepGate: (closed) => setLock({ ...lock, closed }),
    keepLease: (longestLeaseMs) => setLock({ ...lock, longestLeaseMs }),
  };
  const movesMemory: MovesMemory = {
    get before() {
      return movesBefore;
    },
    keep(source) {
      readMoves = source;
    },
  };
  return {
    lock: lockMemory,
    moves: movesMemory,
    /** Undefined without a usable one. @param hasPromised an earlier process may have served */
    async load(hasPromised = false): Promise<Snapshot | undefined> {
      const stored = await read();
      lockBefore = stored?.lock;
      lock = { closed: stored?.lock.closed, longestLeaseMs: stored?.lock.longestLeaseMs };
      if (stored !== undefined) movesBefore = unsaved.isThere ? LOST_MOVES : stored.moves;
      else if (hasPromised) movesBefore = LOST_MOVES;
      return stored?.snapshot;
    },
    /**
     * A snapshot comes into force before it is stored. Until the next `save`, another process does not
     * believe the stored moves, since clients may have seen more. Synchronous, since nothing may be shown before.
     */
    willChange(): void {
      changes++;
      unsaved.touch();
    },
    /**
     * Stores the snapshot. If it cannot be written, `save` removes the old one instead and resolves.
     * @param isAllShown false: clients see more than the snapshot says, so the moves count as lost
     * @throws MeshError `SNAPSHOT_FILE` if it is not known what is there: the old one, this one, or nothing
     */
    async save(snapshot: Snapshot, isAllShown = true): Promise<void> {
      const changesBefore = changes;
      const saved = await slot.save(() => ({
        text: () => snapshotToJson(snapshot, pod, lock, isAllShown ? readMoves() : LOST_MOVES),
        onFullDisk: { less: toJson(pod, "null", snapshot, lock) },
      }));
      if (saved.is === "stored" && changes === changesBefore) {
        await unsaved.remove().catch(() => undefined);
        if (changes !== changesBefore) unsaved.touch(); // newer routes came while the marker was removed
      }
      if (saved.is === "unknown")
        throw new MeshError("SNAPSHOT_FILE", "storing snapshot: the old one can be neither replaced nor removed", {
          cause: saved.error,
        });
    },
  };
}

export type LockState = Pick<StoredLock, "closed" | "longestLeaseMs">;

const FORMAT = 4;
const MAX_LEASE_MS = 3_600_000;

const LEASE_MS = z
  .number()
  .nonnegative()
  .transform((ms) => Math.min(ms, MAX_LEASE_MS));

const CONTENT = z.object({
  format: z.literal(FORMAT),
  pod: OWNER,
  /** Null if the disk had no room for the snapshot. The body is that of the resource. */
  route: z.object({ version: z.number().nonnegative(), digest: z.string(), body: z.unknown() }).nullable(),
  lock: z.object({
    lockName: z.string(),
    subset: z.string(),
    // Half a gate would open immediately.
    closed: z.object({ lock: z.string(), leaseMs: LEASE_MS }).nullable(),
    longestLeaseMs: LEASE_MS.optional(),
  }),
  /** Absent without a snapshot: then all moves are lost. */
  moves: z.unknown().optional(),
});
type FileContent = z.input<typeof CONTENT>;

interface Stored {
  readonly snapshot: Snapshot | undefined;
  readonly lock: StoredLock;
  readonly moves: StoredMoves;
}

export function snapshotToJson(snapshot: Snapshot, pod: PodRef, lock?: LockState, moves?: StoredMoves): string {
  const { version, digest } = snapshot;
  const head = JSON.stringify({ version, digest });
  const route = `${head.slice(0, -1)},"body":${Buffer.from(ROUTE.encode(snapshot)).toString()}}`;
  return toJson(pod, route, snapshot, lock, moves && movesToContent(moves));
}

/** @param route in JSON */
function toJson(pod: PodRef, route: string, { lockName, subset }: Snapshot, state?: LockState, moves?: MovesContent): string {
  const lock = { lockName, subset, closed: state?.closed ?? null, longestLeaseMs: state?.longestLeaseMs };
  const content: Omit<FileContent, "route"> = { format: FORMAT, pod, lock, moves };
  return withSum(`${JSON.stringify(content).slice(0, -1)},"route":${route}}`);
}

/** @throws MeshError `SNAPSHOT_FILE` for unreadable text or another pod's, `RESOURCE_INVALID` for problems */
export function storedFromJson(text: string, pod: PodRef): Stored {
  const { pod: owner, route, lock, moves } = parse(text);
  if (!isSamePod(owner, pod)) {
    throw new MeshError(
      "SNAPSHOT_FILE",
      `reading stored snapshot: it belongs to pod ${owner.namespace}/${owner.name} (${owner.uid})`,
    );
  }
  const snapshot = route === null ? undefined : routeFromJson(route.body, route);
  if (snapshot !== undefined && snapshot.podNamespace !== pod.namespace)
    throw new MeshError("SNAPSHOT_FILE", `reading stored snapshot: it is for a pod in namespace ${snapshot.podNamespace}`);
  return {
    snapshot,
    lock: { ...lock, closed: lock.closed ?? undefined, longestLeaseMs: lock.longestLeaseMs },
    moves: movesFromContent(moves),
  };
}

const SUM_LENGTH = ',"sum":""}'.length + 32;

/** The object with the sum of its text as the last field: a damaged file may still be JSON, with another namespace in it. */
export function withSum(json: string): string {
  return `${json.slice(0, -1)},"sum":"${digestOf(Buffer.from(json))}"}`;
}

function parse(text: string): z.output<typeof CONTENT> {
  try {
    if (withSum(`${text.slice(0, -SUM_LENGTH)}}`) !== text) throw new Error("it is damaged, or of another format");
    return CONTENT.parse(JSON.parse(text));
  } catch (cause) {
    throw new MeshError("SNAPSHOT_FILE", "reading stored snapshot", { cause });
  }
}
