// The states of a breaker and the one function that changes them. Pure.

/** The bucket ran out, or requests failed. */
export type OpenCause = "rate" | "failures";

/** What a restart and an edit keep of a breaker that is not closed. */
export interface Opened {
  /** In milliseconds since the epoch. */
  readonly sinceMs: number;
  readonly cause: OpenCause;
  /** The cause with its figure, for people: a sentence without a full stop. */
  readonly figure: string;
  /** Another `recovery` of the rule closes the breaker. */
  readonly recovery: string;
}

export type BreakerState =
  | { readonly kind: "closed" }
  | ({ readonly kind: "open" } & Opened)
  /** The time of the breaker is over: a few requests at a time test the server. */
  | ({ readonly kind: "half-open"; readonly halfOpenMs: number } & Opened);

export type BreakerEvent =
  | ({ readonly kind: "tripped" } & Opened)
  | { readonly kind: "elapsed"; readonly nowMs: number }
  | { readonly kind: "prolonged" }
  | { readonly kind: "tested" }
  | { readonly kind: "recovered"; readonly recovery: string };

export const CLOSED: BreakerState = { kind: "closed" };

export function nextBreakerState(state: BreakerState, event: BreakerEvent): BreakerState {
  switch (event.kind) {
    case "tripped": // closed, half-open => open     the bucket ran out, or too many requests failed
      return state.kind === "open" ? state : { ...event, kind: "open" };
    case "elapsed": // open => half-open             its time is over
      return state.kind === "open" ? { ...state, kind: "half-open", halfOpenMs: event.nowMs } : state;
    case "prolonged": // half-open => open           an edit has made its time longer
      return state.kind === "half-open" ? reopened(state) : state;
    case "tested": // half-open => closed            enough requests have passed the test
      return state.kind === "half-open" ? CLOSED : state;
    case "recovered": // open, half-open => closed   a person has asked for it. "": nobody asks
      if (state.kind === "closed" || event.recovery === "" || state.recovery === event.recovery) return state;
      return CLOSED;
    default:
      return event satisfies never;
  }
}

function reopened({ sinceMs, cause, figure, recovery }: Opened): BreakerState {
  return { kind: "open", sinceMs, cause, figure, recovery };
}

/** Undefined for a closed breaker. */
export function openedOf(state: BreakerState): Opened | undefined {
  if (state.kind === "closed") return undefined;
  const { sinceMs, cause, figure, recovery } = state;
  return { sinceMs, cause, figure, recovery };
}
