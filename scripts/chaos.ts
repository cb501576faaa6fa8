// `npm run chaos`: kills, stops and edits at random on a real control plane, judged by its audit log (test/chaos). Prints what it does,
// and ends with 1 if two subsets worked on one object, or work was lost, or it did not converge within half a minute of quiet.
// Options: --minutes N (default 3), --seed S (default a new one; printed), --lost-nodes (also deletes pods' objects while their
// processes go on), --quiet (only the summary).
import { parseArgs } from "node:util";
import { runChaos } from "../test/chaos/run-chaos.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "3" },
    seed: { type: "string" },
    "lost-nodes": { type: "boolean", default: false },
    quiet: { type: "boolean", default: false },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  process.stderr.write("chaos: --minutes must be positive, --seed an integer\n");
  process.exit(64);
}
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
