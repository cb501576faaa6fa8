// `node bench/proxies.ts`: measures the load that one manager can carry. Simulated proxies connect with real
// gRPC streams. The bench measures the time until all proxies have a new or relabelled namespace. It also
// measures the time until all have reconnected after a restart of the manager, or after kill -9 of the leader
// of two replicas. Prints a table, or JSON with --json.
//
// Options:
// - --proxies N: default 1000
// - --namespaces N: default 10000
// - --apps N: default 1
// - --rounds N: default 5
// - --processes N: default 2
// - --real: the real control plane instead of localkube
// - --plain: without TLS and tokens
// - --only changes,restart,failover: default all
import { parseArgs } from "node:util";
import { LEASES, NAMESPACES } from "../src/kube/client/resources.ts";
import { type FleetWorld, namespaceOf, startFleetWorld } from "../test/fleet/fleet-world.ts";
import type { Child } from "../test/support/child-process.ts";
import { eventually } from "../test/support/eventually.ts";
import { cpuSecondsOf, memoryOf } from "../test/support/process-memory.ts";

const { values } = parseArgs({
  options: {
    proxies: { type: "string", default: "1000" },
    namespaces: { type: "string", default: "10000" },
    apps: { type: "string", default: "1" },
    rounds: { type: "string", default: "5" },
    processes: { type: "string", default: "2" },
    real: { type: "boolean", default: false },
    plain: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    only: { type: "string", default: "changes,restart,failover" },
  },
});
const number = (text: string, name: string): number => {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1) return value;
  process.stderr.write(`bench: --${name} must be a positive integer\n`);
  process.exit(64);
};
const [proxies, namespaces, apps] = [
  number(values.proxies, "proxies"),
  number(values.namespaces, "namespaces"),
  number(values.apps, "apps"),
];
const [rounds, processes] = [number(values.rounds, "rounds"), number(values.processes, "processes")];
const sections = values.only.split(",");
const note = (text: string) => process.stderr.write(`bench: ${text}\n`);

interface Row {
  readonly name: string;
  /** Seconds. */
  readonly values: readonly number[];
  readonly atMost?: number;
}
const rows: Row[] = [];
const facts: Record<string, number | string> = {};

const wallMs = () => performance.timeOrigin + performance.now();
const median = (all: readonly number[]) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;

const beganMs = wallMs();
const world = await startFleetWorld({
  proxies,
  namespaces,
  apps,
  processes,
  real: values.real,
  identity: values.plain ? "none" : "mesh",
  note,
});
try {
  const createdMs = wallMs();
  note(`world created in ${((createdMs - beganMs) / 1000).toFixed(1)} s; waiting for all proxies`);
  let manager = await world.leader().then((child) => child ?? eventually(() => led(world), 60_000));
  rows.push({
    name: "all proxies served, after the last pod was created",
    values: [((await world.fleet.served()) - createdMs) / 1000],
  });
  usage("idle after the start", manager);
  if (sections.includes("changes")) await changes(world, manager);
  if (sections.includes("restart")) manager = await restart(world, manager);
  if (sections.includes("failover")) await failover(world, manager);
  const counts = await world.fleet.counts();
  Object.assign(facts, {
    "full snapshots sent": counts.wholes,
    "deltas sent": counts.deltas,
    registrations: counts.registrations,
    "MB to the proxies": Math.round(counts.bytes / 1e6),
    "MB from the proxies": Math.round(counts.bytesSaid / 1e6),
  });
} finally {
  await world.stop();
}
process.stdout.write(values.json ? `${JSON.stringify({ rows, facts })}\n` : report());

async function led(from: FleetWorld): Promise<Child | false> {
  return (await from.leader()) ?? false;
}

async function changes({ fleet, client, relabel }: FleetWorld, manager: Child): Promise<void> {
  note("new and relabelled namespaces");
  const births: number[] = [];
  const moves: number[] = [];
  const cpuBefore = cpuSecondsOf(manager.pid);
  for (let round = 0; round < rounds; round++) {
    const name = `born-${round}`;
    births.push(await timed(() => client.create(NAMESPACES, { metadata: { name } }), fleet.ownerKnown(name, "")));
    const moved = namespaceOf(round * 10 + 1);
    moves.push(await timed(() => relabel(moved, "canary"), fleet.ownerKnown(moved, "canary")));
    moves.push(await timed(() => relabel(moved, null), fleet.ownerKnown(moved, "")));
  }
  const cpu = cpuSecondsOf(manager.pid) - cpuBefore;
  rows.push({ name: "new namespace at all proxies", values: births, atMost: 2 });
  rows.push({ name: "relabelled namespace at all proxies, handover complete", values: moves, atMost: 2 });
  facts["manager CPU, seconds a change"] = (cpu / (rounds * 3)).toFixed(2);
  usage("after the changes", manager);
}

async function timed(change: () => Promise<unknown>, known: Promise<number>): Promise<number> {
  const startMs = wallMs();
  await change();
  return ((await known) - startMs) / 1000;
}

async function restart({ fleet, addManager, leader }: FleetWorld, old: Child): Promise<Child> {
  note("restart of the only manager");
  const { epoch } = await fleet.counts();
  await old.stop();
  const startMs = wallMs();
  const next = await addManager();
  const readyMs = wallMs();
  const servedMs = await fleet.served(epoch + 1);
  await eventually(leader);
  rows.push({
    name: "all proxies reconnected after a manager's restart, from its ready line",
    values: [(servedMs - readyMs) / 1000],
  });
  rows.push({
    name: "all proxies reconnected after a manager's restart, from its process start",
    values: [(servedMs - startMs) / 1000],
  });
  facts["manager CPU, seconds of start and reconnects"] = cpuSecondsOf(next.pid).toFixed(1);
  usage("after the reconnects", next);
  return next;
}

async function failover({ fleet, addManager, client, kill, relabel }: FleetWorld, old: Child): Promise<void> {
  note("kill -9 of the leader of two");
  const { epoch } = await fleet.counts();
  const next = await addManager();
  await eventually(async () => (await fetch(`${String(next.ready.health)}/readyz`)).ok);
  const lease = await client.get(LEASES, { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" });
  facts["lease duration, s"] = lease.spec?.leaseDurationSeconds ?? 0;
  const moved = namespaceOf(7);
  const startMs = wallMs();
  await kill(old);
  // A complete handover shows that all proxies are served again, since it needs the acknowledgement of every
  // live proxy.
  const [servedMs, movedMs] = await Promise.all([
    fleet.served(epoch + 1),
    relabel(moved, "canary").then(() => fleet.ownerKnown(moved, "canary")),
  ]);
  rows.push({ name: "kill -9 of the leader to all proxies served", values: [(servedMs - startMs) / 1000], atMost: 20 });
  rows.push({ name: "kill -9 of the leader to a complete handover", values: [(movedMs - startMs) / 1000], atMost: 20 });
  usage("after the failover", next);
}

function usage(when: string, { pid }: Child): void {
  const { rssMb, peakMb } = memoryOf(pid);
  facts[`manager RSS MB (peak) ${when}`] = `${rssMb} (${peakMb})`;
}

function report(): string {
  const lines = rows.map(({ name, values: all, atMost }) => {
    const worst = Math.max(...all);
    const target = atMost === undefined ? "" : ` target <= ${atMost} s: ${worst <= atMost ? "met" : "MISSED"}`;
    return `${name}: ${median(all).toFixed(2)} s${all.length > 1 ? ` (worst of ${all.length}: ${worst.toFixed(2)})` : ""}${target}`;
  });
  const title = `${proxies} proxies of ${apps} app(s), ${namespaces} namespaces, ${values.real ? "real control plane" : "localkube"}`;
  return `${[title, ...lines, ...Object.entries(facts).map(([name, value]) => `${name}: ${value}`)].join("\n")}\n`;
}
