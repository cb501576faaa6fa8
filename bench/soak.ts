// `npm run soak`: sends aborted requests of every kind to a proxy on the real control plane for some minutes.
// Exits with 1 if memory, sockets, timers or the API server's watches have grown. Prints a line for each
// round and a summary. A slow machine sends fewer requests.
//
// Options: --minutes N (default 10), --rate N a second (200), --seed N (1), --rounds N (one each minute),
// --json. With --node, it runs the mesh on a real node instead (test/real-node/soak.test.ts), with --minutes
// alone (default 60).
import { parseArgs } from "node:util";
import { runOnNode } from "../test/real-node/run.ts";
import { complaints, runSoak } from "../test/soak/run-soak.ts";
import { startKube } from "../test/support/kube.ts";

const { values } = parseArgs({
  options: {
    node: { type: "boolean", default: false },
    minutes: { type: "string" },
    rate: { type: "string" },
    seed: { type: "string" },
    rounds: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const minutes = Number(values.minutes ?? (values.node ? 60 : 10));
const rate = Number(values.rate ?? 200);
const seed = Number(values.seed ?? 1);
const rounds = Number(values.rounds ?? Math.max(2, Math.round(minutes)));
if (!(minutes > 0) || !(rate > 0) || !Number.isInteger(seed) || !Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write("soak: --minutes and --rate must be positive, --seed and --rounds integers\n");
  process.exit(64);
}
if (values.node) {
  const others = [values.rate, values.seed, values.rounds].some((value) => value !== undefined) || values.json;
  if (others || !Number.isInteger(minutes)) {
    process.stderr.write("soak: with --node only --minutes is allowed, as an integer\n");
    process.exit(64);
  }
  process.env.CTRLMESH_SOAK_MINUTES = `${minutes}`;
  process.exit(await runOnNode("npm run soak -- --node", ["test/real-node/soak.test.ts"]));
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
