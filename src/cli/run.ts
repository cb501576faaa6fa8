// Runs one command line of ctrlmesh. Invariant: every error ends as one message on stderr and an exit code, and
// no stack is shown.
import { parseArgs } from "node:util";
import { type Clock, parseDuration } from "../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../base/errors.ts";
import { EXPLAIN_OWNER } from "./commands/explain-owner.ts";
import { LINT } from "./commands/lint.ts";
import { CONFIRM, PAUSE, RESUME } from "./commands/pause.ts";
import { STATUS } from "./commands/status.ts";
import { VERSIONS } from "./commands/version.ts";
import { WAIT } from "./commands/wait.ts";
import type { Cluster, ClusterOptions } from "./frame/cluster.ts";
import { type Command, type Flags, type FlagValues, usageError } from "./frame/command.ts";
import { EXIT, type ExitCode } from "./frame/exit.ts";
import { COMMON_FLAGS } from "./frame/flags.ts";
import { commandHelp, overview } from "./frame/help.ts";
import { createOutput, type Streams } from "./frame/output.ts";

export const COMMANDS: readonly Command[] = [STATUS, WAIT, EXPLAIN_OWNER, LINT, PAUSE, RESUME, CONFIRM, VERSIONS];

export interface World {
  readonly streams: Streams;
  readonly clock: Clock;
  connect(options: ClusterOptions): Promise<Cluster>;
  readFile(path: string): Promise<string>;
}

const DEFAULT_REQUEST_TIMEOUT = "5s";

export async function run(argv: readonly string[], world: World): Promise<ExitCode> {
  const { out, err } = world.streams;
  try {
    const command = commandOf(argv);
    if (command === undefined) {
      out(overview(COMMANDS));
      return EXIT.ok;
    }
    const words = command.name.split(" ").length;
    const { args, flags } = read(command, argv.slice(words));
    if (flags.isSet("help")) {
      out(commandHelp(command));
      return EXIT.ok;
    }
    const output = createOutput(world.streams, isJson(flags));
    const { clock, readFile } = world;
    return await command.run({ args, flags, output, clock, readFile, cluster: () => world.connect(clusterOptions(flags)) });
  } catch (error) {
    err(`ctrlmesh: ${errorMessage(error)}\n`);
    if (!isMeshError(error, "USAGE")) return EXIT.failed;
    err("see: ctrlmesh --help\n");
    return EXIT.usage;
  }
}

/** Undefined: the overview is wanted. */
function commandOf(argv: readonly string[]): Command | undefined {
  const [first] = argv;
  if (first === undefined || first === "--help" || first === "-h" || first === "help") return undefined;
  const text = argv.join(" ");
  const found = COMMANDS.find(({ name }) => text === name || text.startsWith(`${name} `));
  if (found === undefined)
    throw usageError(`there is no command "${first}"; the commands are: ${COMMANDS.map(({ name }) => name).join(", ")}`);
  return found;
}

function read(command: Command, argv: readonly string[]): { readonly args: readonly string[]; readonly flags: FlagValues } {
  const known: Flags = { ...COMMON_FLAGS, ...command.flags };
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { type, short }]) => [name, { type, ...(short !== undefined && { short }) }]),
  );
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
    const most = command.args === "" ? 0 : command.name === "lint" ? Number.POSITIVE_INFINITY : 1;
    if (positionals.length > most) throw usageError(`${command.name}: too many arguments: ${positionals.slice(most).join(" ")}`);
    const textOf = (name: string) => {
      const value = values[name];
      return typeof value === "string" ? value : undefined;
    };
    return { args: positionals, flags: { text: textOf, isSet: (name) => values[name] === true } };
  } catch (error) {
    if (error instanceof MeshError) throw error;
    throw usageError(`${command.name}: ${errorMessage(error).split(". ")[0]}`);
  }
}

function isJson(flags: FlagValues): boolean {
  const format = flags.text("output");
  if (format !== undefined && format !== "json")
    throw usageError(`-o: "${format}" is not known; there is json, and text without it`);
  return format === "json";
}

function clusterOptions(flags: FlagValues): ClusterOptions {
  const timeout = flags.text("request-timeout") ?? DEFAULT_REQUEST_TIMEOUT;
  const requestTimeoutMs = parseDuration(timeout);
  if (requestTimeoutMs === undefined) throw usageError(`--request-timeout: "${timeout}" is no duration such as "5s"`);
  return { kubeconfig: flags.text("kubeconfig"), context: flags.text("context"), as: flags.text("as"), requestTimeoutMs };
}
