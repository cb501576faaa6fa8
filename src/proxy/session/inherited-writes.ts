// The writes of the previous process that an API server may still carry out, and the marker of a process that
// ended with none in flight. The kernel closes the connections of a killed process, but a stalled API server
// reads the bytes of a request before the end of its connection. Invariants: until these writes are over the
// proxy acknowledges nothing, since the killed process may have let through more than it had stored; the
// marker counts for one start of the same pod, and is removed before that process lets a first write through.
import { type Clock, sleep } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../wire/messages.ts";
import type { Slot } from "../state/state-folder.ts";

/**
 * Takes the marker of a clean end from the disk. True if the previous process of this pod has left it.
 * @throws MeshError `CLEAN_END` if it cannot be removed: the next process would believe it of this one
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

/**
 * Writes the marker. If it cannot be written, the next process takes this one for killed, which costs only
 * time.
 */
export async function leaveCleanEnd(slot: Slot, pod: PodRef): Promise<void> {
  await slot.save(() => ({ text: () => markerOf(pod), onFullDisk: "keep" }));
}

function markerOf({ namespace, name, uid }: PodRef): string {
  return `${JSON.stringify([namespace, name, uid])}\n`;
}

/**
 * How long after a start a write of the process before may still be carried out, in milliseconds. An API
 * server cancels a request whose connection is gone as soon as it reads that; this bounds how long one that
 * lives leaves a connection unread. The strict bound would be its timeout of a request, 60 s, for which each
 * crash of a sidecar would then hold up every handover.
 */
export const INHERITED_WRITES_MS = 10_000;

export interface InheritedWrites {
  /** None is left. */
  readonly isOver: boolean;
  /** Resolves when none is left, or the signal fires; undefined if there is none now. */
  outlast(): Promise<void> | undefined;
}

export const NO_INHERITED_WRITES: InheritedWrites = { isOver: true, outlast: () => undefined };

/** Those of a process that has not said that it ended cleanly; to be made at the start of this one. */
export function createInheritedWrites(clock: Clock, signal: AbortSignal): InheritedWrites {
  const overMs = clock.monotonicMs() + INHERITED_WRITES_MS;
  const leftMs = () => overMs - clock.monotonicMs();
  return {
    get isOver() {
      return leftMs() <= 0;
    },
    outlast: () => (leftMs() <= 0 ? undefined : sleep(clock, leftMs(), signal).catch(() => undefined)),
  };
}
