// `npm run chaos`: kills, stops and edits at random on a real control plane, judged by its audit log (test/chaos). Prints what it does,
// and ends with 1 if two subsets worked on one object, or something was not as asked for within half a minute of quiet, but for work
// whose operator's informer client-go itself still held back.
// Options: --minutes N (default 3), --seed S (default a new one; printed), --lost-nodes (also deletes pods' objects while their
// processes go on), --quiet (only the summary), --verbose (also what all processes say; $LOG_VERBOSITY=4 makes the operators' informers
// say when they ask, $CTRLMESH_ACCESS_LOG=true the proxies what they were asked), --keep DIR (the control plane's folder with its audit log
// stays there).
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
const { deeds, edits, namespaces, judgedWrites, handovers, restarts, convergedMs, sleptMs, faults, laggards } = report;
process.stdout.write(
  `seed ${seed}: ${deeds} deeds, ${edits} edits, ${restarts} restarts; ${judgedWrites} writes of pods judged, ${handovers} handovers in ${namespaces} namespaces; ` +
    `${faults.length} faults; ${laggards.length === 0 ? `converged in ${convergedMs} ms, ${sleptMs} ms of them client-go's sleep` : "NOT converged"}\n`,
);
for (const problem of [...faults, ...laggards]) process.stdout.write(`  ${problem}\n`);
if (faults.length + laggards.length > 0) process.exitCode = 1;
