// `npm run chaos`: kills, stops and edits at random on a real control plane, judged by its audit log (test/chaos). Prints what it does,
// and ends with 1 if two subsets worked on one object, or work was lost, or ownership was not as asked for within half a minute of quiet,
// and all work done a minute later.
// Options: --minutes N (default 3), --seed S (default a new one; printed), --lost-nodes (also deletes pods' objects while their
// processes go on), --quiet (only the summary).
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
      },
    }).values;
  } catch (error) {
    return misused((error as Error).message);
  }
}

function misused(why: string): never {
  process.stderr.write(`chaos: ${why}\nusage: npm run chaos -- [--minutes N] [--seed S] [--lost-nodes] [--quiet]\n`);
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
  ...(values.quiet ? {} : { onLine: (line: string) => void process.stderr.write(`${line}\n`) }),
});
const { deeds, edits, namespaces, judgedWrites, handovers, restarts, convergedMs, faults, laggards } = report;
process.stdout.write(
  `seed ${seed}: ${deeds} deeds, ${edits} edits, ${restarts} restarts; ${judgedWrites} writes of pods judged, ${handovers} handovers in ${namespaces} namespaces; ` +
    `${faults.length} faults; ${laggards.length === 0 ? `converged in ${convergedMs} ms` : "NOT converged"}\n`,
);
for (const problem of [...faults, ...laggards]) process.stdout.write(`  ${problem}\n`);
if (faults.length + laggards.length > 0) process.exitCode = 1;
