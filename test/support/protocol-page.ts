// The tables of docs/protocol/README.md: the flags of each run of Spin, and what it found.
import { readFileSync } from "node:fs";

export interface ProtocolRun {
  readonly text: string;
  readonly flags: readonly string[];
  readonly states: number;
}

/** A row with the flags in backticks, and the number of states after them. */
const ROW = /^\| [^|]+ \| `(-D[^`]+)` +\| ([\d,]+) +\|/gm;

const runs: readonly ProtocolRun[] = [...readFileSync("docs/protocol/README.md", "utf8").matchAll(ROW)].map(
  ([, text = "", states = ""]) => ({ text, flags: text.split(" "), states: Number(states.replaceAll(",", "")) }),
);
const isMutant = ({ flags }: ProtocolRun) => flags.some((flag) => flag.startsWith("-DMUTANT="));

/** The configurations in which the protocol holds. */
export const HOLDS = runs.filter((run) => !isMutant(run));
/** Each leaves out one rule. */
export const MUTANTS = runs.filter(isMutant);
