// `npm run siege`: attacks the manager and the sidecars, started as the chart starts them, on every port from four addresses, and measures honest
// clients meanwhile (test/siege). Ends with 1 if something was promised and not kept.
//
// Options:
// - --minutes N: the default is 10
// - --seed S: the default is 1
// - --only NAMES: manager, sidecar, or names of attacks, divided by commas; "none" for the honest clients alone
// - --namespaces N: of the cluster, default 200
// - --fuzz: instead of the attacks, random and half-sent messages at every port (test/siege/fuzz), until --minutes are over or
// - --messages N: so many were sent; default 1,000,000
// - --list: prints the names of the attacks
import { parseArgs } from "node:util";
import { ATTACKS, selectAttacks } from "../test/siege/attacks.ts";
import { fuzzPorts } from "../test/siege/fuzz/fuzz-ports.ts";
import { judge, PROMISED } from "../test/siege/judge.ts";
import { deathLines, outcomeLines, verdictLines } from "../test/siege/report.ts";
import { runSiege } from "../test/siege/run-siege.ts";
import { startWorld } from "../test/siege/world.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    only: { type: "string" },
    namespaces: { type: "string", default: "200" },
    fuzz: { type: "boolean", default: false },
    messages: { type: "string", default: "1000000" },
    list: { type: "boolean", default: false },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
const [namespaces, messages] = [Number(values.namespaces), Number(values.messages)];
if (values.list) {
  for (const { name, on } of ATTACKS) process.stdout.write(`${on.padEnd(8)} ${name}\n`);
  process.exit(0);
}
if (!(minutes > 0) || ![seed, namespaces, messages].every(Number.isInteger)) {
  process.stderr.write("siege: --minutes must be positive, --seed, --namespaces and --messages integers\n");
  process.exit(64);
}

const say = (line: string) => void process.stderr.write(`${line}\n`);
const attacks = values.only === "none" ? [] : selectAttacks(values.only);
const world = await startWorld({ namespaces, isCompiled: true });
try {
  if (!(await (values.fuzz ? fuzz() : besiege()))) process.exitCode = 1;
} finally {
  await world.stop();
}
process.exit();

/** True if nothing was found. */
async function fuzz(): Promise<boolean> {
  const report = await fuzzPorts(world, { seed, messages, seconds: minutes * 60, onLine: say });
  const memory = Object.entries(report.rssMb).map(([name, [early, late]]) => `${name} ${early} -> ${late} MB`);
  const found = report.problems.length === 0 ? "no problem" : report.problems.join("\n");
  process.stdout.write(`seed ${seed}: ${report.messages} messages at every port; ${memory.join(", ")}; ${found}\n`);
  return report.problems.length === 0;
}

/** True if all promises were kept. */
async function besiege(): Promise<boolean> {
  const windowSeconds = Math.min(20, minutes * 15);
  const report = await runSiege(world, { attacks, seconds: minutes * 60, seed, windowSeconds, onLine: say });
  const verdicts = judge(report, PROMISED);
  const broken = verdicts.filter(({ isKept }) => !isKept);
  const { p99Ms, longestGapMs } = report.control;
  const lines = [
    "attacks, and how their visits ended:",
    ...outcomeLines(report.outcomes),
    "judged:",
    ...verdictLines(verdicts),
    `  a process that nobody attacks: p99 ${p99Ms} ms, longest time without service ${longestGapMs} ms`,
    ...deathLines(report.deaths),
    `seed ${seed}: ${attacks.length} attacks for ${minutes} minutes; ${broken.length} of ${verdicts.length} promises were not kept`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  return broken.length === 0;
}
