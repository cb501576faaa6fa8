// `node bench/plan.ts`: measures the CPU time of one plan of an app, which holds the event loop: 64 shards
// and 10,000 namespaces, before, during and after moves, and with tables that a stranger has made as large as
// a registration may bring them.
//
// Options: --shards N (default 64), --namespaces N (10000), --rounds N (5), --json.
import { parseArgs } from "node:util";
import { readForeignTable } from "../src/manager/server/foreign-table.ts";
import { createNameIndex } from "../src/manager/server/known-namespaces.ts";
import { NO_REPORTS } from "../src/mesh/contract/messages.ts";
import { tableToBytes } from "../src/mesh/contract/table-json.ts";
import type { AppFacts } from "../src/mesh/handover/app-facts.ts";
import { type AppPlan, planApp } from "../src/mesh/handover/plan-app.ts";
import { type ProxyFacts, podKey } from "../src/mesh/handover/proxy-facts.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../src/mesh/ownership/snapshot.ts";
import type { RouteTable } from "../src/mesh/ownership/table.ts";
import { appPod } from "../test/support/pod-facts.ts";
import { group, sharded, subset, table } from "../test/support/route-table.ts";

const { values } = parseArgs({
  options: {
    shards: { type: "string", default: "64" },
    namespaces: { type: "string", default: "10000" },
    rounds: { type: "string", default: "5" },
    json: { type: "boolean", default: false },
  },
});
const [shards, namespaces, rounds] = [Number(values.shards), Number(values.namespaces), Number(values.rounds)];
const APP = { namespace: "shop", name: "app" };
const subsets = [...Array.from({ length: shards }, (_, at) => `shard-${at}`), ""];
const RESOURCES = [group("apps"), group("", "configmaps", "secrets")];

/** The family with this many of its shards in use. */
function family(active: number, shift = 0): RouteTable {
  const rules = [sharded(...RESOURCES), ...Array.from({ length: shards }, (_, at) => subset(`shard-${at}`, ...RESOURCES))];
  const members = Array.from(
    { length: namespaces },
    (_, at) => [`namespace-${at}`, [1 + ((at + shift) % active)]] as [string, number[]],
  );
  return table(rules, Object.fromEntries([["", [1]], ...members]));
}

interface Held {
  readonly acknowledged: RouteTable | ((subset: string) => RouteTable);
  readonly outstanding?: (subset: string) => RouteTable;
}

function factsOf(bySpec: RouteTable, { acknowledged, outstanding }: Held): AppFacts {
  const snapshot = (of: RouteTable, own: string): Snapshot => ({
    version: 1,
    digest: "d",
    app: APP,
    subset: own,
    podNamespace: "shop",
    lockName: "lock",
    table: of,
    callers: NO_CALLER_POLICY,
  });
  const pods = subsets.map((name) => appPod(`pod-${name}`, name));
  const known = new Map<string, ProxyFacts>(
    pods.map((pod) => {
      const enforced = typeof acknowledged === "function" ? acknowledged(pod.subset) : acknowledged;
      const sent = outstanding?.(pod.subset);
      return [
        podKey(pod),
        {
          ...NO_REPORTS,
          connected: true,
          inDoubt: [],
          mayHoldMore: false,
          version: 1,
          problems: {},
          capabilities: new Set<string>(),
          acknowledged: snapshot(enforced, pod.subset),
          outstanding: sent === undefined ? undefined : snapshot(sent, pod.subset),
        },
      ];
    }),
  );
  return {
    app: APP,
    pods,
    factsOf: (key) => known.get(key),
    bySpec,
    subsets,
    lockName: "lock",
    callers: NO_CALLER_POLICY,
    words: undefined,
    guard: undefined,
    isPaused: false,
    maxMovingPercent: undefined,
    retainsLosses: true,
  };
}

const tableIn = (plan: AppPlan) => (name: string) => plan.rules.get(name)?.table ?? plan.desired;
const rows: { readonly name: string; readonly firstMs: number; readonly againMs: number }[] = [];

/** @param prepare makes new facts each time, so that nothing is known of them */
function measure(name: string, prepare: () => AppFacts): void {
  const [first, again]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const facts = prepare();
    for (const times of [first, again]) {
      const before = process.cpuUsage();
      const plan = planApp(facts);
      for (const pod of facts.pods) plan.rulesFor(pod);
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1000);
    }
  }
  const median = (all: number[]) => Math.round(all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN);
  rows.push({ name, firstMs: median(first), againMs: median(again) });
}

measure("steady", () => factsOf(family(shards), { acknowledged: family(shards) }));
for (const [name, before] of [
  ["scale-up", () => family(shards - 1)],
  ["every namespace moves", () => family(shards, 1)],
] as const) {
  measure(`${name}: the edit`, () => factsOf(family(shards), { acknowledged: before() }));
  measure(`${name}: the fences are sent`, () => {
    const [desired, old] = [family(shards), before()];
    return factsOf(desired, { acknowledged: old, outstanding: tableIn(planApp(factsOf(desired, { acknowledged: old }))) });
  });
  measure(`${name}: the fences are acknowledged`, () => {
    const [desired, old] = [family(shards), before()];
    return factsOf(desired, { acknowledged: tableIn(planApp(factsOf(desired, { acknowledged: old }))) });
  });
}

const NAMES = Array.from({ length: namespaces }, (_, at) => `namespace-${at}`);
const INDEX = createNameIndex(NAMES);
const many = (count: number) => Array.from({ length: count }, (_, at) => at);

/** Each namespace has a class of its own, of many rules. */
function manyClasses(seed: number): RouteTable {
  const names = [...NAMES, ...many(4_000).map((at) => `unknown-${at}`)];
  const rules = many(8_448).map((at) => subset(`shard-${at % 8}`, group("apps", `kind-${at % 4}s`)));
  return table(
    rules,
    Object.fromEntries(names.map((name, at) => [name, many(9).map((rule) => ((at + seed) % 8_000) + rule * 20)])),
  );
}
/** As many resources as possible move as a whole. */
function manyResources(seed: number): RouteTable {
  const named = many(510).map((at) => group("apps", `kind-${seed}-${at}s`));
  return table([sharded(...named), subset("shard-0")], Object.fromEntries([["", [1]], ...NAMES.map((name) => [name, [1]])]));
}
const foreign = (of: RouteTable): RouteTable => {
  const bytes = tableToBytes(of);
  const before = process.cpuUsage();
  const found = readForeignTable(bytes, { left: 64 * 1024 * 1024 }, INDEX);
  const { user } = process.cpuUsage(before);
  process.stderr.write(`read a table of ${bytes.length} bytes in ${Math.round(user / 1000)} ms; it counts ${found?.bytes}\n`);
  if (found === undefined) throw new Error("the table is refused");
  return found.table;
};
for (const [name, make] of [
  ["many classes", manyClasses],
  ["many resources", manyResources],
] as const) {
  for (const count of [1, 16]) {
    const shared = family(shards);
    measure(`${count} foreign of ${name}`, () => {
      const tables = many(count).map((seed) => foreign(make(seed)));
      const facts = factsOf(shared, { acknowledged: shared });
      const [pod] = facts.pods;
      if (pod === undefined) throw new Error("no pod");
      const own = facts.factsOf(podKey(pod));
      const claims = tables.map((of) => ({ ...(own?.acknowledged as Snapshot), table: of }));
      const evil = { ...(own as ProxyFacts), acknowledged: claims[0], inDoubt: claims.slice(1) };
      return { ...facts, factsOf: (key) => (key === podKey(pod) ? evil : facts.factsOf(key)) };
    });
  }
}

const line = ({ name, firstMs, againMs }: (typeof rows)[number]) =>
  `${name.padEnd(48)} ${String(firstMs).padStart(6)} ms, again ${againMs} ms`;
process.stdout.write(values.json ? `${JSON.stringify(rows)}\n` : `${rows.map(line).join("\n")}\n`);
