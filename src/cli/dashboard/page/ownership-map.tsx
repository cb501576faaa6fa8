// The ownership map of an app: a band for each subset, and a filter. Beside it the same as a table.
import { useMemo, useState } from "preact/hooks";
import { age } from "../../apps/ages.ts";
import { counted } from "../../frame/output.ts";
import { type Band, bandsOf, cellText, isMoving, NOBODY } from "../model/bands.ts";
import type { AppPart, SlicePart } from "../model/parts.ts";
import { BandCells } from "./band-cells.tsx";
import { ChooseApp, titleOf, useChosenApp } from "./choose-app.tsx";
import { useSame } from "./hooks.ts";
import { Legend } from "./legend.tsx";
import type { ViewProps } from "./view-props.ts";

/** With more cells, a band takes the whole width. */
const WIDE_CELLS = 120;
const MAX_ROWS = 200;

export function OwnershipMap({ apps, slices, nowMs, place, choose }: ViewProps) {
  const app = useChosenApp(apps, place.app);
  const title = app === undefined ? "" : titleOf(app);
  const own = useSame(slices.filter((slice) => slice.app === title));
  const find = place.find.trim().toLowerCase();
  const bands = useMemo(() => bandsOf(own, app?.subsets.map(({ name }) => name) ?? [], find), [own, app?.subsets, find]);
  const sum = useMemo(() => sumOf(bands), [bands]);
  if (app === undefined) return <p class="empty">There is no app here.</p>;
  return (
    <>
      <div class="choices">
        <ChooseApp apps={apps} value={title} choose={choose} />
        <label>
          Find{" "}
          <input
            type="search"
            value={place.find}
            placeholder="part of a name"
            onInput={({ currentTarget }) => choose({ find: currentTarget.value })}
          />
        </label>
        <p class="sum">{sum}</p>
      </div>
      <Legend />
      {own.length === 0 ? <NoSlices /> : <Bands bands={bands} app={app} nowMs={nowMs} />}
      <Unread slices={own} />
      {own.length > 0 && <PlaceTable bands={bands} nowMs={nowMs} />}
    </>
  );
}

/** A place that moves is in two bands. */
function sumOf(bands: readonly Band[]): string {
  const places = new Set<string>();
  const moving = new Set<string>();
  for (const { cells } of bands) {
    for (const cell of cells) {
      places.add(cell.place);
      if (isMoving(cell)) moving.add(cell.place);
    }
  }
  return `${counted(places.size, "place")}, ${moving.size === 0 ? "none moves" : `${moving.size} moving`}`;
}

function NoSlices() {
  return (
    <p class="empty">
      The manager has published no owners of this app. It does so a second after the first routes, unless it has
      --ownership-slices=false.
    </p>
  );
}

function Unread({ slices }: { readonly slices: readonly SlicePart[] }) {
  const count = slices.reduce((sum, { unread }) => sum + unread, 0);
  return count === 0 ? null : (
    <p class="empty">{counted(count, "place")} more not shown: too many, or written by another version.</p>
  );
}

interface BandsProps {
  readonly bands: readonly Band[];
  readonly app: AppPart;
  readonly nowMs: number;
}

function Bands({ bands, app, nowMs }: BandsProps) {
  return (
    <div class="bands">
      {bands.map((band) => (
        <section key={band.name} class={band.cells.length > WIDE_CELLS ? "band wide" : "band"} aria-label={`owner ${band.name}`}>
          <h3>{band.name === NOBODY ? "nobody" : band.name}</h3>
          <p class="facts">{bandFacts(band, app)}</p>
          <BandCells band={band} nowMs={nowMs} />
        </section>
      ))}
    </div>
  );
}

function bandFacts({ name, cells, moving }: Band, { subsets }: AppPart): string {
  const size = `${counted(cells.length, "place")}${moving === 0 ? "" : `, ${moving} moving`}`;
  const subset = subsets.find((each) => each.name === name);
  if (subset === undefined) return size;
  const { readyPods, pods, leader, lock } = subset;
  const ready = `${readyPods}${pods === undefined ? "" : ` of ${pods}`} pods ready`;
  return [size, ready, lock === undefined ? "" : `leader ${leader ?? "none"}`].filter((text) => text !== "").join(" · ");
}

interface TableProps {
  readonly bands: readonly Band[];
  readonly nowMs: number;
}

/** Made only while it is open. */
function PlaceTable({ bands, nowMs }: TableProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>The same as a table</summary>
      {isOpen && <Rows bands={bands} nowMs={nowMs} />}
    </details>
  );
}

function Rows({ bands, nowMs }: TableProps) {
  const rows = useMemo(() => {
    const all = bands.flatMap(({ name, cells }) => cells.map((cell) => ({ band: name, cell })));
    return all.sort((a, b) => Number(isMoving(b.cell)) - Number(isMoving(a.cell)) || (a.cell.place < b.cell.place ? -1 : 1));
  }, [bands]);
  return (
    <>
      <table class="stacked">
        <thead>
          <tr>
            <th scope="col">Place</th>
            <th scope="col">Subset</th>
            <th scope="col">State</th>
            <th scope="col">Since</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MAX_ROWS).map(({ band, cell }) => (
            <tr key={`${band} ${cell.place}`}>
              <td data-label="Place">{cell.place}</td>
              <td data-label="Subset">{band}</td>
              <td data-label="State">{cellText(cell).slice(cell.place.length + 2)}</td>
              <td data-label="Since" class="since">
                {age(cell.since, nowMs)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > MAX_ROWS && <p>{rows.length - MAX_ROWS} more: find a part of the name.</p>}
    </>
  );
}
