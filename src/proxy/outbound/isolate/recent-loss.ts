// Delays the refusal of a write that comes right after a change of the routes. Its operator may not know yet
// that it has lost the namespace, and would repeat the write every few milliseconds until its informers
// have got the change.
import type { Clock } from "../../../base/clock.ts";
import type { Session } from "../../session/session.ts";

export interface RecentLoss {
  /** Resolves when informers have been sent the last change. False if there was nothing to wait for. */
  outlast(): Promise<boolean>;
}

/** Telling informers of a loss takes a fraction of this time. */
const TOLD_MS = 500;

export function createRecentLoss(session: Pick<Session, "onChange">, clock: Clock): RecentLoss {
  let changedAtMs = Number.NEGATIVE_INFINITY;
  session.onChange((_, before) => {
    if (before !== undefined) changedAtMs = clock.monotonicMs();
  });
  return {
    async outlast() {
      const leftMs = changedAtMs + TOLD_MS - clock.monotonicMs();
      if (leftMs <= 0) return false;
      await new Promise<void>((resolve) => clock.after(leftMs, resolve));
      return true;
    },
  };
}
