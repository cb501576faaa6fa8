// Runs one command line of ctrlmesh. Invariant: every error ends as one message on stderr and an exit code, and
// no stack is shown.
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import type { Clock } from "../base/clock.ts";
import { errorMessage, isMeshError } from "../base/errors.ts";
import { listApps } from "./apps/apps.ts";
import { BUG_REPORT } from "./commands/bug-report.ts";
import { CONFIRM, PAUSE, RESUME } from "./commands/change-app.ts";
import { CHECK } from "./commands/check.ts";
import { COMPLETION } from "./commands/completion.ts";
import { DASHBOARD } from "./commands/dashboard.ts";
import { DIFF } from "./commands/diff.ts";
import { EVENT_LIST } from "./commands/events.ts";
import { EXPLAIN_INJECT } from "./commands/explain-inject.ts";
import { EXPLAIN_OWNER } from "./commands/explain-owner.ts";
import { EXPLAIN_REQUEST } from "./commands/explain-request.ts";
import { FREEZE, THAW } from "./commands/freeze.ts";
import { INJECT } from "./commands/inject.ts";
import { KUBECONFIG } from "./commands/kubeconfig.ts";
import { LABELS_REMOVE } from "./commands/labels-remove.ts";
import { LINT } from "./commands/lint.ts";
import { OWNERS } from "./commands/owners.ts";
import { PLAN } from "./commands/plan.ts";
import { PROXIES } from "./commands/proxies.ts";
import { RECOVER } from "./commands/recover.ts";
import { ROLL } from "./commands/roll.ts";
import { STATUS } from "./commands/status.ts";
import { TAP } from "./commands/tap.ts";
import { TOP } from "./commands/top.ts";
import { VERSIONS } from "./commands/version.ts";
import { WAIT } from "./commands/wait.ts";
import type { Cluster, ClusterOptions } from "./frame/cluster.ts";
import { type Command, type Flags, type FlagValues, usageError } from "./frame/command.ts";
import { completions } from "./frame/complete.ts";
import { EXIT, type ExitCode } from "./frame/exit.ts";
import { COMMON_FLAGS, clusterOptions, isJson, namespaceOf } from "./frame/flags.ts";
import { commandHelp, overview } from "./frame/help.ts";
import { createOutput, oneLine, type Streams } from "./frame/output.ts";

export const COMMANDS: readonly Command[] = [
  CHECK,
  STATUS,
  WAIT,
  EXPLAIN_OWNER,
  EXPLAIN_REQUEST,
  EXPLAIN_INJECT,
  OWNERS,
  PROXIES,
  DIFF,
  TAP,
  TOP,
  EVENT_LIST,
  DASHBOARD,
  PLAN,
  LINT,
  INJECT,
  KUBECONFIG,
  PAUSE,
  RESUME,
  CONFIRM,
  FREEZE,
  THAW,
  RECOVER,
  ROLL,
  LABELS_REMOVE,
  BUG_REPORT,
  COMPLETION,
  VERSIONS,
];

export interface World {
  readonly streams: Streams;
  readonly clock: Clock;
  connect(options: ClusterOptions): Promise<Cluster>;
  readFile(path: string): Promise<string>;
  interrupted(): AbortSignal;
}

export async function run(words: readonly string[], world: World): Promise<ExitCode> {
  const argv = asCommand(words);
  const { out, err } = world.streams;
  try {
    if (argv[0] === COMPLETE) {
      out((await completed(argv.slice(1), world)).join("\n"));
      return EXIT.ok;
    }
    const command = commandOf(argv);
    if (command === undefined) {
      out(overview(COMMANDS));
      return EXIT.ok;
    }
    const { args, flags } = read(command, argv.slice(command.name.split(" ").length));
    if (flags.isSet("help")) {
      out(commandHelp(command));
      return EXIT.ok;
    }
    const output = createOutput(world.streams, isJson(flags, command.formats));
    const { clock, readFile, interrupted } = world;
    const options = clusterOptions(flags);
    let connected: Promise<Cluster> | undefined;
    const cluster = () => {
      connected ??= world.connect(options);
      connected.catch(() => {
        connected = undefined; // the next call tries again
      });
      return connected;
    };
    return await command.run({ args, flags, output, clock, readFile, cluster, interrupted });
  } catch (error) {
    err(`ctrlmesh: ${oneLine(errorMessage(error))}\n`);
    if (!isMeshError(error, "USAGE")) return EXIT.failed;
    err(`see: ${["ctrlmesh", nameIn(argv), "--help"].filter((word) => word !== "").join(" ")}\n`);
    return EXIT.usage;
  }
}

/** What people type by habit, as a command. */
function asCommand(words: readonly string[]): readonly string[] {
  const [first = "", ...rest] = words;
  if (first === "--version") return ["version", "--client", ...rest];
  return first === "help" && rest.length > 0 ? [...rest, "--help"] : words;
}

/** The command in the words; "" for none. */
function nameIn(words: readonly string[]): string {
  const text = words.join(" ");
  return COMMANDS.find(({ name }) => text === name || text.startsWith(`${name} `))?.name ?? "";
}

/** The scripts of `ctrlmesh completion` call it. It is no command for people. */
const COMPLETE = "__complete";

async function completed(typed: readonly string[], world: World): Promise<readonly string[]> {
  const { words, wantsApps } = completions(COMMANDS, typed);
  if (!wantsApps) return words;
  const command = commandOf(typed.slice(0, -1));
  if (command === undefined) return words;
  const { flags } = read(command, typed.slice(command.name.split(" ").length, -1));
  const cluster = await world.connect(clusterOptions(flags));
  const apps = await listApps(cluster, namespaceOf(flags, cluster.namespace));
  return apps.map(({ name }) => name).filter((name) => PLAIN_NAME.test(name));
}

/** What a shell takes as it is. The name of a family may be any text: it can come from the owner that a child names. */
const PLAIN_NAME = /^\w[\w.-]*$/;

/** Undefined: the overview is wanted. */
function commandOf(argv: readonly string[]): Command | undefined {
  const [first] = argv;
  if (first === undefined || first === "--help" || first === "-h" || first === "help") return undefined;
  const name = nameIn(argv);
  const found = COMMANDS.find((command) => command.name === name);
  if (found !== undefined) return found;
  const names = COMMANDS.map((command) => command.name);
  const longer = names.filter((each) => each.startsWith(`${first} `));
  throw usageError(`there is no command "${first}"; the commands are: ${(longer.length > 0 ? longer : names).join(", ")}`);
}

function read(command: Command, argv: readonly string[]): { readonly args: readonly string[]; readonly flags: FlagValues } {
  const known: Flags = { ...COMMON_FLAGS, ...command.flags };
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { type, short, multiple = false }]) => [name, { type, multiple, ...(short && { short }) }]),
  );
  const { values, positionals } = parsed(command, argv, options);
  const { maxArgs } = command;
  if (positionals.length > maxArgs)
    throw usageError(`${command.name}: too many arguments: ${positionals.slice(maxArgs).join(" ")}`);
  const texts = (name: string) => [values[name] ?? []].flat().filter((value) => typeof value === "string");
  return { args: positionals, flags: { text: (name) => texts(name).at(-1), texts, isSet: (name) => values[name] === true } };
}

function parsed(command: Command, argv: readonly string[], options: ParseArgsOptionsConfig) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    throw usageError(`${command.name}: ${errorMessage(error).split(". ")[0]}`);
  }
}
