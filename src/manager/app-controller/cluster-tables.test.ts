import { describe, expect, it } from "vitest";
import { compileHere } from "../../../test/support/compile.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { fleetCluster } from "../../../test/support/mesh-cluster.ts";
import { noEvictor } from "../../../test/support/no-evictor.ts";
import { table } from "../../../test/support/route-table.ts";
import { appsIn } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { silentLogger } from "../../base/log.ts";
import type { Labels } from "../../kube/label-selector.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import type { ClusterTables } from "../../mesh/ownership/snapshot.ts";
import { ownerText } from "../../mesh/ownership/words.ts";
import type { Request } from "../../runtime/reconciler.ts";
import { createStore, type WritableStore } from "../../runtime/store.ts";
import { acceptClusters } from "../apps/accept-clusters.ts";
import type { App } from "../apps/app.ts";
import { clusterRoutes } from "../apps/cluster-routes.ts";
import type { Compile } from "../apps/compile/compiler.ts";
import type { ClusterFacts, RouteSpec } from "../apps/compile/route-spec.ts";
import { createPublishedPlans } from "../apps/published-plans.ts";
import { createKnownDecisions } from "../decisions/known-decisions.ts";
import { createLabelStates } from "../labels/label-state.ts";
import { createProxyRegistry } from "../server/proxy-registry.ts";
import { wholeClusterRoute } from "../sharding/cluster-owners.ts";
import { createVirtualAppSource } from "../virtual-app/virtual-app-source.ts";
import { createClusterTables } from "./cluster-tables.ts";
import { createAppReconciler } from "./reconciler.ts";

const REF = { namespace: "fleet", name: "shop" };
const { signal } = new AbortController();
const never = (error: unknown) => {
  throw error;
};
const specOf = (match: object) => ({
  ...(sampleVirtualApp().spec as object),
  route: { subRules: [{ name: "part", match: [match] }] },
  subsets: [{ name: "blue", labels: { version: "blue" }, routeRules: ["part"] }],
});
const GOLD = { clusterSelector: { matchLabels: { region: "eu" } }, namespaceSelector: { matchLabels: { tier: "gold" } } };

function setup(names: readonly string[] = ["eu"], compile: Compile = compileHere, match: object = GOLD) {
  const [clock, client] = [createFakeClock(), createFakeKubeClient()];
  const virtualApps = createStore<VirtualApp>(never);
  const source = createVirtualAppSource();
  const apps = appsIn(virtualApps);
  const put = (spec: object, generation: number) =>
    virtualApps.replace([
      client.put(VIRTUAL_APPS, { ...(sampleVirtualApp() as object), spec, metadata: { ...REF, uid: "u", generation } } as never),
    ]);
  put(specOf(match), 1);
  const stores = new Map<string, WritableStore<KubeObject>>();
  const labels = new Map<string, Labels>(names.map((name) => [name, { region: "eu" }]));
  const accepted = () =>
    acceptClusters(
      names.map((name) =>
        fleetCluster(
          name,
          { servers: [`https://${name}.example`], interception: "Terminate", terminate: { kubeconfigSecret: name } },
          { labels: labels.get(name) },
        ),
      ),
    );
  const listeners: ((cluster: Request) => void)[] = [];
  const queued: string[] = [];
  const options = {
    source,
    client,
    store: virtualApps,
    compile,
    clock,
    log: silentLogger(),
    onCompiled: ({ name }: Request) => void queued.push(name),
    clusters: {
      of: accepted,
      decisions: createKnownDecisions(),
      routes: ({ spec }: Pick<App, "spec">) =>
        spec?.clusterOwners && clusterRoutes(accepted().accepted, spec.clusterOwners, new Map()),
    },
    watched: {
      storeOf: ({ name }: Request) => stores.get(name),
      onNamespaces: (listener: (cluster: Request) => void) => {
        listeners.push(listener);
        return () => undefined;
      },
    },
  };
  const tables = createClusterTables(options);
  let version = 0;
  return {
    clock,
    client,
    stores,
    labels,
    queued,
    tables,
    options,
    apps,
    edit: (to: object, generation: number) => put(specOf(to), generation),
    lose(name: string) {
      stores.delete(name);
      for (const listener of listeners) listener({ namespace: "fleet", name });
    },
    /** Stores the namespaces of a cluster, with their tiers. */
    know(cluster: string, tiers: Readonly<Record<string, string>>) {
      const store = stores.get(cluster) ?? createStore<KubeObject>(never);
      stores.set(cluster, store);
      store.replace(
        Object.entries(tiers).map(([name, tier]) => ({
          metadata: { name, uid: name, labels: { tier }, resourceVersion: `${++version}` },
        })),
      );
    },
    async tablesOf(): Promise<ClusterTables | undefined> {
      const app = apps.get("shop", "fleet");
      if (app === undefined) throw new Error("no app");
      return tables.tablesOf(app, signal);
    },
  };
}

/** The owners of pods in the namespaces of each cluster. */
function ownersIn(tables: ClusterTables | undefined, ...namespaces: readonly string[]) {
  return Object.fromEntries(
    [...(tables ?? [])].map(([name, table]) => {
      const { ownerOf } = ownersOf(table, "", "pods");
      return [name, namespaces.map((namespace) => ownerText(ownerOf(namespace)).replace(/^subset |the | subset/g, ""))];
    }),
  );
}

describe("the tables of an app inside other clusters", () => {
  it("cost one list of the specs for all clusters whose namespaces have changed", async () => {
    const names = Array.from({ length: 32 }, (_, index) => `c-${index}`);
    const world = setup(names);
    const lists = () => world.client.calls.splice(0).filter(({ verb }) => verb === "list").length;
    for (const name of names) world.know(name, { a: "gold" });
    await world.tablesOf();
    expect(lists()).toBe(1);
    for (const name of names) world.know(name, { a: "gold", b: "gold" });
    const tables = await world.tablesOf();
    expect([lists(), tables?.size, ownersIn(tables, "b")["c-31"]]).toEqual([1, 32, ['"blue"']]);
    await world.tablesOf();
    expect(lists()).toBe(0);
  });

  it("follow the namespaces of each cluster", async () => {
    const world = setup(["eu", "us"]);
    world.know("eu", { a: "gold", b: "silver" });
    world.know("us", { a: "silver" });
    const first = await world.tablesOf();
    expect(ownersIn(first, "a", "b")).toEqual({ eu: ['"blue"', "default"], us: ["default", "not known yet"] });
    world.know("eu", { b: "gold", c: "gold" });
    const next = await world.tablesOf();
    expect(ownersIn(next, "a", "b", "c").eu).toEqual(["not known yet", '"blue"', '"blue"']);
    expect(next?.get("us")).toBe(first?.get("us"));
  });

  it("compile only the namespaces that have changed", async () => {
    const compiled: number[] = [];
    const world = setup(["eu"], (route, namespaces, ...more) => {
      compiled.push(namespaces.length);
      return compileHere(route, namespaces, ...more);
    });
    world.know("eu", { a: "gold", b: "silver", c: "silver" });
    await world.tablesOf();
    world.stores.get("eu")?.upsert({ metadata: { name: "b", uid: "b", labels: { tier: "gold" }, resourceVersion: "99" } });
    await world.tablesOf();
    await world.tablesOf();
    expect(compiled).toEqual([3, 1]);
  });

  it("follow the spec, and the labels of the MeshCluster", async () => {
    const world = setup();
    world.know("eu", { a: "gold", b: "silver" });
    await world.tablesOf();
    world.edit({ clusters: ["eu"], namespaceRegex: "^b" }, 2);
    expect(ownersIn(await world.tablesOf(), "a", "b").eu).toEqual(["default", '"blue"']);
    world.edit(GOLD, 3);
    world.labels.set("eu", { region: "us" });
    expect(ownersIn(await world.tablesOf(), "a", "b").eu).toEqual(["default", "default"]);
  });

  it("lack a cluster whose namespaces are not known, and have the others", async () => {
    const world = setup(["eu", "us"]);
    world.know("us", { a: "gold" });
    expect(ownersIn(await world.tablesOf(), "a")).toEqual({ us: ['"blue"'] });
    world.lose("us");
    expect(await world.tablesOf()).toEqual(new Map());
    world.know("us", { a: "silver" });
    expect(ownersIn(await world.tablesOf(), "a")).toEqual({ us: ["default"] });
  });

  it("are none if no rule names clusters", async () => {
    const world = setup(["eu"], compileHere, { namespaceRegex: "^a" });
    world.know("eu", { a: "gold" });
    expect(await world.tablesOf()).toBeUndefined();
  });

  it("wait for no cluster that takes long: the app is queued when its table is there", async () => {
    const gate = Promise.withResolvers<void>();
    const world = setup(["eu", "us"], async (route, namespaces, ...more) => {
      if (namespaces.some(({ name }) => name === "slow")) await gate.promise;
      return compileHere(route, namespaces, ...more);
    });
    world.know("eu", { slow: "gold" });
    world.know("us", { a: "gold" });
    const answer = world.tablesOf();
    await world.clock.advance(150);
    expect(ownersIn(await answer, "a")).toEqual({ us: ['"blue"'] });
    gate.resolve();
    await world.clock.flush();
    expect(world.queued).toContain("shop");
    expect(ownersIn(await world.tablesOf(), "slow").eu).toEqual(['"blue"']);
  });

  it("that cannot be checked with the API server at home fail nothing, and are tried again", async () => {
    const world = setup();
    world.know("eu", { a: "gold" });
    world.client.before = ({ verb }) => {
      if (verb === "list") throw new StatusError("TooManyRequests", "slow down");
    };
    expect(await world.tablesOf()).toEqual(new Map());
    await world.clock.advance(5_000);
    expect(world.queued).toEqual(["shop"]);
    world.client.before = () => undefined;
    expect(ownersIn(await world.tablesOf(), "a").eu).toEqual(['"blue"']);
  });
});

describe("the namespaces of a cluster that the manager does not read", () => {
  const inForce = table([], { a: [], b: [] });
  const tablesFor = (readsNamespaceLabels: boolean) => {
    const world = setup();
    const source = { ...world.options.source, readsNamespaceLabels };
    const tables = createClusterTables({ ...world.options, source });
    const routes: RouteSpec[] = [];
    const clusterRoute = (_: ClusterFacts, owner: string) => {
      const route = routes.find(({ rules }) => rules.some((rule) => rule.kind === "subset" && rule.subset === owner));
      if (route === undefined) routes.push(wholeClusterRoute(owner));
      return route ?? routes.at(-1);
    };
    const [app] = world.apps.list("fleet");
    if (app?.spec === undefined) throw new Error("no app");
    const byNames = tables.byNames({ ...app, spec: { ...app.spec, clusterRoute } });
    const eu = { name: "eu", servers: [], drainMs: 0, owner: "blue" };
    return { world, byNames: (cluster = eu, names = inForce) => byNames?.(cluster, names) };
  };

  it("follow rules that need only the names which pods have, and the same table is not compiled again", () => {
    const { byNames } = tablesFor(false);
    const made = byNames();
    expect(ownersIn(new Map(made && [["eu", made]]), "a", "b", "c")).toEqual({ eu: ['"blue"', '"blue"', "not known yet"] });
    expect(byNames()).toBe(made);
  });

  it("have no table by rules about labels, in an unknown cluster, and once the manager reads them", () => {
    expect(tablesFor(true).byNames()).toBeUndefined();
    const { world, byNames } = tablesFor(false);
    expect(byNames({ name: "gone", servers: [], drainMs: 0, owner: "blue" })).toBeUndefined();
    world.know("eu", { a: "gold" });
    expect(byNames()).toBeUndefined();
  });
});

it("a cluster that does not answer changes nothing of the routes at home, and its own routes are closed", async () => {
  const world = setup(["eu", "us"], compileHere, { clusters: ["eu", "us"], namespaceRegex: "^a" });
  const namespaces = createStore<KubeObject>(never);
  namespaces.replace([{ metadata: { name: "home", uid: "h", resourceVersion: "1" } }]);
  const plans = createPublishedPlans();
  const reconciler = createAppReconciler({
    ...world.options,
    apps: world.apps,
    namespaces,
    plans,
    services: { list: () => undefined, forget: () => undefined },
    replicaSets: { list: () => undefined, forget: () => undefined },
    evictor: noEvictor,
    labels: createLabelStates(new Map()),
    pods: { list: () => [], get: () => undefined },
    past: { gone: () => [], goneAbroad: () => [], isStatusLate: () => false, mayHaveEarlierRoutes: () => false },
    registry: createProxyRegistry({ log: silentLogger() }),
    events: { event: () => undefined },
  });
  world.know("us", { a: "gold" });
  await reconciler.reconcile(REF, signal);
  const rules = plans.get({ ...REF })?.plan.rules.get("blue");
  expect([...(rules?.table.classOf.keys() ?? [])]).toContain("home");
  expect(rules?.clusters?.map(({ name, isFenced, upstream }) => [name, isFenced, upstream?.url])).toEqual([
    ["eu", true, "https://eu.example"],
    ["us", true, "https://us.example"],
  ]);
  expect(ownersIn(rules?.clusterTables, "a")).toEqual({ us: ['"blue"'] });
});
