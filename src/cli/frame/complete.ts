// The words that may come next on a command line. Pure.
import type { Command } from "./command.ts";
import { COMMON_FLAGS } from "./flags.ts";

export interface Completion {
  readonly words: readonly string[];
  /** The names of apps may come too. */
  readonly wantsApps: boolean;
}

/** @param typed the words behind `ctrlmesh`; the last one is not complete yet */
export function completions(commands: readonly Command[], typed: readonly string[]): Completion {
  const current = typed.at(-1) ?? "";
  const before = typed.slice(0, -1);
  const text = before.join(" ");
  const command = commands.find(({ name }) => text === name || text.startsWith(`${name} `));
  if (command === undefined) return { words: nextWords(commands, before), wantsApps: false };
  if (!current.startsWith("-")) return { words: [], wantsApps: /\bAPP\b/.test(command.args) };
  return { words: Object.keys({ ...COMMON_FLAGS, ...command.flags }).map((name) => `--${name}`), wantsApps: false };
}

/** Of the commands that begin with these words, the word behind them. */
function nextWords(commands: readonly Command[], before: readonly string[]): string[] {
  const names = commands.map(({ name }) => name.split(" "));
  const fitting = names.filter((words) => before.every((word, at) => words[at] === word));
  return [...new Set(fitting.flatMap((words) => words[before.length] ?? []))];
}
