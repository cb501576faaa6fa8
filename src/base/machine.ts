// Runs a state machine: a pure function of (state, event) that gives the next state and its effects.
// Invariant: the effects of an event are carried out in their order, and before the next event, also when
// carrying one out brings an event.

export interface Machine<State, Event> {
  readonly state: State;
  enter(event: Event): void;
}

export interface Transition<State, Effect> {
  readonly state: State;
  readonly effects: readonly Effect[];
}

/**
 * An error of `step` or `carryOut` is thrown, and ends the machine: each later `enter` throws it again. Otherwise
 * the state would be ahead of what was carried out.
 */
export function runMachine<State, Event, Effect>(
  initial: State,
  step: (state: State, event: Event) => Transition<State, Effect>,
  carryOut: (effect: Effect) => void,
): Machine<State, Event> {
  let state = initial;
  const waiting: Event[] = [];
  let isRunning = false;
  let failure: { readonly error: unknown } | undefined;
  return {
    get state() {
      return state;
    },
    enter(event) {
      if (failure !== undefined) throw failure.error;
      waiting.push(event);
      if (isRunning) return;
      isRunning = true;
      try {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          const transition = step(state, next);
          state = transition.state;
          for (const effect of transition.effects) carryOut(effect);
        }
      } catch (error) {
        failure = { error };
        throw error;
      } finally {
        isRunning = false;
      }
    },
  };
}
