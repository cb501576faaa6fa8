// How a half-open breaker comes back: 1 request at a time tests the server, then 2, 4 and 8. Invariants: never
// more than that are under way at a time; a request without an outcome holds its place for a minute at most.
import { SILENT_MS } from "./limiter.ts";

/** After a round of so many requests at a time the breaker closes. */
export const MAX_WIDTH = 8;

export function createRamp() {
  let width = 1;
  /** How many requests of this round have passed. */
  let passed = 0;
  /** When the requests under way have begun. */
  let begun: number[] = [];
  return {
    get width(): number {
      return width;
    },
    get underWay(): number {
      return begun.length;
    },
    isFull(nowMs: number): boolean {
      if (begun.length < width) return false;
      begun = begun.filter((atMs) => nowMs - atMs < SILENT_MS);
      return begun.length >= width;
    },
    begin(nowMs: number): void {
      begun.push(nowMs);
    },
    /** The request that began at this time is over. */
    end(begunMs: number): void {
      const at = begun.indexOf(begunMs);
      if (at >= 0) begun.splice(at, 1);
    },
    /** Counts a request that has passed the test. Returns true after the last round. */
    pass(): boolean {
      passed++;
      if (passed < width) return false;
      passed = 0;
      width *= 2;
      return width > MAX_WIDTH;
    },
  };
}
