// The states of a breaker and the one function that changes them. Pure.

/** The bucket ran out, or requests failed. */
export type OpenCause = "rate" | "failures";

interface Opened {
  /** In milliseconds since the epoch. */
  readonly sinceMs: number;
  readonly cause: OpenCause;
  /** Another `recovery` of the rule closes the breaker. */
  readonly recovery: string;
}

export type BreakerState =
  | { readonly kind: "closed" }
  | ({ readonly kind: "open" } & Opened)
  /** Half open: the outcome of one request decides. */
  | ({ readonly kind: "probing" } & Opened);

export type BreakerEvent =
  | { readonly kind: "tripped"; readonly cause: OpenCause; readonly nowMs: number; readonly recovery: string }
  | { readonly kind: "probe" }
  | { readonly kind: "probe-passed" }
  | { readonly kind: "probe-failed"; readonly nowMs: number }
  | { readonly kind: "probe-lost" }
  | { readonly kind: "recovered"; readonly recovery: string };

export const CLOSED: BreakerState = { kind: "closed" };

export function nextBreakerState(state: BreakerState, event: BreakerEvent): BreakerState {
  switch (event.kind) {
    case "tripped": // closed => open       the bucket ran out, or too many requests failed
      if (state.kind !== "closed") return state;
      return { kind: "open", sinceMs: event.nowMs, cause: event.cause, recovery: event.recovery };
    case "probe": // open => probing         the time is over, and a request may try
      return state.kind === "open" ? { ...state, kind: "probing" } : state;
    case "probe-passed": // probing => closed  it was answered
      return state.kind === "probing" ? CLOSED : state;
    case "probe-failed": // probing => open    it failed: the time starts again
      return state.kind === "probing" ? { ...state, kind: "open", sinceMs: event.nowMs } : state;
    case "probe-lost": // probing => open      its client left: the next request may try
      return state.kind === "probing" ? { ...state, kind: "open" } : state;
    case "recovered": // open, probing => closed a person has asked for it
      return state.kind === "closed" || state.recovery === event.recovery ? state : CLOSED;
    default:
      return event satisfies never;
  }
}
