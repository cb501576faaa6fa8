// `node bench/cli.ts`: measures how long commands of ctrlmesh take, with kubectl, on the real control plane (test/kube): the bundled
// program, as users run it, in a cluster with apps, pods and slices as the manager writes them. No manager runs.
//
// Options: --apps N, each in a namespace of its own (default 20), --pods N of all apps together (500), --rounds N (7), --json.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bundle } from "../scripts/build/bundle.ts";
import { OWNERSHIP_SLICES, VIRTUAL_APPS } from "../src/api/resources.ts";
import { createKubeClient } from "../src/kube/client/client.ts";
import { NAMESPACES, PODS } from "../src/kube/client/resources.ts";
import type { KubeObject } from "../src/kube/types.ts";
import { movingApp, movingSlice } from "../test/support/cli.ts";
import { startKube } from "../test/support/kube.ts";
import { podObject, prepareCluster } from "../test/support/mesh/cluster.ts";
import { sampleVirtualApp } from "../test/support/virtual-app.ts";
import { median } from "./table.ts";

const CREATED_AT_ONCE = 16;
/** `check` finds that no manager runs. */
const EXPECTED_CODES = [0, 2];
const COMMANDS = ["version --client", "status -A", "status -A -o json", "status shop -n operator-0", "owners -A", "check"];

const { values } = parseArgs({
  options: {
    apps: { type: "string", default: "20" },
    pods: { type: "string", default: "500" },
    rounds: { type: "string", default: "7" },
    json: { type: "boolean", default: false },
  },
});
const [apps, pods, rounds] = [Number(values.apps), Number(values.pods), Number(values.rounds)];
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

const out = mkdtempSync(join(tmpdir(), "ctrlmesh-bench-"));
const kube = await startKube();
const client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "bench" });
try {
  await bundle("cli", out);
  await prepareCluster(kube, "foo-system");
  await inParallel(numbers(apps), makeApp);
  await inParallel(numbers(pods), makePod);
  process.stderr.write(`cli: ${apps} apps, ${pods} pods\n`);
  const times = new Map(COMMANDS.map((command) => [command, [] as number[]]));
  for (const _ of numbers(rounds)) for (const [command, of] of times) of.push(await timeOf(command));
  print([...times].map(([command, of]) => ({ command, medianMs: Math.round(median(of)), mostMs: Math.round(Math.max(...of)) })));
} finally {
  await client.close();
  await kube.stop();
  rmSync(out, { recursive: true, force: true });
}

function print(rows: readonly { readonly command: string; readonly medianMs: number; readonly mostMs: number }[]): void {
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ apps, pods, rounds, rows })}\n`);
    return;
  }
  for (const { command, medianMs, mostMs } of rows)
    process.stdout.write(`ctrlmesh ${command.padEnd(28)}${String(medianMs).padStart(6)} ms, ${mostMs} at most\n`);
}

function timeOf(command: string): Promise<number> {
  const program = join(out, "cli/ctrlmesh.js");
  const env = { ...process.env, KUBECONFIG: kube.kubeconfig };
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, ...command.split(" ")], { env, maxBuffer: 2 ** 28 }, (error, _, stderr) => {
      const code = error === null ? 0 : error.code;
      if (EXPECTED_CODES.includes(Number(code))) resolve(performance.now() - startMs);
      else reject(new Error(`ctrlmesh ${command} has ended with ${code}: ${stderr}`));
    });
  });
}

async function makeApp(at: number): Promise<void> {
  const namespace = `operator-${at}`;
  const metadata = { namespace, name: "shop" };
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  await client.create(VIRTUAL_APPS, { ...sampleVirtualApp(), metadata } as never);
  const { status } = movingApp({ routeVersion: 17 }) as KubeObject & { readonly status?: object };
  await client.patch(VIRTUAL_APPS, metadata, { type: "merge", body: { status } }, { subresource: "status" });
  const { metadata: of, ...slice } = movingSlice({ places: 500, moving: 0, ownership: ownership() });
  await client.create(OWNERSHIP_SLICES, { ...slice, metadata: { ...of, namespace } } as never);
}

function ownership(): object[] {
  const namespaces = numbers(500).map((at) => `team-of-users-${at}`);
  return [{ state: "Owned", owners: [{ subset: "default" }], since: "2026-01-01T00:00:00Z", namespaces }];
}

async function makePod(at: number): Promise<void> {
  await client.create(PODS, podObject(`operator-${at % apps}`, "shop", `shop-${at}`, {}, [{ name: "POD_NAME", value: "x" }]));
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(numbers(CREATED_AT_ONCE).map(worker));
}
