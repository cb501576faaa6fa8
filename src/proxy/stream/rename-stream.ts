// The locks of a watch or list as their subset may see them: its own under the operator's name, others not at all.
// Invariant: what cannot be read is not shown. Called by the election layer, on what the isolate layer has left.
import { createListFilter } from "../../kube/codec/list-filter.ts";
import { elementRenamer, type Rename, renameFrame } from "../../kube/codec/rename.ts";
import type { Encoding, Keep } from "../../kube/codec/types.ts";
import { filterTableFrame, readFrame } from "../../kube/codec/watch-frames.ts";
import type { ByteSource } from "../pipeline/byte-stream.ts";
import { frameStream } from "./frame-stream.ts";
import { listStream } from "./list-stream.ts";

export interface LockView {
  /** False for another subset's lock; asked with names upstream. */
  readonly keep: Keep;
  /** How the subset's own lock is shown; undefined if it has its own name. */
  readonly rename: Rename | undefined;
}

/** A watch with the locks renamed and hidden. */
export function renameWatch(source: ByteSource, encoding: Encoding, { keep, rename }: LockView): ByteSource {
  const show = (frame: Uint8Array) => (rename === undefined ? frame : renameFrame(encoding, frame, rename));
  let isFirst = true;
  return frameStream(source, encoding, (frame) => {
    // Of a Table only the first event says what the columns are.
    const carriesColumns = isFirst;
    isFirst = false;
    const { type, objects, unreadable, isTable } = readFrame(encoding, frame);
    if (type === "BOOKMARK" || type === "ERROR") return show(frame);
    const kept = objects.filter(keep).length;
    if (kept === objects.length && unreadable === 0) return show(frame);
    return isTable && (kept > 0 || carriesColumns) ? show(filterTableFrame(frame, keep)) : undefined;
  });
}

/** A list with the locks renamed and hidden, whatever its size. */
export function renameList(source: ByteSource, encoding: Encoding, { keep, rename }: LockView): ByteSource {
  const options = rename === undefined ? {} : { rewrite: elementRenamer(encoding, rename) };
  return listStream(source, createListFilter(encoding, keep, options), () => undefined);
}
