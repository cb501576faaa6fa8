// The writes of the previous process that an API server may still carry out, and the marker of a process that
// ended without a write in flight. The kernel closes the connections of a killed process, but a stalled API
// server reads the bytes of a request before the end of its connection. Invariants: until these writes are
// over, the proxy acknowledges nothing, because the killed process may have allowed writes by a snapshot that
// it had not stored. The marker counts for one start of the same pod: the new process removes it before it
// lets a write through.
import { type Clock, sleep } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../wire/messages.ts";
import type { Slot } from "../state/state-folder.ts";

/**
 * Takes the marker of a clean end from the disk. True if the previous process of this pod wrote the marker.
 * @throws MeshError `CLEAN_END` if the marker cannot be removed: the next process would take this process for
 * cleanly ended
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
 * Writes the marker. If the marker cannot be written, the next process assumes that this one was killed. That
 * costs only time.
 */
export async function leaveCleanEnd(slot: Slot, pod: PodRef): Promise<void> {
  await slot.save(() => ({ text: () => markerOf(pod), onFullDisk: "keep" }));
}

function markerOf({ namespace, name, uid }: PodRef): string {
  return `${JSON.stringify([namespace, name, uid])}\n`;
}

/**
 * How long after a start the API server may still carry out a write of the previous process, in milliseconds.
 * An API server cancels a request as soon as it reads that the connection is closed. This is the assumed
 * bound of the time for which a live API server leaves a connection unread. The strict bound would be the API
 * server's request timeout, 60 s, but then each crash of a sidecar would delay every handover by that time.
 */
export const INHERITED_WRITES_MS = 10_000;

export interface InheritedWrites {
  /** True if no write of the previous process is left. */
  readonly isOver: boolean;
  /**
   * Resolves when no such write is left, or when the signal fires; undefined if no such write is left now.
   */
  outlast(): Promise<void> | undefined;
}

export const NO_INHERITED_WRITES: InheritedWrites = { isOver: true, outlast: () => undefined };

/**
 * The writes of a previous process that left no marker of a clean end. Called at the start of this process.
 */
export function createInheritedWrites(clock: Clock, signal: AbortSignal): InheritedWrites {
  const endMs = clock.monotonicMs() + INHERITED_WRITES_MS;
  const leftMs = () => endMs - clock.monotonicMs();
  return {
    get isOver() {
      return leftMs() <= 0;
    },
    outlast: () => (leftMs() <= 0 ? undefined : sleep(clock, leftMs(), signal).catch(() => undefined)),
  };
}
