// The cells of a band: a few as a list with their names, many as one drawing with a path for each state, so that thousands cost little. A
// reader goes over the drawing with the pointer or the arrow keys, and the name of the cell stands below it.
import { useMemo, useState } from "preact/hooks";
import { type Band, type Cell, cellText } from "../model/bands.ts";
import { useWidth } from "./hooks.ts";
import { PITCH, pathOf, SIGNS, STATES } from "./shapes.ts";

const MAX_NAMED = 36;
/** How long a place is marked as just moved. */
const FRESH_MS = 4_000;

interface Props {
  readonly band: Band;
  readonly nowMs: number;
}

export function BandCells({ band, nowMs }: Props) {
  if (band.cells.length === 0) return <p class="none">none</p>;
  return band.cells.length > MAX_NAMED ? <DrawnCells band={band} nowMs={nowMs} /> : <NamedCells band={band} nowMs={nowMs} />;
}

function isFresh({ state, sinceMs }: Cell, nowMs: number): boolean {
  return state === "owned" && nowMs - sinceMs < FRESH_MS;
}

function NamedCells({ band: { cells }, nowMs }: Props) {
  return (
    <ul class="named">
      {cells.map((cell) => (
        <li key={cell.place} class={isFresh(cell, nowMs) ? `${cell.state} fresh` : cell.state} title={cellText(cell)}>
          {SIGNS[cell.state] !== "" && <span aria-hidden="true">{SIGNS[cell.state]} </span>}
          {cell.place}
          {cell.state !== "owned" && <span class="unseen">{cellText(cell).slice(cell.place.length)}</span>}
        </li>
      ))}
    </ul>
  );
}

function DrawnCells({ band: { name, cells, moving }, nowMs }: Props) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [cursor, setCursor] = useState<number>();
  const columns = Math.max(1, Math.floor(width / PITCH));
  const height = Math.ceil(cells.length / columns) * PITCH;
  const drawing = useMemo(
    () => STATES.map((state) => <path key={state} class={state} d={pathOf(cells, columns, state)} />),
    [cells, columns],
  );
  const fresh = [...cells.keys()].filter((each) => isFresh(cells[each] as Cell, nowMs));
  const at = cursor === undefined ? undefined : Math.min(cursor, cells.length - 1);
  const cell = at === undefined ? undefined : cells[at];
  const id = `cell of ${name}`.replaceAll(" ", "-");
  return (
    <>
      <div
        ref={ref}
        class="drawn"
        role="listbox"
        tabIndex={0}
        aria-label={`Places of ${name}: ${cells.length}, ${moving} moving`}
        aria-activedescendant={cell === undefined ? undefined : id}
        onFocus={() => setCursor(at ?? 0)}
        onBlur={() => setCursor(undefined)}
        onKeyDown={(event) => {
          const next = nextAt(event.key, at ?? 0, columns, cells.length);
          if (next === undefined) return;
          event.preventDefault();
          setCursor(next);
        }}
        onPointerMove={({ offsetX, offsetY }) => {
          const [column, row] = [Math.floor(offsetX / PITCH), Math.floor(offsetY / PITCH)];
          const under = row * columns + column;
          setCursor(column < columns && under >= 0 && under < cells.length ? under : undefined);
        }}
        onPointerLeave={() => setCursor(undefined)}
      >
        {width > 0 && (
          <svg width={columns * PITCH} height={height} aria-hidden="true">
            {drawing}
            <path class="fresh" d={ringsOf(fresh, columns)} />
            {at !== undefined && <path class="cursor" d={ringsOf([at], columns)} />}
          </svg>
        )}
        <span
          id={id}
          class="unseen"
          role="option"
          tabIndex={-1}
          aria-selected={cell !== undefined}
          aria-posinset={(at ?? 0) + 1}
          aria-setsize={cells.length}
        >
          {cellText(cell ?? (cells[0] as Cell))}
        </span>
      </div>
      <p class="detail">{cell === undefined ? "Point at a cell, or use the arrow keys." : cellText(cell)}</p>
    </>
  );
}

function ringsOf(indices: readonly number[], columns: number): string {
  return indices.map((at) => `M${(at % columns) * PITCH} ${Math.floor(at / columns) * PITCH}h14v14h-14z`).join("");
}

/** Undefined for a key that moves nothing. */
function nextAt(key: string, at: number, columns: number, count: number): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
    Home: -count,
    End: count,
  };
  const step = steps[key];
  return step === undefined ? undefined : Math.max(0, Math.min(count - 1, at + step));
}
