// Whether stdout is a terminal whose screen may be cleared.
import type { Screen } from "./output.ts";

interface Stream {
  readonly isTTY?: boolean;
  readonly rows?: number;
  readonly columns?: number;
}

/** @param env a terminal with NO_COLOR, or with TERM=dumb, is written to as a file is */
export function screenOf(stream: Stream, env: Readonly<Record<string, string | undefined>>): () => Screen | undefined {
  const isPlain = (env.NO_COLOR ?? "") !== "" || env.TERM === "dumb" || stream.isTTY !== true;
  // A terminal that does not know its size says 0.
  return () => (isPlain ? undefined : { rows: stream.rows || 24, columns: stream.columns || 80 });
}
