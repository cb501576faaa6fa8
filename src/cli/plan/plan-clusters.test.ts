// `ctrlmesh plan` of edits that divide other clusters.
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { type FakeObject, startCli } from "../../../test/support/cli.ts";
import { meshClusterOf as cluster } from "../../../test/support/mesh-cluster.ts";
import { samplePlacement, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { formatPlacement } from "../../manager/sharding/stored-placement.ts";
import { EXIT } from "../frame/exit.ts";

const CLUSTERS = [cluster("eu-1", "eu"), cluster("us-1", "us")] as const;
const givesTo = (region: string, route: object = {}) =>
  sampleVirtualApp({
    route: { subRules: [{ name: "canary-eu", match: [{ clusterSelector: { matchLabels: { region } } }] }], ...route },
  });
const NO_CLUSTER = sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match: [{ namespaceRegex: "^canary" }] }] } });
const stored = (app: object): FakeObject =>
  ({ ...app, metadata: { name: "shop", namespace: "ops", generation: 3 }, status: {} }) as unknown as FakeObject;

async function plan(files: readonly object[], objects: readonly FakeObject[], ...flags: string[]) {
  const cli = startCli([...objects]);
  cli.files.set("edit.yaml", files.map((file) => stringify(file)).join("---\n"));
  return cli.run("plan", ...(files.length > 0 ? ["-f", "edit.yaml"] : []), ...flags);
}

describe("plan of an edit that gives a cluster to another subset", () => {
  it("names the cluster, its owners, and for how long no pod can write there", async () => {
    expect(await plan([givesTo("us")], [...CLUSTERS, stored(givesTo("eu"))])).toMatchObject({
      code: EXIT.findings,
      stdout: `VirtualApp ops/shop: 2 of 2 clusters get other owners
  clusters v2 -> default  1  eu-1
  clusters default -> v2  1  us-1
  no pod can write there for up to 60 s (drainSeconds), longer if a pod has no annotation egress: eu-1, us-1
`,
    });
  });

  it("gives programs each cluster", async () => {
    const { stdout } = await plan([givesTo("us")], [...CLUSTERS, stored(givesTo("eu"))], "-o", "json");
    const clusterMoves = [
      { cluster: "eu-1", from: "v2", to: "default", drainSeconds: 60 },
      { cluster: "us-1", from: "default", to: "v2", drainSeconds: 60 },
    ];
    expect(JSON.parse(stdout)).toMatchObject({ apps: [{ moves: [], clusterMoves, clusterTotal: 2 }] });
  });

  it("closes all clusters at the first rule, and opens them at the last", async () => {
    const first = await plan([givesTo("eu")], [...CLUSTERS, stored(NO_CLUSTER)]);
    expect(first.stdout).toContain("clusters every pod -> v2       1  eu-1\n");
    expect(first.stdout).toContain(
      "no pod can write there for up to 60 s (drainSeconds), longer if a pod has no annotation egress: eu-1, us-1\n",
    );
    const last = await plan([NO_CLUSTER], [...CLUSTERS, stored(givesTo("eu"))]);
    expect(last).toMatchObject({ code: EXIT.findings });
    expect(last.stdout).toContain("every pod will be able to write to: eu-1, us-1\n");
    expect(last.stdout).not.toContain("drainSeconds");
  });

  it("leaves clusters where they are while the app is paused, also without a rule", async () => {
    const subRules = [{ name: "canary-eu", match: [{ namespaceRegex: "^x" }] }];
    for (const file of [givesTo("us", { paused: true }), sampleVirtualApp({ route: { paused: true, subRules } })]) {
      const { code, stdout } = await plan([file], [...CLUSTERS, stored(givesTo("eu"))]);
      expect(code).toBe(EXIT.ok);
      expect(stdout).toContain("nothing moves until it goes on");
    }
  });

  it("keeps the owner of a paused cluster also for its new servers, and knows the owner from the status", async () => {
    const PAUSED = { paused: true };
    const servers = ["https://eu-1.example:6443", "https://10.0.0.5:6443"];
    const relabelled = await plan([cluster("eu-1", "us", { servers })], [...CLUSTERS, stored(givesTo("eu", PAUSED))]);
    expect(relabelled.stdout).toContain("clusters every pod -> v2  1  eu-1 (10.0.0.5:6443)\n");
    const kept = { ...cluster("eu-1", "us", { servers }), status: { owners: [{ app: "shop", subset: "v2" }] } };
    const shrunk = await plan([cluster("eu-1", "us")], [kept, stored(givesTo("eu", PAUSED))]);
    expect(shrunk.stdout).toContain("clusters v2 -> every pod  1  eu-1 (10.0.0.5:6443)\n");
    const resumed = await plan([givesTo("eu")], [kept, stored(givesTo("eu", PAUSED))]);
    expect(resumed.stdout).toContain("clusters v2 -> default  1  eu-1\n");
  });
});

it("plan says that a limit of moves holds namespaces back, and not clusters", async () => {
  const match = [{ namespaceRegex: "^team-" }, { clusterSelector: { matchLabels: { region: "us" } } }];
  const file = sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match }], maxMovingPercent: 10 } });
  const team = { apiVersion: "v1", kind: "Namespace", metadata: { name: "team-a" } };
  const { stdout } = await plan([file], [team, ...CLUSTERS, stored(givesTo("eu"))]);
  expect(stdout).toContain("1 of 1 namespace moves, 2 of 2 clusters get other owners\n");
  expect(stdout).toContain("is above spec.route.maxMovingPercent (10): no namespace moves until: ctrlmesh confirm shop -n ops\n");
});

describe("plan of an edit of MeshClusters", () => {
  const app = stored(givesTo("eu"));

  it("says who gets a new cluster, and one with a new label", async () => {
    const added = await plan([cluster("eu-2", "eu", { drainSeconds: 5 })], [...CLUSTERS, app]);
    expect(added.stdout).toContain("1 of 3 clusters gets another owner\n  clusters every pod -> v2  1  eu-2\n");
    expect(added.stdout).toContain("for up to 5 s (drainSeconds), longer if a pod has no annotation egress: eu-2\n");
    const relabelled = await plan([cluster("us-1", "eu")], [...CLUSTERS, app]);
    expect(relabelled).toMatchObject({ code: EXIT.findings, stdout: expect.stringContaining("clusters default -> v2  1  us-1") });
  });

  it("says that the owner of a cluster waits for an object of discoveredBy that was another owner's, and not for a new one", async () => {
    const found = (name: string) => ({ discoveredBy: [{ resource: "secrets", name }], drainSeconds: 5 });
    const eu = (name: string) => cluster("eu-1", "eu", found(name));
    const { code, stdout } = await plan([eu("us")], [eu("eu"), cluster("us-1", "us", found("us")), app]);
    expect(code).toBe(EXIT.ok);
    expect(stdout).toContain(
      "nothing moves\n  no pod can write there for up to 5 s (drainSeconds), until pods of their former owners hide objects of discoveredBy: eu-1\n",
    );
    expect((await plan([eu("new")], [eu("old"), app])).stdout).not.toContain("discoveredBy");
  });

  it("names a server that every pod will be able to write to", async () => {
    const both = { servers: ["https://eu-1.example:6443", "https://10.0.0.5:6443"] };
    const { code, stdout } = await plan([cluster("eu-1", "eu")], [cluster("eu-1", "eu", both), app]);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("clusters v2 -> every pod  1  eu-1 (10.0.0.5:6443)\n");
    expect(stdout).toContain("every pod will be able to write to: eu-1 (10.0.0.5:6443)\n");
  });

  it("says what the deletion of one opens, with or without a file", async () => {
    const { code, stdout } = await plan([], [...CLUSTERS, app], "--delete-cluster", "eu-1");
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("every pod will be able to write to: eu-1\n");
    const replaced = await plan([cluster("eu-9", "eu", CLUSTERS[0]?.spec)], [...CLUSTERS, app], "--delete-cluster", "eu-1");
    expect(replaced.code).toBe(EXIT.ok);
    expect(await plan([CLUSTERS[0], CLUSTERS[1]], [...CLUSTERS, app], "--delete-cluster", "eu-1")).toMatchObject({
      code: EXIT.usage,
      stderr: expect.stringContaining("--delete-cluster eu-1: a file has this MeshCluster, too"),
    });
    expect(await plan([], CLUSTERS, "--delete-cluster", "eu-9")).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining("there is no MeshCluster eu-9 in namespace ops"),
    });
  });

  it("says what interception means: with None every pod can write there, and the owner alone finds the cluster", async () => {
    const [tunnel, none] = [CLUSTERS[0], cluster("eu-1", "eu", { interception: "None" })];
    const app = stored(givesTo("eu"));
    const opened = (await plan([none], [tunnel, app])).stdout;
    expect(opened).toContain("clusters v2 -> every pod  1  eu-1\n");
    expect(opened).toContain("every pod will be able to write to: eu-1\n");
    expect((await plan([tunnel], [none, app])).stdout).toContain("clusters every pod -> v2  1  eu-1\n");
    const moved = (await plan([givesTo("us")], [none, app])).stdout;
    expect(moved).toContain("clusters v2 -> default  1  eu-1\n");
    expect(moved).not.toMatch(/every pod|drainSeconds/);
  });

  it("says that its namespaces get owners of their own with Terminate", async () => {
    const terminate = cluster("eu-1", "eu", { interception: "Terminate", terminate: { kubeconfigSecret: "eu-1" } });
    const { stdout } = await plan([terminate], [...CLUSTERS, stored(givesTo("eu"))]);
    expect(stdout).toContain("clusters v2 -> (by namespace)  1  eu-1\n");
    const twice = await plan([terminate], [terminate, CLUSTERS[1], stored(givesTo("eu"))]);
    expect(twice.stdout).not.toContain("(by namespace)");
  });

  it("names one that would be refused, and one whose server an older one has", async () => {
    const refused = await plan([cluster("eu-2", "eu", { servers: ["http://eu-2"] })], [...CLUSTERS, app]);
    expect(refused).toMatchObject({
      code: EXIT.failed,
      stdout: expect.stringMatching(/^MeshCluster ops\/eu-2: would be refused\n {2}spec.servers\[0\]/),
    });
    const second = { ...cluster("a", "us"), spec: CLUSTERS[0]?.spec };
    const taken = await plan([{ ...second, metadata: { name: "a", namespace: "ops" } }], [...CLUSTERS, app]);
    expect(taken).toMatchObject({
      code: EXIT.ok,
      stdout: expect.stringContaining("would not be accepted: server eu-1.example:6443 is that of MeshCluster eu-1"),
    });
  });

  it("says that no app divides clusters, and looks at its own namespace only", async () => {
    for (const objects of [[], [stored(NO_CLUSTER)], [{ ...app, metadata: { ...app.metadata, namespace: "other" } }]])
      expect(await plan([CLUSTERS[0] ?? {}], objects)).toMatchObject({
        code: EXIT.ok,
        stdout: "nothing moves: no app of the namespace divides clusters\n",
      });
  });
});

describe("plan of a rule with clustersFrom", () => {
  const rule = (key: string) =>
    sampleVirtualApp({
      route: { subRules: [{ name: "canary-eu", match: [{ clustersFrom: { placementDecision: key } }] }] },
    });
  const decision = (key: string, names: readonly string[], namespace = "ops") =>
    ({
      apiVersion: "multicluster.x-k8s.io/v1alpha1",
      kind: "PlacementDecision",
      metadata: { name: key, namespace, labels: { "multicluster.x-k8s.io/decision-key": key } },
      decisions: names.map((name) => ({ clusterProfileRef: { name } })),
    }) as unknown as FakeObject;

  it("gives the subset the clusters that the PlacementDecision names", async () => {
    const { stdout } = await plan(
      [rule("fleet")],
      [...CLUSTERS, stored(givesTo("eu")), decision("fleet", ["us-1"]), decision("fleet", ["eu-1"], "other")],
    );
    expect(stdout).toContain("clusters v2 -> default  1  eu-1\n");
    expect(stdout).toContain("clusters default -> v2  1  us-1\n");
  });

  it("says what an edit of the PlacementDecision moves, and that no app follows another one", async () => {
    const objects = [...CLUSTERS, stored(rule("fleet")), decision("fleet", ["us-1"])];
    const edited = await plan([decision("fleet", ["eu-1"])], objects);
    expect(edited.code).toBe(EXIT.findings);
    expect(edited.stdout).toContain("clusters default -> v2  1  eu-1\n");
    expect(edited.stdout).toContain("clusters v2 -> default  1  us-1\n");
    expect(await plan([decision("fleet", ["eu-1"])], [...CLUSTERS, stored(givesTo("eu"))])).toMatchObject({
      code: EXIT.ok,
      stdout: "nothing moves: no app of the namespace follows the PlacementDecision\n",
    });
    const broken = { ...decision("fleet", []), decisions: [{ clusterProfileRef: {} }] };
    expect(await plan([broken], objects)).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining("PlacementDecision ops/fleet: decisions[0].clusterProfileRef.name: required"),
    });
  });

  it("says that the PlacementDecision is missing, and that clusters keep their owners", async () => {
    const status = { owners: [{ app: "shop", subset: "v2" }], conditions: [] };
    const known = [{ ...CLUSTERS[0], status } as unknown as FakeObject, CLUSTERS[1]];
    const { code, stdout } = await plan([rule("flet")], [...known, stored(givesTo("eu")), decision("fleet", ["us-1"])]);
    expect(code).toBe(EXIT.ok);
    expect(stdout).toBe(`VirtualApp ops/shop: nothing moves
  clustersFrom: there is no PlacementDecision with the decision-key flet: clusters keep their owners
`);
  });
});

describe("plan of an edit of a root", () => {
  const root = (shardingSize: number) =>
    sampleShardingRoot({ clusterSelector: {}, auto: { shardingSize, everyShardReplicas: 2 } });
  const known = ["a", "b", "c", "d", "e", "f"].map((name) => cluster(name, "eu"));
  const status = { placement: formatPlacement(samplePlacement()) };

  it("says which clusters a third shard gets, though it is not placed yet", async () => {
    const before = { ...root(2), status } as unknown as FakeObject;
    const { code, stdout } = await plan([root(3)], [...known, before]);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toMatch(/^ShardingConfig ops\/shop: .* of 6 clusters get other owners$/m);
    expect(stdout).toMatch(/^ {2}clusters shop-[12]-normal -> shop-3-normal {2}/m);
  });

  it("says that clusters are open to every pod once the family is switched off", async () => {
    const before = { ...root(2), status } as unknown as FakeObject;
    const off = sampleShardingRoot({ clusterSelector: {}, disable: true, auto: { shardingSize: 2, everyShardReplicas: 2 } });
    const { code, stdout } = await plan([off], [...known, before]);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("every pod will be able to write to: a, b, c, d, e, f\n");
  });

  it("says which clusters the first selector of clusters closes", async () => {
    const before = { ...sampleShardingRoot(), status } as unknown as FakeObject;
    const { stdout } = await plan([sampleShardingRoot({ clusterSelector: {} })], [...known, before]);
    expect(stdout).toContain("clusters every pod -> shop-1-normal");
    expect(stdout).toContain(
      "no pod can write there for up to 60 s (drainSeconds), longer if a pod has no annotation egress: a, b, c, d, e, f\n",
    );
  });
});
