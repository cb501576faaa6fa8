// `node bench/large.ts`: measures what large families cost the manager's event loop. The real app controller
// runs on a fake API server, and fake proxies acknowledge within some milliseconds. For each kind of change
// it prints the processor time, the longest piece of work, the delay of the event loop, and the time until all
// proxies have acknowledged and nothing is left to do. The longest piece is in processor time too, so that
// other programs on the machine do not count. All of it is in one process, so the fakes count too.
//
// Options: --shards N (default 64), --namespaces N (10000), --families N (200), --rounds N (10), --json.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { type LargeWorld, largeWorld } from "../test/support/large-world.ts";

const { values } = parseArgs({
  options: {
    shards: { type: "string", default: "64" },
    namespaces: { type: "string", default: "10000" },
    families: { type: "string", default: "200" },
    rounds: { type: "string", default: "10" },
    json: { type: "boolean", default: false },
  },
});
const [shards, namespaces, families, rounds] = [values.shards, values.namespaces, values.families, values.rounds].map(Number) as [
  number,
  number,
  number,
  number,
];

interface Row {
  readonly name: string;
  readonly cpuMs: number;
  readonly longestMs: number;
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  readonly doneMs: number;
}
const rows: Row[] = [];

/** The thread's processor time between two turns of a timer: a longer piece of work shows as a whole. */
function watchPieces() {
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let [before, longest] = [cpuMs(), 0];
  const timer = setInterval(() => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    before = now;
  }, 1);
  return () => {
    clearInterval(timer);
    return longest;
  };
}

/** A program that has just started is slower, so that its first changes are not measured. */
const WARM_UP_CHANGES = 5;

/** Medians of the rounds, but for the longest piece and the delays. */
async function measure(name: string, world: LargeWorld, change: (round: number) => void, times = rounds) {
  for (let round = 0; round < WARM_UP_CHANGES; round++) {
    change(round);
    await world.quiet();
  }
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const [cpuTimes, doneTimes]: [number[], number[]] = [[], []];
  delay.enable();
  const longest = watchPieces();
  for (let round = WARM_UP_CHANGES; round < WARM_UP_CHANGES + times; round++) {
    const [before, startMs] = [process.cpuUsage(), performance.now()];
    change(round);
    doneTimes.push((await world.quiet()) - startMs);
    const { user, system } = process.cpuUsage(before);
    cpuTimes.push((user + system) / 1000);
  }
  delay.disable();
  const median = (all: number[]) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
  const [delayP99Ms, delayMaxMs] = [delay.percentile(99) / 1e6, delay.max / 1e6];
  rows.push({ name, cpuMs: median(cpuTimes), longestMs: longest(), delayP99Ms, delayMaxMs, doneMs: median(doneTimes) });
}

const one = await largeWorld({ shards, namespaces, families: 1 });
await measure("a namespace is born", one, (round) => one.bear(`born-${round}`));
await measure("a namespace dies", one, (round) => one.bury(`born-${round}`));
await measure("a namespace gets a label", one, (round) => one.label(`namespace-${round}`, String(round)));
await measure("a burst of 100 births", one, (round) => {
  for (let at = 0; at < 100; at++) one.bear(`burst-${round}-${at}`);
});
await measure("a shard leaves or joins", one, (round) => one.place(round % 2 === 0 ? shards - 1 : shards));
await measure("every namespace moves", one, (round) => one.place(shards, round + 1), Math.ceil(rounds / 2));
await one.stop();
const many = await largeWorld({ shards: 1, namespaces, families });
await measure(`a namespace is born, ${families} families`, many, (round) => many.bear(`born-${round}`));
await measure(`a namespace gets a label, ${families} families`, many, (round) => many.label(`namespace-${round}`, String(round)));

const line = (name: string, cells: readonly string[]) => [name.padEnd(40), ...cells.map((cell) => cell.padStart(11))].join("");
const head = line("CHANGE (ms)", ["CPU", "LONGEST", "DELAY P99", "DELAY MAX", "DONE AFTER"]);
const lines = rows.map(({ name, ...figures }) =>
  line(
    name,
    Object.values(figures).map((ms: number) => ms.toFixed(0)),
  ),
);
process.stdout.write(values.json ? `${JSON.stringify(rows)}\n` : `${[head, ...lines].join("\n")}\n`);
process.exit(0);
