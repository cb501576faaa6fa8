// Whether this pod leads, told from the lock traffic that passes: it leads from its own successful write with a holder's
// name until a release, a failed renewal, or the sight of another holder. Called by the election layer.
import type { LeaderSink } from "../session/session.ts";

export interface LeaderTracker {
  /** A write succeeded. `sent` and `got` are the holders in the request and in the answer, undefined if they say nothing. */
  written(sent: string | undefined, got: string | undefined): void;
  /** A write failed, or the lock was deleted or is another one now. */
  lost(): void;
  /** The lock was read. */
  seen(holder: string | undefined): void;
}

export function createLeaderTracker(sink: LeaderSink): LeaderTracker {
  let own = "";
  return {
    written(sent, got) {
      if (sent !== undefined) own = sent;
      const holder = got ?? sent;
      if (holder !== undefined) sink.setLeader(own !== "" && holder === own);
    },
    lost: () => sink.setLeader(false),
    seen(holder) {
      if (holder !== undefined && holder !== own) sink.setLeader(false);
    },
  };
}
