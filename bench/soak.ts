// `npm run soak`: sends aborted requests of every kind to a proxy on the real control plane for some minutes.
// Exits with 1 if memory, sockets, timers or the API server's watches have grown. Prints a line for each
// round and a summary. A slow machine sends fewer requests.
//
// Options: --minutes N (default 10), --rate N a second (200), --seed N (1), --rounds N (one each minute),
// --json.
import { parseArgs } from "node:util";
import { complaints, runSoak } from "../test/soak/run-soak.ts";
import { startKube } from "../test/support/kube.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    rate: { type: "string", default: "200" },
    seed: { type: "string", default: "1" },
    rounds: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const minutes = Number(values.minutes);
const rate = Number(values.rate);
const seed = Number(values.seed);
const rounds = Number(values.rounds ?? Math.max(2, Math.round(minutes)));
if (!(minutes > 0) || !(rate > 0) || !Number.isInteger(seed) || !Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write("soak: --minutes and --rate must be positive, --seed and --rounds integers\n");
  process.exit(64);
}

const kube = await startKube();
try {
  const onRound = (line: string) => void process.stderr.write(`${line}\n`);
  const report = await runSoak({
    kube,
    seconds: minutes * 60,
    rounds,
    rate,
    seed,
    restSeconds: 10,
    lastRestSeconds: 75,
    onRound,
  });
  const problems = complaints(report);
  const [first, last] = [report.vitals[1], report.vitals.at(-1)];
  const memory = `RSS ${first?.rssMb} -> ${last?.rssMb} MB, heap ${first?.heapUsedMb} -> ${last?.heapUsedMb} MB`;
  const gets = `${report.gets.count} small GETs at the same time: p50 ${report.gets.p50Ms} ms, p99 ${report.gets.p99Ms} ms, ${report.gets.failed} failed`;
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ ...report, problems, seed, rate })}\n`
      : `${report.visits} visits (${report.perSecond}/s of ${rate} desired, seed ${seed}): ${memory}, sockets ${report.vitals[0]?.sockets} -> ${last?.sockets}; ${gets}; ${problems.length === 0 ? "nothing has grown" : problems.join("; ")}\n`,
  );
  if (problems.length > 0) process.exitCode = 1;
} finally {
  await kube.stop();
}
