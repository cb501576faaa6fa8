// The last good snapshot on disk, so that a restarted proxy serves while the manager is away. Invariant: what is read is
// either a whole snapshot that was written for this pod, or nothing; a file that cannot be used is removed. Called by the
// session, which acknowledges a snapshot only after it is stored: else a restart could bring back what was given away.
import { constants } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { isMeshError, MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { PodRef, SnapshotMessage } from "../../wire/messages.ts";
import { snapshotFromWire, snapshotToWire } from "../../wire/snapshot-codec.ts";

/** Bound of the file in bytes; a table of 10,000 namespaces takes about 0.3 MB. */
export const MAX_SNAPSHOT_BYTES = 32 * 1024 * 1024;

const FORMAT = 1;

interface FileContent {
  readonly format: number;
  readonly pod: PodRef;
  readonly snapshot: SnapshotMessage;
}

export interface SnapshotFile {
  /** The stored snapshot if it is this pod's; undefined if there is none or it cannot be used. */
  load(): Promise<Snapshot | undefined>;
  /**
   * Stores the snapshot in place of what was there. Where it cannot be written, the old one is removed instead.
   * @throws MeshError `SNAPSHOT_FILE` if the old one is still there
   */
  save(snapshot: Snapshot): Promise<void>;
}

/** The file's text. */
export function snapshotToJson(snapshot: Snapshot, pod: PodRef): string {
  const content: FileContent = { format: FORMAT, pod, snapshot: snapshotToWire(snapshot, 0) };
  return JSON.stringify(content);
}

/**
 * Reads the file's text.
 * @throws MeshError `SNAPSHOT_FILE` for a foreign pod's or unreadable text, `SNAPSHOT_INVALID` for a snapshot with problems
 */
export function snapshotFromJson(text: string, pod: PodRef): Snapshot {
  const content = parse(text);
  const owner = content.pod;
  const same = owner.namespace === pod.namespace && owner.name === pod.name;
  // A pod of a StatefulSet comes back under its name with another uid, perhaps in another subset.
  if (!same || (owner.uid !== "" && pod.uid !== "" && owner.uid !== pod.uid)) {
    throw new MeshError(
      "SNAPSHOT_FILE",
      `reading stored snapshot: it belongs to pod ${owner.namespace}/${owner.name} (${owner.uid})`,
    );
  }
  return snapshotFromWire(content.snapshot);
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
function checkShape({ pod, snapshot }: FileContent): void {
  const { table } = snapshot;
  const lists: readonly unknown[] = [
    table?.rules,
    table?.classes,
    table?.publicResources,
    table?.fenced,
    ...(table?.rules ?? []).flatMap((rule) => [
      rule.resources,
      rule.terms ?? [],
      ...(rule.terms ?? []).map((term) => term.values),
    ]),
    ...(table?.classes ?? []).flatMap((row) => [row.rules, row.namespaces]),
  ];
  const texts: readonly unknown[] = [
    pod.namespace,
    pod.name,
    pod.uid,
    snapshot.digest,
    snapshot.subset,
    snapshot.podNamespace,
    snapshot.lockName,
  ];
  if (!lists.every(Array.isArray) || !texts.every((value) => typeof value === "string")) {
    throw new MeshError("SNAPSHOT_FILE", "fields are missing");
  }
}

export function createSnapshotFile(options: {
  readonly path: string;
  readonly pod: PodRef;
  readonly log: Logger;
  readonly maxBytes?: number;
}): SnapshotFile {
  const { path, pod, log, maxBytes = MAX_SNAPSHOT_BYTES } = options;
  return {
    async load() {
      try {
        return snapshotFromJson(await readBounded(path, maxBytes), pod);
      } catch (error) {
        if (isErrno(error, "ENOENT")) return undefined;
        log.warn({ err: error, path }, "stored snapshot ignored and removed");
        await rm(path, { force: true }).catch((err) => log.warn({ err, path }, "stored snapshot cannot be removed"));
        return undefined;
      }
    },
    async save(snapshot) {
      try {
        const text = snapshotToJson(snapshot, pod);
        if (Buffer.byteLength(text) > maxBytes) throw new MeshError("SNAPSHOT_FILE", `snapshot is over ${maxBytes} bytes`);
        await replaceFile(path, text);
      } catch (error) {
        await removeStale(path, error);
        log.warn({ err: error, path }, "snapshot not stored: a restart needs the manager");
      }
    },
  };
}

async function readBounded(path: string, maxBytes: number): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    if (size > maxBytes) throw new MeshError("SNAPSHOT_FILE", `reading stored snapshot: ${size} bytes are over ${maxBytes}`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function removeStale(path: string, cause: unknown): Promise<void> {
  try {
    await rm(path, { force: true });
  } catch (error) {
    if (isErrno(error, "ENOENT") || isErrno(error, "ENOTDIR")) return;
    throw new MeshError("SNAPSHOT_FILE", "storing snapshot: the old one can be neither replaced nor removed", { cause });
  }
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && !isMeshError(error, "SNAPSHOT_FILE") && "code" in error && error.code === code;
}
