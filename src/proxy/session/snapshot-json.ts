// The text of the session's file: the last good snapshot, and of which lock it is. Pure. Invariant: what reads without an error was
// written for this very pod and can be enforced. A file may say less than it should (no snapshot, no lock), never more.
import { MeshError } from "../../base/errors.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { PodRef, SnapshotMessage } from "../../wire/messages.ts";
import { snapshotFromWire, snapshotToWire } from "../../wire/snapshot-codec.ts";
import type { ClosedGate, StoredLock } from "./session.ts";

/** What of the lock is not in the snapshot. */
type LockState = Pick<StoredLock, "closed" | "longestLeaseMs">;

const FORMAT = 1;
const MAX_LEASE_MS = 3_600_000;

interface FileContent {
  readonly format: number;
  readonly pod: PodRef;
  /** Null where the snapshot found no room. */
  readonly snapshot: SnapshotMessage | null;
  /** Absent in what an older version stored. */
  readonly lock?: {
    readonly lockName: string;
    readonly subset: string;
    readonly closed: ClosedGate | null;
    readonly longestLeaseMs?: number | undefined;
  };
}

/** What a process leaves to the next. */
export interface Stored {
  readonly snapshot: Snapshot | undefined;
  readonly lock: StoredLock | undefined;
}

/** The file's text. */
export function snapshotToJson(snapshot: Snapshot, pod: PodRef, lock?: LockState): string {
  return toJson(pod, snapshotToWire(snapshot, 0), snapshot, lock);
}

/** The file's text where there is no room for the snapshot. */
export function lockToJson(snapshot: Snapshot, pod: PodRef, lock?: LockState): string {
  return toJson(pod, null, snapshot, lock);
}

function toJson(pod: PodRef, snapshot: SnapshotMessage | null, { lockName, subset }: Snapshot, state?: LockState): string {
  const lock = { lockName, subset, closed: state?.closed ?? null, longestLeaseMs: state?.longestLeaseMs };
  const content: FileContent = { format: FORMAT, pod, snapshot, lock };
  return JSON.stringify(content);
}

/**
 * Reads the file's text.
 * @throws MeshError `SNAPSHOT_FILE` for a foreign pod's or unreadable text, `SNAPSHOT_INVALID` for a snapshot with problems
 */
export function storedFromJson(text: string, pod: PodRef): Stored {
  const content = parse(text);
  const owner = content.pod;
  // A pod of a StatefulSet comes back under its name with another uid, perhaps in another subset. One whose uid is not known is
  // not believed to be this one either, unless this one's is not known: then the folder has to end with the pod.
  if (owner.namespace !== pod.namespace || owner.name !== pod.name || owner.uid !== pod.uid) {
    throw new MeshError(
      "SNAPSHOT_FILE",
      `reading stored snapshot: it belongs to pod ${owner.namespace}/${owner.name} (${owner.uid})`,
    );
  }
  const snapshot = content.snapshot === null ? undefined : snapshotFromWire(content.snapshot);
  if (snapshot !== undefined && snapshot.podNamespace !== pod.namespace)
    throw new MeshError("SNAPSHOT_FILE", `reading stored snapshot: it is for a pod in namespace ${snapshot.podNamespace}`);
  const lock = content.lock ?? snapshot;
  return { snapshot, lock: lock && { lockName: lock.lockName, subset: lock.subset, ...stateIn(content) } };
}

function stateIn({ lock }: FileContent): LockState {
  const { closed, longestLeaseMs } = lock ?? {};
  return {
    closed: closed ? { lock: closed.lock, leaseMs: Math.min(closed.leaseMs, MAX_LEASE_MS) } : undefined,
    longestLeaseMs: longestLeaseMs && Math.min(longestLeaseMs, MAX_LEASE_MS),
  };
}

function parse(text: string): FileContent {
  try {
    const content = JSON.parse(text) as FileContent;
    if (content.format !== FORMAT) throw new MeshError("SNAPSHOT_FILE", `format ${content.format} is not known`);
    checkShape(content);
    return content;
  } catch (cause) {
    throw new MeshError("SNAPSHOT_FILE", "reading stored snapshot", { cause });
  }
}

// Only as deep as the decoder trusts the types that gRPC guarantees.
function checkShape({ pod, snapshot, lock }: FileContent): void {
  const texts: unknown[] = [pod.namespace, pod.name, pod.uid];
  const lists: unknown[] = [];
  const numbers: unknown[] = [];
  if (lock !== undefined) texts.push(lock.lockName, lock.subset);
  if (lock?.longestLeaseMs !== undefined) numbers.push(lock.longestLeaseMs);
  if (lock?.closed) {
    texts.push(lock.closed.lock);
    numbers.push(lock.closed.leaseMs);
  }
  if (snapshot === null) {
    if (lock === undefined) throw new MeshError("SNAPSHOT_FILE", "there is neither a snapshot nor a lock");
  } else {
    texts.push(snapshot.digest, snapshot.subset, snapshot.podNamespace, snapshot.lockName);
    lists.push(...listsIn(snapshot.table));
  }
  const isSound =
    texts.every((value) => typeof value === "string") &&
    lists.every(Array.isArray) &&
    numbers.every((value) => typeof value === "number" && value >= 0);
  if (!isSound) throw new MeshError("SNAPSHOT_FILE", "fields are missing");
}

function listsIn(table: SnapshotMessage["table"]): unknown[] {
  if (table === null) return [];
  const { rules, classes, sharedResources, fenced, retained = [] } = table;
  return [
    sharedResources,
    fenced,
    ...rules.flatMap(({ resources, terms = [] }) => [resources, terms, ...terms.map((term) => term.values)]),
    ...classes.flatMap((row) => [row.rules, row.namespaces]),
    ...retained.flatMap((row) => [row.namespaces, row.rules, ...row.rules.map((rule) => rule.resources)]),
  ];
}
