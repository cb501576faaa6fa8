// The leader elector's states and its one transition function. Pure. Invariant: this process leads only in
// the state Leading and before its `untilMs`; the lease is released only after the leading work has ended.

export type LeaderState =
  /** Another process may hold the lease. This process tries to take the lease. */
  | { readonly kind: "contending" }
  /** The work runs, and the lease is renewed. `untilMs` is the deadline on the monotonic clock. */
  | { readonly kind: "leading"; readonly epoch: number; readonly untilMs: number }
  /** The lease was not renewed in time, or another process holds it. The work is ending. */
  | { readonly kind: "lost" }
  /** The work has ended. This process releases the lease. */
  | { readonly kind: "releasing" }
  /** Leading is over. This process waits, so that other contenders can take the lease first. */
  | { readonly kind: "resting" }
  | { readonly kind: "stopped" };

export type LeaderInput =
  /** The lease is in this process's name, until the deadline. */
  | { readonly kind: "held"; readonly epoch: number; readonly untilMs: number; readonly nowMs: number }
  /** The lease could not be taken or renewed. `isTaken`: another process holds it. */
  | { readonly kind: "not-held"; readonly isTaken: boolean; readonly nowMs: number }
  /** The work has ended. `isDrained`: no part of the work can still be running. */
  | { readonly kind: "work-ended"; readonly isDrained: boolean }
  | { readonly kind: "released" }
  | { readonly kind: "rested" }
  | { readonly kind: "stop" };

export const initialLeaderState: LeaderState = { kind: "contending" };

/** The next state. An input that does not belong to the state changes nothing. */
export function nextLeaderState(state: LeaderState, input: LeaderInput): LeaderState {
  switch (state.kind) {
    case "contending":
      // Contending => Leading when this process holds the lease
      if (input.kind === "held") return leading(input);
      // Contending => Stopped at a stop
      return input.kind === "stop" ? { kind: "stopped" } : state;
    case "leading":
      // Leading => Leading with a later deadline when the lease was renewed in time
      // Leading => Lost when the renewal came too late, even if it succeeded
      if (input.kind === "held") return input.nowMs < state.untilMs ? leading(input) : { kind: "lost" };
      // Leading => Lost when another process holds the lease or the deadline has passed
      if (input.kind === "not-held") return input.isTaken || input.nowMs >= state.untilMs ? { kind: "lost" } : state;
      // Leading => Releasing when the work has ended; => Resting if a part may still run: the lease must expire
      if (input.kind === "work-ended") return input.isDrained ? { kind: "releasing" } : { kind: "resting" };
      // A stop ends the work first.
      return state;
    case "lost":
      // Lost => Resting when the work has ended
      return input.kind === "work-ended" ? { kind: "resting" } : state;
    case "releasing":
      // Releasing => Resting when the lease is released
      return input.kind === "released" ? { kind: "resting" } : state;
    case "resting":
      // Resting => Contending after a while; => Stopped at a stop
      if (input.kind === "rested") return { kind: "contending" };
      return input.kind === "stop" ? { kind: "stopped" } : state;
    case "stopped":
      return state;
    default:
      return state satisfies never;
  }
}

function leading({ epoch, untilMs }: LeaderInput & { readonly kind: "held" }): LeaderState {
  return { kind: "leading", epoch, untilMs };
}
