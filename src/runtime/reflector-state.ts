// The reflector's states and its one transition function. Pure. Invariant: a watch begins only at a version
// whose earlier changes are all in the store; in doubt the next state is a list.

/** `failures` counts failures in a row, for the backoff. */
type AskingState =
  | { readonly kind: "listing"; readonly failures: number }
  | { readonly kind: "watching"; readonly resourceVersion: string; readonly failures: number };

export type ReflectorState =
  | AskingState
  | {
      readonly kind: "waiting";
      readonly failures: number;
      /** The server has asked for at least this wait. */
      readonly retryAfterMs?: number | undefined;
      readonly next: AskingState;
    }
  | { readonly kind: "stopped" };

export type ReflectorInput =
  | { readonly kind: "listed"; readonly resourceVersion: string }
  | { readonly kind: "list-failed" }
  | {
      readonly kind: "watch-ended";
      readonly resourceVersion: string;
      readonly healthy: boolean;
      readonly clean: boolean;
      readonly retryAfterMs?: number | undefined;
    }
  | { readonly kind: "watch-expired"; readonly healthy: boolean }
  | { readonly kind: "waited" }
  | { readonly kind: "stop" };

export const initialReflectorState: ReflectorState = { kind: "listing", failures: 0 };

/** The next state. An input that does not belong to the state changes nothing. */
export function nextReflectorState(state: ReflectorState, input: ReflectorInput): ReflectorState {
  switch (input.kind) {
    // Any state => Stopped. A stopped reflector never runs again.
    case "stop":
      return { kind: "stopped" };
    // Listing => Watching from the list's version. Only a working watch resets the failures: otherwise a server
    // that expires every watch would be listed in a tight loop.
    case "listed":
      return state.kind === "listing"
        ? { kind: "watching", resourceVersion: input.resourceVersion, failures: state.failures }
        : state;
    // Listing => Waiting, then Listing
    case "list-failed":
      return state.kind === "listing" ? wait({ kind: "listing", failures: state.failures + 1 }) : state;
    // Watching => Watching from the last version when the stream has ended in order; => Waiting first when it
    // broke, or ended immediately
    case "watch-ended": {
      if (state.kind !== "watching") return state;
      const failures = (input.healthy ? 0 : state.failures) + (input.clean && input.healthy ? 0 : 1);
      const then = { kind: "watching", resourceVersion: input.resourceVersion, failures } as const;
      return failures === 0 ? then : wait(then, input.retryAfterMs);
    }
    // Watching => Listing when the version has expired (410): immediately if the watch had worked, otherwise
    // after a wait
    case "watch-expired": {
      if (state.kind !== "watching") return state;
      if (input.healthy) return { kind: "listing", failures: 0 };
      const then = { kind: "listing", failures: state.failures + 1 } as const;
      return state.failures === 0 ? then : wait(then);
    }
    // Waiting => the state that it delays
    case "waited":
      return state.kind === "waiting" ? state.next : state;
    default:
      return input satisfies never;
  }
}

function wait(next: AskingState, retryAfterMs?: number): ReflectorState {
  return { kind: "waiting", failures: next.failures, retryAfterMs, next };
}
