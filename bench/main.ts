// `npm run bench`: measures the cost of the proxy on the real control plane. Direct requests and proxied
// requests alternate in one run. Prints medians, ratios and targets as a table, or as JSON with --json. A run
// with 100,000 objects takes about ten minutes.
//
// Options: --objects N (default 10000), --rounds N (default 5), --only
// requests,cold,policies,lists,shards,watches,webhooks,scale-out (default all), compare or clusters. "lists" runs without and with
// the feature gate of shardSelector, "shards" only with it. "scale-out" has sizes of its own. --against BINARY runs
// only "compare" (3 rounds), with the proxy of another mesh beside ours.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { measureClusters } from "./clusters/clusters.ts";
import { renderClusters } from "./clusters/table.ts";
import { coldRows } from "./cold.ts";
import { compare } from "./compare/compare.ts";
import { whyNotRunnable } from "./compare/other-proxy.ts";
import { renderComparison } from "./compare/table.ts";
import { type ListWork, listRows } from "./lists.ts";
import { backoffMemory, matchingRules, policyRows } from "./policies.ts";
import { bareRows, requestRows } from "./requests.ts";
import { scaleOut } from "./scale-out/scale-out.ts";
import { renderScaleOut } from "./scale-out/table.ts";
import { readyAfterMs } from "./startup.ts";
import { type Fact, type Row, renderReport, type Target, type Usage } from "./table.ts";
import { bareWatchRows, idleWatches, watchRows } from "./watches.ts";
import { webhookRows } from "./webhooks/webhooks.ts";
import { namespaceName, startWorld, type World } from "./world.ts";

const SECTIONS = ["requests", "cold", "policies", "lists", "shards", "watches", "webhooks", "scale-out"] as const;
/** Runs only by name, or with --against. */
const COMPARE = "compare";
/** Runs only by name. */
const CLUSTERS = "clusters";
/** These have worlds of their own. */
const OTHERS = ["shards", "webhooks", "scale-out", COMPARE, CLUSTERS];
const { values } = parseArgs({
  options: {
    objects: { type: "string", default: "10000" },
    rounds: { type: "string" },
    only: { type: "string" },
    against: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const objects = Number(values.objects);
const { against } = values;
const rounds = Number(values.rounds ?? 5);
const sections = (values.only ?? (against === undefined ? SECTIONS.join(",") : COMPARE)).split(",");
if (!Number.isInteger(objects) || objects < 200) usageError("--objects must be an integer of at least 200");
if (!Number.isInteger(rounds) || rounds < 1) usageError("--rounds must be an integer of at least 1");
for (const section of sections)
  if (![...SECTIONS, COMPARE, CLUSTERS].includes(section))
    usageError(`--only: ${section} is none of ${[...SECTIONS, COMPARE, CLUSTERS].join(", ")}`);
if (against !== undefined && !sections.includes(COMPARE)) usageError("--against needs the section compare");
const unusable = against === undefined ? undefined : whyNotRunnable(against);
if (unusable !== undefined) usageError(`--against: ${unusable}`);

const BY_NAMESPACE = "20 namespaces of 200, listed one by one";
const rows: Row[] = [];
const usage: Usage[] = [];
const facts: Fact[] = [];
const note = (text: string) => process.stderr.write(`bench: ${text}\n`);

if (sections.some((section) => !OTHERS.includes(section))) {
  await withWorld({ objects }, async (world) => {
    const { direct, bare, one, tenth, most } = world;
    usage.push(world.usage(tenth, "start (idle)"));
    if (sections.includes("requests")) {
      note("small requests");
      rows.push(...(await requestRows({ direct, proxied: one, rounds })), ...(await bareRows({ direct, proxied: bare, rounds })));
    }
    if (sections.includes("cold")) {
      note("requests of a new proxy");
      rows.push(...(await coldRows({ direct, proxied: one, rounds: Math.min(rounds, 3) })));
    }
    if (sections.includes("policies")) {
      note("policies");
      rows.push(...(await policyRows(world, rounds)));
      facts.push(...matchingRules(), ...backoffMemory());
    }
    if (sections.includes("lists")) {
      note("lists");
      const lists: ListWork[] = [
        { plan: "by-namespace", name: BY_NAMESPACE, side: tenth, targets: { JSON: atMost(0.18), protobuf: atMost(0.22) } },
        { plan: "by-namespace", name: BY_NAMESPACE, isWatch: true, side: tenth },
        { plan: "none", name: "proxy-side filtering, 1 of 10 kept", isWatch: true, isOneList: true, side: tenth },
        {
          plan: "none",
          isOneList: true,
          name: "proxy-side filtering, 1 of 10 kept",
          side: tenth,
          targets: { JSON: atMost(1), protobuf: atMost(1) },
        },
        {
          plan: "one-namespace",
          name: "server-side filtering, 1 namespace of 200",
          side: one,
          targets: { JSON: atMost(0.35), protobuf: atMost(0.35) },
        },
        { plan: "without-namespaces", name: "server-side filtering, all but 5 namespaces", side: most },
      ];
      rows.push(...(await listRows(direct, lists, { objects, rounds, apiServerPid: world.kube.pid })));
      usage.push(world.usage(tenth, `lists of ${objects}, proxy-side filtering`));
    }
    if (sections.includes("watches")) {
      note("watches");
      const serverSide = { name: "server-side filtering", side: one, namespace: namespaceName(0), isPushedDown: true };
      const proxySide = { name: "proxy-side filtering", side: tenth, namespace: namespaceName(1) };
      for (const [rate, events] of [
        [50, 1_500],
        [1_000, 10_000],
      ] as const) {
        for (const work of [serverSide, proxySide]) rows.push(...(await watchRows(world, { ...work, rate, events })));
        rows.push(...(await bareWatchRows(world, { namespace: namespaceName(0), rate, events })));
      }
      usage.push(await idleWatches(world, tenth));
    }
    note("an idle minute");
    await sleep(60_000);
    usage.push(world.usage(tenth, "an idle minute"));
    facts.push({ name: "ready after, ms, with a stored snapshot", value: (await readyAfterMs(one, 5)).toFixed(0) });
  });
}
if (sections.includes("shards") || sections.includes("lists")) {
  await withWorld({ objects, featureGates: "ShardedListAndWatch=true" }, async (world) => {
    note("lists with the feature gate of shardSelector");
    const lists: ListWork[] = [
      { plan: "by-namespace", name: `${BY_NAMESPACE}, with the gate`, side: world.tenth },
      { plan: "shards", isOneList: true, name: "20 namespaces of 200 by shardSelector", side: world.tenth },
    ];
    rows.push(...(await listRows(world.direct, lists, { objects, rounds, apiServerPid: world.kube.pid })));
    usage.push(world.usage(world.tenth, `lists of ${objects} by shardSelector`));
  });
}
if (sections.includes("webhooks")) {
  note("the operator's webhooks");
  rows.push(...(await webhookRows(rounds)));
}
const compared = sections.includes(COMPARE)
  ? await compare({ objects, rounds: Number(values.rounds ?? 3), against, note })
  : undefined;
const costs = sections.includes(CLUSTERS) ? await measureClusters(rounds, note) : undefined;
const scaled = sections.includes("scale-out") ? await scaleOut(note) : undefined;
const tables = [
  ...(rows.length > 0 ? [renderReport({ rows, usage, facts })] : []),
  ...(compared === undefined ? [] : [renderComparison(compared)]),
  ...(costs === undefined ? [] : [renderClusters(costs)]),
  ...(scaled === undefined ? [] : [renderScaleOut(scaled)]),
];
process.stdout.write(
  `${values.json ? JSON.stringify({ rows, usage, facts, compare: compared, clusters: costs, scaleOut: scaled }) : tables.join("\n\n")}\n`,
);

function atMost(ratio: number): Target {
  return { of: "ratio", atMost: ratio };
}

async function withWorld(options: Parameters<typeof startWorld>[0], run: (world: World) => Promise<void>): Promise<void> {
  const world = await startWorld(options, note);
  try {
    await run(world);
  } finally {
    await world.stop();
  }
}

function usageError(message: string): never {
  process.stderr.write(`bench: ${message}\n`);
  process.exit(64);
}
