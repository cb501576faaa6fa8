// `npm run chaos`: kills, stops and edits at random on a real control plane and checks ownership by its audit log (test/chaos).
// Ends with 1 if two subsets of an app, or two shards of a family, worked on one object, or if something has not converged after half
// a minute, except work whose informer client-go still delays.
//
// Options:
// - --minutes N: the default is 3
// - --seed S: by default a new one, which is printed
// - --lost-nodes: also deletes pods whose processes continue
// - --quiet: prints only the summary
// - --verbose: also prints the output of all processes; with $LOG_VERBOSITY=4 that of the operators' informers, with
//   $CTRLMESH_ACCESS_LOG=true the proxies' access logs
// - --keep DIR: keeps the control plane's folder with its audit log there
import { parseArgs } from "node:util";
import { runChaos } from "../test/chaos/run-chaos.ts";

function readOptions() {
  try {
    return parseArgs({
      options: {
        minutes: { type: "string", default: "3" },
        seed: { type: "string" },
        "lost-nodes": { type: "boolean", default: false },
        quiet: { type: "boolean", default: false },
        verbose: { type: "boolean", default: false },
        keep: { type: "string" },
      },
    }).values;
  } catch (error) {
    return misused((error as Error).message);
  }
}

function misused(why: string): never {
  process.stderr.write(
    `chaos: ${why}\nusage: npm run chaos -- [--minutes N] [--seed S] [--lost-nodes] [--quiet] [--verbose] [--keep DIR]\n`,
  );
  process.exit(64);
}

const values = readOptions();
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
if (!(minutes > 0)) misused(`--minutes is ${values.minutes}; a number above 0 is allowed`);
if (!Number.isInteger(seed)) misused(`--seed is ${values.seed}; an integer is allowed`);
process.stderr.write(`chaos: seed ${seed}\n`);
const report = await runChaos({
  seconds: minutes * 60,
  seed,
  lostNodes: values["lost-nodes"],
  verbose: values.verbose,
  ...(values.keep === undefined ? {} : { dir: values.keep }),
  ...(values.quiet ? {} : { onLine: (line: string) => void process.stderr.write(`${line}\n`) }),
});
const {
  actions,
  edits,
  namespaces,
  checkedWrites,
  handovers,
  sharded,
  reviews,
  restarts,
  convergedMs,
  sleptMs,
  violations,
  late,
} = report;
process.stdout.write(
  `seed ${seed}: ${actions} actions, ${edits} edits, ${restarts} restarts; ${checkedWrites} writes of pods checked, ${handovers} handovers in ${namespaces} namespaces; ` +
    `of the sharded family ${sharded.checkedWrites} and ${sharded.handovers}; ${reviews.checked} reviews checked, ${reviews.handovers} handovers; ` +
    `${violations.length} violations; ${late.length === 0 ? `converged in ${convergedMs} ms, ${sleptMs} ms of them client-go's wait` : "NOT converged"}\n`,
);
for (const problem of [...violations, ...late]) process.stdout.write(`  ${problem}\n`);
if (violations.length + late.length > 0) process.exitCode = 1;
