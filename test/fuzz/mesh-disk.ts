// The disk of one proxy of the model: the texts of its files, as the real ones read and write them, over variables. Invariant: a save
// resolves only after the content is there; a process that ends during a save finds the old content or the new one.
import { MeshError } from "../../src/base/errors.ts";
import type { PodRef } from "../../src/mesh/contract/messages.ts";
import { afterSave, type Entry, foundOnDisk, toSave, withNextNumber, withPromise } from "../../src/mesh/link/ledger.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { type SnapshotFile, snapshotToJson, storedFromJson } from "../../src/proxy/session/snapshot-file.ts";
import type { StreamLedger } from "../../src/proxy/session/stream-ledger.ts";

/** What a process that starts again finds: what was there or what was being saved, half of it, or nothing at all. */
export type Remains = "before" | "saved" | "torn" | "none";

export type DiskState = "works" | "hangs" | "fails";

export interface ModelDisk {
  readonly file: Pick<SnapshotFile, "load" | "willChange" | "save">;
  /** Numbers of streams and the promised epoch: a new one for each process. */
  openStreams(now: () => number): Pick<StreamLedger, "next" | "epoch" | "promise" | "hasPromised">;
  /** While it hangs, saves wait; those that wait finish when it works again. */
  state: DiskState;
  /** The process ends. */
  crash(remains: Remains): void;
}

export function createModelDisk(pod: PodRef): ModelDisk {
  let content = "";
  let stream: Entry | "lost" | undefined;
  let state: DiskState = "works";
  let waiting: { readonly snapshot: Snapshot; readonly resolve: () => void }[] = [];
  return {
    file: {
      async load() {
        try {
          return content === "" ? undefined : storedFromJson(content, pod).snapshot;
        } catch {
          content = "";
          return undefined;
        }
      },
      willChange: () => undefined,
      async save(snapshot) {
        if (state === "fails") throw new MeshError("SNAPSHOT_FILE", "the disk is broken");
        if (state === "hangs") return new Promise((resolve) => waiting.push({ snapshot, resolve }));
        content = snapshotToJson(snapshot, pod);
      },
    },
    openStreams(now) {
      let promises = foundOnDisk(stream, now());
      const store = () => {
        const save = toSave(promises);
        if (save === undefined) return;
        const outcome = state === "works" ? "stored" : "refused";
        if (outcome === "stored") stream = save.entry;
        else if (save.onFullDisk === "empty") stream = "lost";
        promises = afterSave(promises, save.entry, outcome);
      };
      if (promises.onDisk !== undefined) store();
      return {
        hasPromised: promises.hasPromised,
        async next() {
          promises = withNextNumber(promises, now());
          store();
          return promises.lastNumber;
        },
        get epoch() {
          return promises.epoch;
        },
        async promise(epoch) {
          const next = withPromise(promises, epoch);
          if (next === undefined) return false;
          promises = next;
          store();
          return true;
        },
      };
    },
    get state() {
      return state;
    },
    set state(value) {
      state = value;
      if (value !== "works") return;
      for (const { snapshot, resolve } of waiting) {
        content = snapshotToJson(snapshot, pod);
        resolve();
      }
      waiting = [];
    },
    crash(remains) {
      const newest = waiting.at(-1);
      if (remains === "saved" && newest !== undefined) content = snapshotToJson(newest.snapshot, pod);
      if (remains === "torn") content = content.slice(0, content.length / 2);
      if (remains === "none") [content, stream] = ["", undefined];
      waiting = [];
      state = "works";
    },
  };
}
