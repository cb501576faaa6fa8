// The marker of a process that ended without a write in flight. Invariant: the marker counts for one start of
// the same pod: the new process removes it before it lets a write through.
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import type { Slot } from "../state/state-folder.ts";

/**
 * True if the previous process of this pod wrote the marker.
 * @throws MeshError `CLEAN_END` if the marker cannot be removed: the next process would believe it
 */
export async function takeCleanEnd(slot: Slot, pod: PodRef, log: Logger): Promise<boolean> {
  const text = await slot.read().catch((error: unknown) => {
    log.warn({ err: error, path: slot.path }, "marker of a clean end ignored and removed");
    return "";
  });
  if (text === undefined) return false;
  await slot.remove().catch((cause: unknown) => {
    throw new MeshError("CLEAN_END", "removing the marker of a clean end", { cause });
  });
  return text === markerOf(pod);
}

/** If the marker cannot be written, the next process takes this one for killed. That costs only time. */
export async function leaveCleanEnd(slot: Slot, pod: PodRef): Promise<void> {
  await slot.save(() => ({ text: () => markerOf(pod), onFullDisk: "keep" }));
}

function markerOf({ namespace, name, uid }: PodRef): string {
  return `${JSON.stringify([namespace, name, uid])}\n`;
}
