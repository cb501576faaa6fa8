// The page of the flags of both programs, from their settings. Pure.
import type { z } from "zod";
import { type CommandLine, settingNames } from "../../src/base/settings.ts";
import { code, page, table } from "./markdown.ts";

const HEAD = ["flag", "environment variable", "default", "meaning"];
const INTRO =
  "A flag takes precedence over its environment variable. All problems are reported together before a port is bound, and the program ends with 64.";

export function flagsPage(commandLines: readonly CommandLine<z.ZodType>[]): string {
  return page("Flags", [INTRO, ...commandLines.flatMap(section)]);
}

function section(commandLine: CommandLine<z.ZodType>): string[] {
  const [program = "", what = ""] = commandLine.title.split(": ");
  const rows = Object.entries(commandLine.settings).map(([name, { fallback = "", help }]) => {
    const { flag, variable } = settingNames(commandLine.prefix, name);
    return [code(`--${flag}`), code(variable), code(fallback), help];
  });
  return [`## ${program}`, `It ${what}.`, table(HEAD, rows)];
}
