// What the commands say of the other clusters of apps.
import { describe, expect, it } from "vitest";
import { type FakeObject, movingApp, movingSlice, startCli } from "../../test/support/cli.ts";
import { cliOfMesh } from "../../test/support/cli-of-mesh.ts";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { meshClusterOf, movingCluster } from "../../test/support/mesh-cluster.ts";
import { samplePlacement, sampleShardingRoot } from "../../test/support/sharding-config.ts";
import { routes } from "../../test/support/test-routes.ts";
import { sampleVirtualApp } from "../../test/support/virtual-app.ts";
import { formatPlacement } from "../manager/sharding/stored-placement.ts";
import { enforced } from "../mesh/ownership/enforced.ts";
import { clusterPage } from "../proxy/debug-pages.ts";
import { ownersPage } from "../proxy/owners-page.ts";
import { EXIT } from "./frame/exit.ts";

const since = new Date(createFakeClock().now() - 41_000).toISOString();
const moving = { ...meshClusterOf("eu-1", "eu"), status: movingCluster("v2", "shop-1", since) };
const settled = { ...meshClusterOf("us-1", "us"), status: { owners: [{ app: "shop", subset: "default" }] } };
const app = {
  ...sampleVirtualApp({
    route: { subRules: [{ name: "canary-eu", match: [{ clusterSelector: { matchLabels: { region: "eu" } } }] }] },
  }),
  metadata: { name: "shop", namespace: "ops" },
} as unknown as FakeObject;
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { namespace: "ops", name: "shop-0", labels: { "ctrlmesh.kruise.io/virtual-app-injected": "shop" } },
  status: { phase: "Running" },
} as unknown as FakeObject;

describe("explain owner of another cluster", () => {
  function cliWith(...objects: FakeObject[]) {
    const cli = startCli([pod, moving, ...objects]);
    const clusters = [{ name: "eu-1", servers: ["eu-1.example:6443"], drainMs: 60_000, owner: "v2", isFenced: true as const }];
    const { snapshot } = enforced(routes(17, {}, { subset: "v2", app: { namespace: "ops", name: "shop" }, clusters }));
    const deps = { gate: { closedFor: undefined }, home: { leftMs: () => 1, authorization: "x" } };
    cli.sidecars.set("shop-0", {
      "/debug/owner": (query) => clusterPage(query, { ...deps, session: { current: enforced(snapshot) } }),
    });
    return cli;
  }

  it.each(["MeshCluster/eu-1", "cluster/eu-1", "meshcluster/", "meshcluster", "mcl"])(
    "has to be named as meshcluster/NAME, and %s is refused",
    async (target) => {
      const { code, stderr } = await cliWith(app).run("explain", "owner", target);
      expect([code, stderr]).toEqual([
        EXIT.usage,
        expect.stringContaining("name a namespace, or another cluster as meshcluster/NAME"),
      ]);
    },
  );

  it("says who owns it by the routes, by which rule, why it is not ready, and what to ask next", async () => {
    const { code, stdout } = await cliWith(app).run("explain", "owner", "meshcluster/eu-1");
    expect(code).toBe(EXIT.ok);
    expect(stdout).toBe(`APP       POD     SUBSET  ROUTE  OWNER OF eu-1  CONNECT NOW
ops/shop  shop-0  v2      17     subset "v2"    CLUSTER_MOVES

by the spec of ops/shop and the labels of the MeshCluster as they are now:
  ORDER  RULE                          SUBSET   MATCH        WHY
  1      subRules[canary-eu].match[0]  v2       yes          clusterSelector region=eu, and the labels match
  2      (no rule)                     default  not reached  subRules[canary-eu].match[0] has decided

MeshCluster ops/eu-1:
  Enforced is False (Moving) for 41s: shop: pod shop-1 has not given up the cluster yet; subset "v2" waits for the cluster
  next: ctrlmesh explain request shop-1 connect eu-1.example:6443 -n ops
`);
  });

  it("says between how many shards the hash decides", async () => {
    const status = { placement: formatPlacement(samplePlacement()), family: "shop" };
    const root = { ...sampleShardingRoot({ clusterSelector: {} }), status } as unknown as FakeObject;
    const { stdout } = await cliWith(root).run("explain", "owner", "mcl/eu-1");
    expect(stdout).toMatch(
      /root.clusterSelector +shop-\d-normal +yes +clusterSelector \{\}, and the labels match; 1 shard shares 1 cluster/,
    );
  });

  it("says what a PlacementDecision names for a root, and that a missing one leaves the cluster with its shard", async () => {
    const status = { placement: formatPlacement(samplePlacement()), family: "shop" };
    const root = { ...sampleShardingRoot({ clustersFrom: { placementDecision: "fleet" } }), status } as unknown as FakeObject;
    const slice = {
      apiVersion: "multicluster.x-k8s.io/v1alpha1",
      kind: "PlacementDecision",
      metadata: { name: "a", namespace: "ops", labels: { "multicluster.x-k8s.io/decision-key": "fleet" } },
    };
    const explain = async (...decisions: object[]) =>
      (await cliWith(root, ...(decisions as FakeObject[])).run("explain", "owner", "mcl/eu-1")).stdout;
    expect(await explain({ ...slice, decisions: [{ clusterProfileRef: { name: "eu-1" } }] })).toMatch(
      /root.clustersFrom +shop-\d-normal +yes +PlacementDecision fleet names eu-1; 1 shard shares 1 cluster/,
    );
    expect(await explain({ ...slice, decisions: [] })).toMatch(
      /root.clustersFrom +\(no shard\) +no +PlacementDecision fleet does not name eu-1$/m,
    );
    expect(await explain()).toMatch(/root.clustersFrom .* there is no PlacementDecision with the decision-key fleet/);
  });

  it("gives programs one document", async () => {
    const { stdout } = await cliWith(app).run("explain", "owner", "mcl/eu-1", "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "OwnerAnswerList",
      cluster: "eu-1",
      items: [{ pod: "shop-0", owner: 'subset "v2"', access: "CLUSTER_MOVES" }],
      explained: [{ app: "ops/shop", rules: [{ match: "yes" }, { match: "not reached" }] }],
      waitingOn: ["shop-1"],
    });
  });

  it("says that there is no such MeshCluster, and takes no resource", async () => {
    expect(await cliWith(app).run("explain", "owner", "mcl/eu-9")).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining("there is no MeshCluster eu-9 in namespace ops"),
    });
    expect((await cliWith(app).run("explain", "owner", "mcl/eu-1", "--resource", "pods")).code).toBe(EXIT.usage);
  });
});

describe("/debug/owner of another cluster", () => {
  const page = (clusters: Parameters<typeof routes>[2], home = true) =>
    clusterPage(new URLSearchParams({ cluster: "eu-1" }), {
      session: { current: enforced(enforced(routes(17, {}, { subset: "v2", ...clusters })).snapshot) },
      gate: { closedFor: undefined },
      home: home ? { leftMs: () => 1, authorization: "x" } : undefined,
    });
  const eu = { name: "eu-1", servers: ["eu-1:443"], drainMs: 1, owner: "v2" };

  it("says what a connection gets", () => {
    expect(page({ clusters: [eu] })).toMatchObject({ owner: 'subset "v2"', access: "open" });
    expect(page({ clusters: [{ ...eu, owner: "" }] })).toMatchObject({
      owner: "the default subset",
      access: "CLUSTER_NOT_OWNED",
    });
    expect(page({ clusters: [] })).toMatchObject({ owner: "every pod" });
    expect(page({ clusters: [eu] }, false)).toMatchObject({ access: expect.stringContaining("no annotation") });
  });
});

describe("status", () => {
  it("counts the other clusters of an app, and shows those that wait for a pod", async () => {
    const { stdout } = await startCli([movingApp(), moving, settled]).run("status");
    expect(stdout).toContain(`  2 other clusters, 1 with a problem:
    eu-1 of v2: Enforced is False (Moving) for 41s: shop: pod shop-1 has not given up the cluster yet; subset "v2" waits for the cluster
    what helps: docs/reference/status.md#meshcluster
`);
    expect((await startCli([movingApp(), settled]).run("status")).stdout).toContain("  1 other cluster, each with one owner\n");
    const divided = { ...meshClusterOf("eu-1", "eu"), status: { namespaces: [{ app: "shop", total: 0 }] } };
    const counted = (owned: object[]) => ({
      namespaces: [
        { app: "shop", total: 3, owned },
        { app: "other", total: 9 },
      ],
    });
    const eu = {
      ...divided,
      status: counted([
        { subset: "v2", count: 1 },
        { subset: "default", count: 2 },
      ]),
    };
    const ap = { ...meshClusterOf("ap-1", "ap"), status: counted([{ subset: "v2", count: 3 }]) };
    expect((await startCli([movingApp(), eu, ap]).run("status")).stdout).toContain(
      "  2 other clusters, divided by namespace; of 6 namespaces there: v2 4, default 2\n",
    );
    expect((await startCli([movingApp(), divided, settled]).run("status")).stdout).toContain(
      "  2 other clusters, 1 divided by namespace, the others each with one owner\n",
    );
    expect((await startCli([movingApp(), meshClusterOf("eu-1", "eu")]).run("status")).stdout).not.toContain("other cluster");
  });

  it("gives programs the clusters of each app", async () => {
    const { stdout } = await startCli([movingApp(), moving]).run("status", "-o", "json");
    expect(JSON.parse(stdout).items[0].clusters).toMatchObject([
      { name: "eu-1", subset: "v2", ready: { status: "False", reason: "Moving" }, waitingOn: ["shop-1"] },
    ]);
  });
});

describe("OwnershipSlices with other clusters", () => {
  const owned = (subset: string, name: string) => ({ state: "Owned", owners: [{ subset }], since, clusters: [name] });
  const sliceOf = (...ownership: object[]) => movingSlice({ places: ownership.length, moving: 0, ownership });

  it("are shown by owners, behind the namespaces", async () => {
    const home = { state: "Owned", owners: [{ subset: "default" }], since, namespaces: ["a"] };
    const { stdout } = await startCli([sliceOf(owned("v2", "eu-1"), home)]).run("owners");
    expect(stdout).toBe(`APP       PLACE           OWNER    STATE  SINCE
ops/shop  a               default  Owned  41s
ops/shop  (cluster eu-1)  v2       Owned  41s
`);
  });

  it("with two owners of one cluster are an error of check", async () => {
    const cli = cliOfMesh({ apps: [movingApp({ routeVersion: 17 })] });
    const slices = cli.objects.filter(({ kind }) => kind === "OwnershipSlice");
    for (const slice of slices) cli.objects.splice(cli.objects.indexOf(slice), 1);
    cli.objects.push(sliceOf(owned("v2", "eu-1"), owned("default", "eu-1")));
    const { code, stdout } = await cli.run("check");
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("(cluster eu-1) is owned by v2 and by default");
  });

  it("are compared by diff with what a sidecar enforces", async () => {
    const cli = startCli([pod, movingApp({ routeVersion: 17 }), sliceOf(owned("v2", "eu-1"), owned("v2", "eu-2"))]);
    const clusters = [
      { name: "eu-1", servers: ["eu-1:443"], drainMs: 1, owner: "v2" },
      { name: "eu-2", servers: ["eu-2:443"], drainMs: 1, owner: "" },
    ];
    const held = { ...routes(17, {}, { subset: "v2" }), clusters };
    cli.sidecars.set("shop-0", {
      "/debug/owners": (query) => ownersPage(query, held),
      "/debug/policies": () => ({ rules: { first: [], truncated: false } }),
    });
    const { stdout } = await cli.run("diff", "shop-0");
    expect(stdout).toMatch(/^\(cluster eu-2\) +v2, Owned +default$/m);
    expect(stdout).not.toContain("eu-1");
  });
});
