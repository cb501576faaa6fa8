// Decides whether this replica listens to a caller. Invariants: nothing that the caller sends is read before it is known to be in the
// mesh, since reading costs memory. While nobody leads, it waits here rather than come back hundreds of times a second.
import { MAX_WAIT_MS, type ProxyVerdict, type StreamStatus } from "../../mesh/link/manager-stream.ts";
import type { PodIdentity, TokenVerdict } from "../identity/token-reviewer.ts";
import type { JudgeProxy } from "./judge-proxy.ts";

interface AdmitOptions {
  readonly identify: () => Promise<TokenVerdict> | undefined;
  readonly judge: JudgeProxy;
  readonly leaderElsewhere: () => string | undefined;
  /** Resolves after `LOOK_MS`. */
  readonly pause: () => Promise<void>;
  readonly isOver: () => boolean;
  /** The caller is undefined if nobody proves anything. */
  readonly listen: (caller: PodIdentity | undefined) => void;
  readonly turnAway: (verdict: Exclude<ProxyVerdict, { kind: "serve" }>) => void;
  readonly end: (reason: string, status: StreamStatus) => void;
}

/** How often a waiting stream looks whether it can go on. */
export const LOOK_MS = 100;

/** Calls one of `listen`, `turnAway` and `end`, or none if the stream is over before. */
export async function admitCaller(options: AdmitOptions): Promise<void> {
  const { identify, judge, leaderElsewhere, pause, isOver, listen, turnAway, end } = options;
  let identifying: Promise<TokenVerdict> | undefined;
  for (let waitedMs = 0; !isOver(); waitedMs += LOOK_MS) {
    const mayWait = waitedMs < MAX_WAIT_MS;
    const endpoint = leaderElsewhere();
    if (endpoint !== undefined && (endpoint !== "" || !mayWait)) return turnAway({ kind: "redirect", endpoint });
    // While nobody leads too: the caller must be known if this replica becomes the leader.
    identifying ??= identify();
    identifying?.catch(() => undefined); // a failure counts only when it is awaited
    if (endpoint === undefined) {
      if (identifying === undefined) return listen(undefined);
      const token = await identifying;
      if (isOver()) return;
      if (token.kind === "wait") return end(token.message, "UNAVAILABLE");
      if (token.kind === "refuse") return end(token.message, "UNAUTHENTICATED");
      const verdict = judge(undefined, token.pod);
      if (verdict.kind === "serve") return listen(token.pod);
      if (verdict.kind !== "wait" || !mayWait) return turnAway(verdict);
    }
    await pause();
  }
}
