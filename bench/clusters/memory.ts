// Whether the sidecar's memory stays flat while connections to clusters begin and end, good and broken: node bench/clusters/memory.ts.
// Options: --minutes N (default 26), --rate N visits a second (60). Prints a line for each round of two minutes.
import { parseArgs } from "node:util";
import { runClusterChurn } from "../../test/soak/cluster-churn.ts";

const ROUND_SECONDS = 60;
const { values } = parseArgs({ options: { minutes: { type: "string" }, rate: { type: "string" } } });
const [minutes, rate] = [Number(values.minutes ?? 26), Number(values.rate ?? 60)];
let visits = 0;
process.stdout.write("visits   RSS MB   heap MB   outside MB   sockets\n");
// After the load of a round it takes a minute until the last tunnels have ended.
await runClusterChurn({
  rounds: Math.max(1, Math.round(minutes / 2)),
  roundSeconds: ROUND_SECONDS,
  rate,
  onRound({ rssMb, heapUsedMb, externalMb, sockets }, count) {
    visits += count;
    const cells = [String(visits).padEnd(6), String(rssMb).padStart(8), heapUsedMb.toFixed(1).padStart(9)];
    process.stdout.write(`${[...cells, externalMb.toFixed(1).padStart(12), String(sockets).padStart(9)].join(" ")}\n`);
  },
});
process.exit(0);
