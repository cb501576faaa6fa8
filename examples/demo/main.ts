// `npm run demo [-- sharding]`: shows Controller Mesh on one machine without a cluster. Exit codes: 0 every step succeeded, 1 a step failed
// (the last line has the reason), 64 wrong usage, 130 interrupted.
import { parseArgs } from "node:util";
import { errorMessage } from "../../src/base/errors.ts";
import { EXIT_USAGE } from "../../src/base/settings.ts";
import { readClustersAct } from "./clusters/act.ts";
import { readDivideAct } from "./divide/act.ts";
import { type Performance, perform } from "./perform.ts";
import { readShardingAct } from "./sharding/act.ts";
import { readTrafficAct } from "./traffic/act.ts";
import { readWebhooksAct } from "./webhooks/act.ts";

const EXIT_INTERRUPTED = 130;
const HELP = `npm run demo [-- ACT] [--keep]
Runs Controller Mesh on this machine, without a cluster. Judged by the API server's audit log.
  (no ACT)  one operator in two subsets, a namespace that moves between them, and a write that is refused
  sharding  a StatefulSet that shards itself, and is scaled while it writes
  traffic   an operator deletes too much, and a breaker stops it
  webhooks  whichever pod the API server calls, the webhook of the namespace's owner answers
  clusters  an operator works on three other clusters: each, or each namespace of it, has one writer
  --keep    open the dashboard, and stay up after the summary, to look around with kubectl, until Ctrl-C
  --help    print this
`;

type Play = (performance: Performance) => Promise<void>;

const ACTS: ReadonlyMap<string, Play> = new Map([
  ["", (performance) => perform(readDivideAct(), performance)],
  ["sharding", (performance) => perform(readShardingAct(), performance)],
  ["traffic", (performance) => perform(readTrafficAct(), performance)],
  ["webhooks", (performance) => perform(readWebhooksAct(), performance)],
  ["clusters", (performance) => perform(readClustersAct(), performance)],
]);

interface Options {
  readonly play: Play;
  readonly keep: boolean;
  readonly help: boolean;
}

/** @throws for wrong usage */
function readOptions(argv: readonly string[]): Options {
  const boolean = { type: "boolean", default: false } as const;
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: { keep: boolean, help: boolean },
    allowPositionals: true,
  });
  const words = positionals.join(" ");
  const play = ACTS.get(words);
  if (play === undefined) throw new TypeError(`Unknown act ${JSON.stringify(words)}`);
  return { ...values, play };
}

function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      // A second signal ends the process at once.
      if (controller.signal.aborted) process.exit(EXIT_INTERRUPTED);
      controller.abort(new Error(`interrupted by ${name}`));
    });
  }
  // The reader of the output has ended: `npm run demo | head`.
  process.stdout.on("error", (error) => controller.abort(error));
  return controller.signal;
}

async function main(): Promise<number> {
  let options: Options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`demo: ${errorMessage(error)}\n\n${HELP}`);
    return EXIT_USAGE;
  }
  if (options.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const signal = interruptSignal();
  try {
    await options.play({ keep: options.keep, signal });
    return 0;
  } catch (error) {
    if (signal.aborted) return EXIT_INTERRUPTED;
    process.stderr.write(`\ndemo: failed: ${errorMessage(error)}\n`);
    return 1;
  }
}

process.exit(await main());
