// What each view gets.
import type { AppPart, PolicyPart, SlicePart } from "../model/parts.ts";
import type { WaitingItem } from "../model/waiting.ts";
import type { Place } from "./place.ts";

export interface ViewProps {
  readonly apps: readonly AppPart[];
  readonly slices: readonly SlicePart[];
  readonly policies: readonly PolicyPart[];
  readonly waiting: readonly WaitingItem[];
  readonly nowMs: number;
  readonly place: Place;
  readonly access: readonly string[];
  choose(changes: Partial<Place>): void;
}
