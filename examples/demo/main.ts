// `npm run demo`: shows Controller Mesh on one machine without a cluster, in half a minute. Exit codes: 0 every step succeeded, 1 a step failed
// (the last line has the reason), 64 wrong usage, 130 interrupted. Invariant: all processes of the demo end with it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { errorMessage } from "../../src/base/errors.ts";
import { EXIT_USAGE } from "../../src/base/settings.ts";
import { readApp } from "./app.ts";
import { PLANS } from "./pods.ts";
import { createProcesses } from "./processes.ts";
import { createScreen } from "./screen.ts";
import { createTeller, since, tellStory } from "./story.ts";
import { noteLines } from "./view.ts";
import { createWatcher } from "./watcher.ts";
import { openWorld, type World } from "./world.ts";

const EXIT_INTERRUPTED = 130;
const READING_MS = 3_000;
const HELP = `npm run demo [-- --keep]
Runs Controller Mesh on this machine, without a cluster: one operator in two subsets, a namespace that moves between them,
and a write that is refused. Judged by the API server's audit log.
  --keep   stay up after the summary, to look around with kubectl, until Ctrl-C
  --help   print this
`;

interface Options {
  readonly keep: boolean;
  readonly help: boolean;
}

function readOptions(argv: readonly string[]): Options {
  const boolean = { type: "boolean", default: false } as const;
  return parseArgs({ args: [...argv], options: { keep: boolean, help: boolean } }).values;
}

async function run({ keep }: Options, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const screen = createScreen({ out: process.stdout, env: process.env });
  const teller = createTeller(screen);
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-demo-"));
  const processes = createProcesses();
  let world: World | undefined;
  try {
    const app = readApp();
    teller.step(1, `Starting an API server (localkube), ctrlmesh-manager, and ${PLANS.length} pods of an ordinary operator`);
    teller.note(
      "No cluster and no containers: the demo plays the kubelet. It runs each pod as two processes, the operator and its proxy, and reports it Ready.",
    );
    world = await interruptible(openWorld({ app, processes, dir }), signal);
    for (const subset of new Set(world.pods.map((pod) => pod.subset))) {
      const names = world.pods.filter((pod) => pod.subset === subset).map(({ name }) => name);
      teller.note(`${subset === "" ? "the default subset" : `subset ${subset}`}: ${names.join(", ")}`);
    }
    teller.note(`${processes.count} processes, ready after ${since(startedAt)}`);
    const watcher = createWatcher({ screen, facts: world.facts, assertAlive: processes.assertAlive, signal });
    await tellStory({ world, watcher, screen, pauseMs: screen.isTerminal ? READING_MS : 0 });
    screen.say(["", ...noteLines(`Every step succeeded. ${since(startedAt)}.`, screen.width)]);
    if (keep) {
      screen.say(keepLines(world, screen.width));
      await watcher.linger(Number.POSITIVE_INFINITY);
    }
  } finally {
    // Last of all, when processes that were still starting are killed and write no more.
    process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
    await world?.close();
    await processes.stop();
  }
}

function keepLines({ apiServer, pods }: World, width: number): string[] {
  const [first] = pods;
  return [
    "",
    ...noteLines("Still up, until Ctrl-C. The whole cluster, and what one pod is shown of it through its proxy:", width),
    "",
    `kubectl --kubeconfig ${apiServer.kubeconfig} get virtualapps -A`,
    `kubectl --kubeconfig ${apiServer.kubeconfig} get foos -A`,
    `kubectl --kubeconfig ${first?.kubeconfig} get foos -A`,
  ];
}

// The start cannot be interrupted, but the demo need not wait for it: the processes end with this one.
function interruptible<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    work.then(resolve, reject);
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
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
    await run(options, signal);
    return 0;
  } catch (error) {
    if (signal.aborted) return EXIT_INTERRUPTED;
    process.stderr.write(`\ndemo: failed: ${errorMessage(error)}\n`);
    return 1;
  }
}

process.exit(await main());
