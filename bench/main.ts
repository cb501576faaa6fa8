// `npm run bench`: what the proxy costs, direct and through it in turn in the same run, on the real control plane. Prints
// medians and ratios as a table, or as JSON with --json. Options: --objects N (default 10000), --rounds N (default 7).
import { parseArgs } from "node:util";
import { demoVirtualApp } from "../test/support/demo-app.ts";
import { eventually } from "../test/support/eventually.ts";
import { startKube } from "../test/support/kube.ts";
import { createManyConfigMaps } from "../test/support/many-config-maps.ts";
import { startMesh } from "../test/support/mesh.ts";
import { createProbe, type Probe } from "../test/support/probe.ts";
import { memoryOf } from "../test/support/process-memory.ts";
import { compare, type Row, renderTable } from "./table.ts";

const { values } = parseArgs({
  options: {
    objects: { type: "string", default: "10000" },
    rounds: { type: "string", default: "7" },
    json: { type: "boolean", default: false },
  },
});
const count = Number(values.objects);
const rounds = Number(values.rounds);
if (!Number.isInteger(count) || count < 10 || !Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write("bench: --objects must be an integer of at least 10, --rounds one of at least 1\n");
  process.exit(64);
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const TEAMS = Array.from({ length: 9 }, (_, index) => `team-${index}`);
const kube = await startKube();
const mesh = await startMesh({ kube });
const probes: Probe[] = [];
try {
  for (const name of ["canary-0", ...TEAMS]) await mesh.createNamespace(name);
  await mesh.apply(demoVirtualApp());
  process.stderr.write(`creating ${count} ConfigMaps\n`);
  await createManyConfigMaps(mesh.client, { count, namespaces: ["canary-0", ...TEAMS] });
  const pod = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
  const direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token, keep: false });
  const proxied = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token, keep: false });
  probes.push(direct, proxied);
  const idle = memoryOf(pod.proxy.pid);
  const list = (accept: string) => async (probe: Probe) => void (await probe.get("/api/v1/configmaps", { accept }));
  const get = async (probe: Probe) => void (await probe.get("/api/v1/namespaces/canary-0/configmaps/cm-000000"));
  const rows: Row[] = [];
  rows.push(await compare("GET, 1 connection, p50", { direct, proxied, rounds, each: 400, run: get }));
  rows.push(
    await compare(`LIST ${count} JSON, one namespace pushed down`, {
      direct,
      proxied,
      rounds,
      each: 1,
      run: list("application/json"),
    }),
  );
  rows.push(
    await compare(`LIST ${count} protobuf, one namespace pushed down`, { direct, proxied, rounds, each: 1, run: list(PROTOBUF) }),
  );
  // More than can be excluded by name, and a second own namespace: the residual filter does all of the work.
  for (let index = 0; index < 20; index++) await mesh.createNamespace(`more-${index}`);
  await mesh.createNamespace("canary-1");
  await eventually(async () => {
    await proxied.get("/api/v1/configmaps?limit=1");
    return (await (await fetch(`${pod.healthUrl}/metrics`)).text()).includes('pushdown_total{plan="none"}');
  });
  rows.push(
    await compare(`LIST ${count} JSON, residual filter`, { direct, proxied, rounds, each: 1, run: list("application/json") }),
  );
  rows.push(await compare(`LIST ${count} protobuf, residual filter`, { direct, proxied, rounds, each: 1, run: list(PROTOBUF) }));
  const after = memoryOf(pod.proxy.pid);
  const memory = { idleMb: idle.rssMb, afterMb: after.rssMb, peakMb: after.peakMb };
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ rows, memory })}\n`
      : `${renderTable(rows)}\nproxy RSS: idle ${memory.idleMb} MB, after ${memory.afterMb} MB, peak ${memory.peakMb} MB\n`,
  );
} finally {
  for (const probe of probes) await probe.close();
  await mesh.stop();
  await kube.stop();
}
