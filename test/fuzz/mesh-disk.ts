// The disk of one proxy of the model: the snapshot file's interface over a variable. Invariant: a save resolves only after the
// content is there; a process that ends during a save finds the old content or the new one.
import type { SnapshotFile } from "../../src/proxy/session/snapshot-file.ts";
import type { Snapshot } from "../../src/route/snapshot.ts";

export interface ModelDisk {
  readonly file: SnapshotFile;
  /** While false, saves hang; those that hang finish when it is true again. */
  works: boolean;
  /** The process ends. @param stored what was being saved has reached the disk */
  crash(stored: boolean): void;
}

export function createModelDisk(): ModelDisk {
  let content: Snapshot | undefined;
  let works = true;
  let waiting: { readonly snapshot: Snapshot; readonly resolve: () => void }[] = [];
  return {
    file: {
      load: async () => content,
      save(snapshot) {
        if (!works) return new Promise((resolve) => waiting.push({ snapshot, resolve }));
        content = snapshot;
        return Promise.resolve();
      },
    },
    get works() {
      return works;
    },
    set works(value) {
      works = value;
      if (!value) return;
      for (const { snapshot, resolve } of waiting) {
        content = snapshot;
        resolve();
      }
      waiting = [];
    },
    crash(stored) {
      if (stored) content = waiting.at(-1)?.snapshot ?? content;
      waiting = [];
      works = true;
    },
  };
}
