// A proxy that registers routes which no manager has made, while the owners in other clusters follow from what pods have.
import fc from "fast-check";
import { expect, it } from "vitest";
import { budget } from "../../../test/support/fuzz.ts";
import { appPod, PLAIN_APP, proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, subset, table, unreportedFence } from "../../../test/support/route-table.ts";
import type { ClusterRoute } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import { planApp } from "./plan-app.ts";
import type { ProxyFacts } from "./proxy-facts.ts";

const { app: APP } = PLAIN_APP;
const SUBSETS = ["", "blue", "green"];
const PLACES = ["a", "b", "c"];
const cluster = (owner: string, more: object = { upstream: { url: "https://eu" } }): ClusterRoute => ({
  name: "eu",
  servers: ["eu:443"],
  drainMs: 60_000,
  owner,
  ...more,
});
const WHOLE = { name: "us", servers: ["us:443"] };
const tableOf = (owners: readonly string[]): RouteTable =>
  table(
    [subset("blue"), subset("green")],
    Object.fromEntries(PLACES.map((name, at) => [name, owners[at] === "blue" ? [0] : owners[at] === "green" ? [1] : []])),
  );
const ownersIn = (inside: RouteTable | undefined) =>
  PLACES.map((name) => {
    const rule = inside?.rules[inside.classes[inside.classOf.get(name) ?? -1]?.[0] ?? -1];
    return rule?.kind === "subset" ? rule.subset : "";
  });
const HOME = table([subset("blue")], { home: [0] });

function createApp(isPaused: boolean, trueOwners: readonly string[], usOwner: string) {
  let acknowledged: Readonly<Record<string, Snapshot>> = {};
  let ownersHashes: readonly string[] | undefined;
  let version = 1;
  const plan = (lie: Partial<ProxyFacts> | undefined, knows: boolean, reported: readonly string[] = ["blue", "green"]) => {
    const pauses = isPaused && acknowledged.blue !== undefined;
    return planApp({
      ...PLAIN_APP,
      subsets: SUBSETS,
      pods: ["blue", "green", "liar"].map((name) => appPod(name, name === "liar" ? "green" : name)),
      factsOf: (key) => {
        const name = key.split("/")[1] ?? "";
        if (name === "liar") return lie && proxyFacts(lie);
        return reported.includes(name) ? proxyFacts({ acknowledged: acknowledged[name] }) : undefined;
      },
      bySpec: HOME,
      clusters: [cluster("blue"), { ...cluster(pauses ? "green" : usOwner, {}), ...WHOLE }],
      clusterTables: new Map(knows ? [["eu", pauses ? tableOf(["green", "green", "green"]) : tableOf(trueOwners)]] : []),
      ownersHashes,
      isPaused: pauses,
    });
  };
  return {
    plan,
    /** Plans, writes the status, and lets the honest pods acknowledge. */
    run(...args: Parameters<typeof plan>) {
      const made = plan(...args);
      ({ ownersHashes } = made);
      version++;
      acknowledged = Object.fromEntries(
        ["blue", "green"].flatMap((of) => {
          const rules = made.rules.get(of);
          return rules === undefined ? [] : [[of, snapshot(rules.table, { ...rules, subset: of, app: APP, version })]];
        }),
      );
      return made;
    },
    hashes: () => ownersHashes ?? [],
    owners: ({ clusterTables, rules }: ReturnType<typeof plan>) => ({
      eu: ownersIn(clusterTables?.get("eu")),
      us: rules.get("blue")?.clusters?.find(({ name }) => name === "us")?.owner,
    }),
  };
}

const owner = fc.constantFrom("", "blue", "green");
const lie = fc.record({
  version: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.constant(2 ** 40)),
  owners: fc.tuple(owner, owner, owner),
  us: owner,
  hidden: fc.boolean(),
  as: fc.constantFrom("acknowledged", "inDoubt"),
});

interface Lie {
  readonly version: number;
  readonly owners: readonly string[];
  readonly us: string;
  readonly hidden: boolean;
  readonly as: string;
}

/** What the manager then knows of the proxy. */
function factsOf({ version, owners, us, hidden, as }: Lie): Partial<ProxyFacts> {
  const eu = tableOf(owners);
  const shown = hidden ? { ...eu, rules: [...eu.rules, unreportedFence()] } : eu;
  const clusters = [cluster("green"), { ...cluster(us, {}), ...WHOLE }];
  const claimed = snapshot(HOME, { app: APP, subset: "green", version, clusters, clusterTables: new Map([["eu", shown]]) });
  return as === "acknowledged" ? { acknowledged: claimed } : { inDoubt: [claimed] };
}

it.each([
  ["while its namespaces are not known", false, false],
  ["while the app is paused", true, true],
  ["while the app is paused and its namespaces are not known", true, false],
])("a proxy that lies about its routes takes nothing of another cluster %s", (_, isPaused, knows) => {
  fc.assert(
    fc.property(fc.tuple(owner, owner, owner), owner, fc.array(lie, { minLength: 1, maxLength: 4 }), (owners, us, lies) => {
      const app = createApp(isPaused, owners, us);
      app.run(undefined, true);
      app.run(undefined, true);
      const before = app.owners(app.run(undefined, true));
      expect(before.eu).toEqual(owners);
      for (const each of lies) {
        // A new leader may hear of the lie first. That does not make it a route of a manager.
        const early = app.plan(factsOf(each), knows, []);
        expect(early.ownersHashes?.filter((hash) => !app.hashes().includes(hash))).toEqual([]);
        expect(app.owners(app.run(factsOf(each), knows))).toEqual(before);
      }
      expect(app.owners(app.run(undefined, knows))).toEqual(before);
    }),
    budget(),
  );
});
