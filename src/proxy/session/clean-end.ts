// The word that a process of the proxy leaves to the next on disk: that it ended with no write under way. Invariant: it is good for
// one start, by the same pod; it is gone for good before that process lets a first write through. A file of its own, since a full disk
// lets it be removed, and where it cannot be written nothing is lost but time. Called by the session at its start and at its end.

import { isMissing, readBounded, removeFile, replaceFile } from "../../base/durable-file.ts";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../wire/messages.ts";

export interface CleanEnd {
  /**
   * Whether the process before has left its word, which is taken away.
   * @throws MeshError `CLEAN_END` if it cannot be: the next process would believe it of this one
   */
  take(): Promise<boolean>;
  /** Leaves the word. Where it cannot be stored, the next process takes this one for killed. */
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
      log.warn({ err: error, path }, "word of a clean end ignored and removed");
      return "";
    }
  };
  return {
    async take() {
      const text = await read();
      if (text === undefined) return false;
      await removeFile(path).catch((cause: unknown) => {
        throw new MeshError("CLEAN_END", "removing the word of a clean end", { cause });
      });
      return text === word;
    },
    async leave() {
      await replaceFile(path, word).catch((error: unknown) =>
        log.warn({ err: error, path }, "word of a clean end not stored: the next process waits with its first acknowledgement"),
      );
    },
  };
}
