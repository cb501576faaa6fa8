// The locks in a watch or list as their subset may see them: its own under the operator's name, other subsets' not at all. Invariant: only
// objects in the lock's namespace are renamed, and an unreadable object is not shown. Called by the election layer.
import { createListFilter } from "../../kube/codec/list-filter.ts";
import { elementRenamer, type Rename, renameFrame } from "../../kube/codec/rename.ts";
import type { Encoding, Keep } from "../../kube/codec/types.ts";
import { filterTableFrame, readFrame } from "../../kube/codec/watch-frames.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import { frameStream } from "./frame-stream.ts";
import { listStream } from "./list-stream.ts";

export interface LockView {
  /** False for another subset's lock; asked with names upstream. */
  readonly keep: Keep;
  /** How the subset's own lock is shown; undefined if it has its own name. */
  readonly rename: Rename | undefined;
  /** The lock's namespace: elsewhere an object may have its name by right. */
  readonly namespace: string;
}

/** A watch with the locks renamed and hidden. */
export function renameWatch(source: ByteSource, encoding: Encoding, { keep, rename, namespace }: LockView): ByteSource {
  const show = (frame: Uint8Array, isOwn: boolean) =>
    rename !== undefined && isOwn ? renameFrame(encoding, frame, rename) : frame;
  let isFirst = true;
  return frameStream(source, encoding, (frame) => {
    // Of a Table only the first event says what the columns are.
    const carriesColumns = isFirst;
    isFirst = false;
    const { type, objects, unreadable, isTable } = readFrame(encoding, frame);
    if (type === "ERROR") return show(frame, true);
    if (type === "BOOKMARK") return frame;
    const kept = objects.filter(keep);
    // An event is of one object, also as a Table.
    const isOwn = kept.every((meta) => meta.namespace === namespace);
    if (kept.length === objects.length && unreadable === 0) return show(frame, isOwn);
    return isTable && (kept.length > 0 || carriesColumns) ? show(filterTableFrame(frame, keep), isOwn) : undefined;
  });
}

/** A list with the locks renamed and hidden, whatever its size. */
export function renameList(source: ByteSource, encoding: Encoding, { keep, rename, namespace }: LockView): ByteSource {
  if (rename === undefined) return listStream(source, createListFilter(encoding, keep), () => undefined);
  const renamed = elementRenamer(encoding, rename);
  const filter = createListFilter(encoding, keep, {
    rewrite: (element, meta, part) => (meta.namespace === namespace ? renamed(element, meta, part) : element),
  });
  return listStream(source, filter, () => undefined);
}
