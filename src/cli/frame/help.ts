// The texts of --help.
import type { Command, Flags } from "./command.ts";
import { COMMON_FLAGS } from "./flags.ts";
import { columns } from "./output.ts";

export function overview(commands: readonly Command[]): string {
  const rows = commands.map(({ name, args, summary }) => [`${name} ${args}`.trim(), summary]);
  return [
    "ctrlmesh: what Controller Mesh does in a cluster, and why",
    "",
    ...columns(rows, "  "),
    "",
    "ctrlmesh COMMAND --help shows the flags of a command.",
    "Exit codes: 0 done, 1 could not do it, 2 found something, 4 timed out, 64 wrong command line.",
    "",
  ].join("\n");
}

export function commandHelp({ name, args, summary, flags }: Command): string {
  const lines = [`ctrlmesh ${name} ${args}`.trimEnd(), "", `  ${summary}`, ""];
  return [...lines, ...flagLines({ ...flags, ...COMMON_FLAGS }), ""].join("\n");
}

function flagLines(flags: Flags): string[] {
  const rows = Object.entries(flags).map(([name, { short, value, help }]) => {
    const names = short === undefined ? `    --${name}` : `-${short}, --${name}`;
    return [value === undefined ? names : `${names} ${value}`, help];
  });
  return columns(rows, "  ");
}
