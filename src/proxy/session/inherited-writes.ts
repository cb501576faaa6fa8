// The writes of the previous process that an API server may still carry out. The kernel closes the
// connections of a killed process, but a stalled API server reads the bytes of a request before the end of
// its connection. Invariant: until these writes are over the proxy acknowledges nothing, since the killed
// process may have let through more than it had stored. Called by the route handler.
import { type Clock, sleep } from "../../base/clock.ts";

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
