// A siege's report as text: a line for each attack and a line for each verdict. Pure.
import type { Outcomes } from "./attacker.ts";
import type { Verdict } from "./judge.ts";

const NAME_WIDTH = 32;

/** How the visits of each attack have ended, the most frequent first. */
export function outcomeLines(outcomes: Outcomes): string[] {
  return Object.entries(outcomes).map(([name, counts]) => {
    const parts = Object.entries(counts)
      .toSorted(([, a], [, b]) => b - a)
      .map(([outcome, count]) => `${count} ${outcome}`);
    return `  ${name.padEnd(NAME_WIDTH)} ${parts.join(", ")}`;
  });
}

export function verdictLines(verdicts: readonly Verdict[]): string[] {
  const width = Math.max(...verdicts.map(({ what }) => what.length));
  return verdicts.map(
    ({ what, value, bound, isKept }) => `  ${isKept ? "ok  " : "FAIL"} ${what.padEnd(width)}  ${value}, at most ${bound}`,
  );
}

/** The last words of the processes that have ended. */
export function deathLines(deaths: Readonly<Record<string, readonly string[]>>): string[] {
  return Object.entries(deaths).flatMap(([name, all]) => all.slice(0, 1).flatMap((words) => [`${name} said last:`, words]));
}
