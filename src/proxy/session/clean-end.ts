// The marker that a process of the proxy leaves on disk: it ended with no write in flight. Invariant: the
// marker counts for one start of the same pod, and is removed before that process lets a first write through.
// A full disk allows its removal, and a marker that cannot be written costs only time. Called by the session
// at its start and at its end.

import { isMissing, readBounded, removeFile, replaceFile } from "../../base/durable-file.ts";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../wire/messages.ts";

export interface CleanEnd {
  /**
   * Whether the previous process has left the marker, which is removed.
   * @throws MeshError `CLEAN_END` if it cannot be removed: the next process would believe it of this one
   */
  take(): Promise<boolean>;
  /** Writes the marker. If it cannot be written, the next process takes this one for killed. */
  leave(): Promise<void>;
}

const MAX_BYTES = 2_048;

export function createCleanEnd({
  path,
  pod,
  log,
}: {
  readonly path: string;
  readonly pod: PodRef;
  readonly log: Logger;
}): CleanEnd {
  const word = `${JSON.stringify([pod.namespace, pod.name, pod.uid])}\n`;

  const read = async (): Promise<string | undefined> => {
    try {
      return await readBounded(path, MAX_BYTES);
    } catch (error) {
      if (isMissing(error)) return undefined;
      log.warn({ err: error, path }, "marker of a clean end ignored and removed");
      return "";
    }
  };
  return {
    async take() {
      const text = await read();
      if (text === undefined) return false;
      await removeFile(path).catch((cause: unknown) => {
        throw new MeshError("CLEAN_END", "removing the marker of a clean end", { cause });
      });
      return text === word;
    },
    async leave() {
      await replaceFile(path, word).catch((error: unknown) =>
        log.warn({ err: error, path }, "marker of a clean end not stored: the next process delays its first acknowledgement"),
      );
    },
  };
}
