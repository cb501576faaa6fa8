// What the shapes of the map mean.
import { type CellState, SHAPES, STATES } from "./shapes.ts";

const MEANINGS: Readonly<Record<CellState, string>> = {
  owned: "owned",
  frozen: "frozen by a person",
  arriving: "moves here, may not write yet",
  leaving: "moves away, may still write",
  fenced: "fenced, nobody may write yet",
  unowned: "nobody may write",
};

export function Legend() {
  return (
    <ul class="legend" aria-label="Legend">
      {STATES.map((state) => (
        <li key={state}>
          <svg width="14" height="14" aria-hidden="true">
            <path class={state} d={`M0 0${SHAPES[state]}`} />
          </svg>
          {MEANINGS[state]}
        </li>
      ))}
    </ul>
  );
}
