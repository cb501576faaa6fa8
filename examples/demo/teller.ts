// Tells the story of an act: numbered steps, and sentences within them.
import type { Screen } from "./screen.ts";
import { noteLines, stepLines } from "./table.ts";

export interface Teller {
  /** Announces the next step. */
  step(text: string): void;
  note(text: string): void;
}

export function createTeller({ say, paint, width }: Screen, steps: number): Teller {
  let number = 0;
  return {
    step: (text) => say(stepLines(++number, steps, text, paint)),
    note: (text) => say(noteLines(text, width)),
  };
}

/** "1.4 s" */
export function since(startedAt: number): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
