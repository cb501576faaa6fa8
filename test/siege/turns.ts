// Which attacks run in which window of a siege, and at which sidecar. Pure. Invariants: both sidecars of a pair of windows meet the same attacks; every
// second pair has a half of them, so that attacks which take all connections do not keep the others away for the whole siege; two halves that follow
// each other hold all of them.
import type { Attack } from "./attack.ts";

export interface Turn {
  readonly attacks: readonly Attack[];
  /** The other sidecar is attacked in the other window of the pair. */
  readonly at: "measured" | "decoy";
}

export function turnsOf(attacks: readonly Attack[], random: () => number): () => Turn {
  const pairs = pairsOf(attacks, random);
  let chosen = attacks;
  let at: Turn["at"] = "decoy";
  return () => {
    at = at === "decoy" ? "measured" : "decoy";
    if (at === "measured") chosen = pairs.next().value;
    return { attacks: chosen, at };
  };
}

function* pairsOf(attacks: readonly Attack[], random: () => number): Generator<readonly Attack[], never> {
  const sides = [...Map.groupBy(attacks, ({ on }) => on).values()];
  for (;;) {
    const shuffled = sides.map((side) => shuffle(side, random));
    yield attacks;
    yield shuffled.flatMap((side) => side.slice(0, half(side)));
    yield attacks;
    yield shuffled.flatMap((side) => side.slice(-half(side)));
  }
}

/** At least one of each side that has any. */
const half = ({ length }: readonly Attack[]) => Math.ceil(length / 2);

const shuffle = (attacks: readonly Attack[], random: () => number) =>
  attacks
    .map((attack) => [random(), attack] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, attack]) => attack);
