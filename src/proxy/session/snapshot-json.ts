// The text of the session's file: the last good snapshot, and of which lock it is. Pure. Invariant: what reads without an error was
// written for this very pod and can be enforced. A file may say less than it should (no snapshot, no lock), never more. The snapshot is
// stored as the very message of the stream.
import { MeshError } from "../../base/errors.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { PodRef } from "../../wire/messages.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { ClosedGate, StoredLock } from "./session.ts";

/** What of the lock is not in the snapshot. */
type LockState = Pick<StoredLock, "closed" | "longestLeaseMs">;

const FORMAT = 2;
const MAX_LEASE_MS = 3_600_000;

interface FileContent {
  readonly format: number;
  readonly pod: PodRef;
  /** Null where the snapshot found no room. The body is in base64. */
  readonly route: { readonly version: number; readonly digest: string; readonly body: string } | null;
  readonly lock: {
    readonly lockName: string;
    readonly subset: string;
    readonly closed: ClosedGate | null;
    readonly longestLeaseMs?: number | undefined;
  };
}

/** What a process leaves to the next. */
export interface Stored {
  readonly snapshot: Snapshot | undefined;
  readonly lock: StoredLock;
}

/** The file's text. */
export function snapshotToJson(snapshot: Snapshot, pod: PodRef, lock?: LockState): string {
  const { version, digest } = snapshot;
  return toJson(pod, { version, digest, body: Buffer.from(ROUTE.encode(snapshot)).toString("base64") }, snapshot, lock);
}

/** The file's text where there is no room for the snapshot. */
export function lockToJson(snapshot: Snapshot, pod: PodRef, lock?: LockState): string {
  return toJson(pod, null, snapshot, lock);
}

function toJson(pod: PodRef, route: FileContent["route"], { lockName, subset }: Snapshot, state?: LockState): string {
  const lock = { lockName, subset, closed: state?.closed ?? null, longestLeaseMs: state?.longestLeaseMs };
  const content: FileContent = { format: FORMAT, pod, route, lock };
  return JSON.stringify(content);
}

/**
 * Reads the file's text.
 * @throws MeshError `SNAPSHOT_FILE` for another pod's or unreadable text, `RESOURCE_INVALID` for a snapshot with problems
 */
export function storedFromJson(text: string, pod: PodRef): Stored {
  const { pod: owner, route, lock } = parse(text);
  // A pod of a StatefulSet comes back under its name with another uid, perhaps in another subset. A pod of unknown uid is not
  // believed to be this one either, unless this one's uid is unknown too: then the folder has to end with the pod.
  if (owner.namespace !== pod.namespace || owner.name !== pod.name || owner.uid !== pod.uid) {
    throw new MeshError(
      "SNAPSHOT_FILE",
      `reading stored snapshot: it belongs to pod ${owner.namespace}/${owner.name} (${owner.uid})`,
    );
  }
  const snapshot = route === null ? undefined : ROUTE.decode(Buffer.from(route.body, "base64"), route);
  if (snapshot !== undefined && snapshot.podNamespace !== pod.namespace)
    throw new MeshError("SNAPSHOT_FILE", `reading stored snapshot: it is for a pod in namespace ${snapshot.podNamespace}`);
  const { lockName, subset, closed, longestLeaseMs } = lock;
  return {
    snapshot,
    lock: {
      lockName,
      subset,
      closed: closed ? { lock: closed.lock, leaseMs: Math.min(closed.leaseMs, MAX_LEASE_MS) } : undefined,
      longestLeaseMs: longestLeaseMs && Math.min(longestLeaseMs, MAX_LEASE_MS),
    },
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

function checkShape({ pod, route, lock }: FileContent): void {
  const { closed, longestLeaseMs = 0 } = lock;
  const texts = [pod.namespace, pod.name, pod.uid, lock.lockName, lock.subset];
  const numbers = [longestLeaseMs];
  // Half a gate would open at once.
  if (closed !== null) {
    texts.push(closed.lock);
    numbers.push(closed.leaseMs);
  }
  if (route !== null) {
    texts.push(route.digest, route.body);
    numbers.push(route.version);
  }
  const isSound =
    texts.every((value) => typeof value === "string") && numbers.every((value) => typeof value === "number" && value >= 0);
  if (!isSound) throw new MeshError("SNAPSHOT_FILE", "fields are missing");
}
