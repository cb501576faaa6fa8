// `ctrlmesh plan` of edits that move namespaces inside other clusters.
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { type FakeObject, movingSlice, startCli } from "../../../test/support/cli.ts";
import { meshClusterOf } from "../../../test/support/mesh-cluster.ts";
import { samplePlacement, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { formatPlacement } from "../../manager/sharding/stored-placement.ts";
import { EXIT } from "../frame/exit.ts";

const terminate = { interception: "Terminate", terminate: { kubeconfigSecret: "s" } };
const EU = meshClusterOf("eu-1", "eu", terminate);
const US = meshClusterOf("us-1", "us", terminate);
const since = "2026-01-01T00:00:00Z";
const owned = (name: string, cluster: string, ...namespaces: string[]) => ({
  state: "Owned",
  owners: [{ subset: name }],
  since,
  insideClusters: [{ cluster, namespaces, clusterScope: true }],
});
const slice = (...ownership: object[]) => movingSlice({ places: 10, ownership: ownership as never }) as unknown as FakeObject;
const SLICE = slice(
  owned("default", "eu-1", "team-b", "team-c"),
  { ...owned("v2", "eu-1", "team-a"), state: "Moving", from: ["default"] },
  owned("default", "us-1", "team-a"),
);
const gives = (match: object, route: object = {}) =>
  sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match: [{ namespaceRegex: "^home-" }, match] }], ...route } });
const tier = (value: string, more: object = { clusters: ["eu-1"] }) => ({
  ...more,
  namespaceSelector: { matchLabels: { tier: value } },
});
const stored = (app: object): FakeObject =>
  ({ ...app, metadata: { name: "shop", namespace: "ops", generation: 3 }, status: {} }) as unknown as FakeObject;
const CANARY = stored(gives(tier("canary")));
const namespace = (name: string, labels: object = {}) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
const TEAMS = Array.from({ length: 40 }, (_, at) => `team-${at}`);

async function plan(file: object | undefined, objects: readonly FakeObject[], ...flags: string[]) {
  const cli = startCli([...objects]);
  cli.files.set("edit.yaml", file === undefined ? "" : stringify(file));
  cli.files.set(
    "eu.yaml",
    stringify({
      apiVersion: "v1",
      kind: "List",
      items: [namespace("team-a", { tier: "canary" }), namespace("team-b", { tier: "new" })],
    }),
  );
  cli.files.set("pod.yaml", stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" } }));
  cli.files.set("numbers.yaml", stringify(namespace("team-a", { tier: 5 })));
  cli.files.set("empty.yaml", "");
  cli.files.set("upper.yaml", stringify(namespace("TEAM A")));
  cli.files.set("twice.yaml", `${stringify(namespace("team-a"))}---\n${stringify(namespace("team-a", { tier: "x" }))}`);
  cli.files.set("teams.yaml", stringify({ apiVersion: "v1", kind: "List", items: TEAMS.map((name) => namespace(name)) }));
  return cli.run("plan", ...(file === undefined ? [] : ["-f", "edit.yaml"]), ...flags);
}

describe("plan of an edit of rules about a cluster's namespaces", () => {
  const world = [EU, US, SLICE, CANARY];

  it("names each move, from the published owners and without access to the cluster", async () => {
    const { code, stdout } = await plan(gives({ clusters: ["eu-1"], namespaceRegex: "-[bc]$" }), world);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toBe(`VirtualApp ops/shop: 3 of 4 namespaces in other clusters move
  in eu-1: default -> v2  2  team-b, team-c
  in eu-1: v2 -> default  1  team-a
`);
  });

  it("says that it depends on labels that are not known here, and takes them from a file", async () => {
    const grown = gives(tier("new"));
    const { code, stdout } = await plan(grown, world);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toBe(`VirtualApp ops/shop: 1 of 4 namespaces in other clusters moves
  in eu-1: v2 -> default  1  team-a
  whether these namespaces move depends on their labels, which are not known here: 2 in eu-1 (team-b, team-c)
  to plan these: kubectl get namespaces -o yaml in that cluster, and --inside eu-1=FILE
`);
    const named = await plan(grown, world, "--inside", "eu-1=eu.yaml");
    expect(named.stdout).toContain("  in eu-1: default -> v2  1  team-b\n");
    expect(named.stdout).toContain("not known here: 1 in eu-1 (team-c)\n");
  });

  it("says what the labels of a file move, without an edit", async () => {
    const { code, stdout } = await plan(
      undefined,
      [...world.slice(0, 3), stored(gives(tier("new")))],
      "--inside",
      "eu-1=eu.yaml",
    );
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("in eu-1: default -> v2  1  team-b\n");
    expect(stdout).toContain("in eu-1: v2 -> default  1  team-a\n");
    const settled = await plan(undefined, world, "--inside", "eu-1=eu.yaml");
    expect([settled.code, settled.stdout]).toEqual([EXIT.ok, "VirtualApp ops/shop: nothing moves\n"]);
  });

  it("gives programs each move, and what is not known", async () => {
    const { stdout } = await plan(gives(tier("new")), world, "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      apps: [
        {
          insideMoves: [{ cluster: "eu-1", from: "v2", to: "default", namespaces: ["team-a"] }],
          insideTotal: 4,
          insideUnknown: [{ cluster: "eu-1", namespaces: ["team-b", "team-c"] }],
        },
      ],
    });
  });

  it("moves nothing while the app is paused, by another field of the app, or by labels at home", async () => {
    const paused = await plan(gives(tier("new"), { paused: true }), world);
    expect([paused.code, paused.stdout]).toEqual([
      EXIT.ok,
      expect.stringContaining("is paused by spec.route.paused: nothing moves until it goes on\n"),
    ]);
    const renamed = await plan({ ...gives(tier("canary")), metadata: { name: "shop", annotations: { a: "b" } } }, world);
    expect([renamed.code, renamed.stdout]).toEqual([EXIT.ok, "VirtualApp ops/shop: nothing moves\n"]);
    const home = await plan(namespace("team-b", { tier: "canary" }), [namespace("team-b") as FakeObject, ...world]);
    expect([home.code, home.stdout]).toEqual([EXIT.ok, "VirtualApp ops/shop: nothing moves\n"]);
  });

  it("says that a limit of moves is about namespaces at home, and that a pause kept owners", async () => {
    const limited = gives({ clusters: ["eu-1"] }, { maxMovingPercent: 1 });
    expect((await plan(limited, world)).stdout).not.toContain("maxMovingPercent");
    const objects = [EU, US, SLICE, stored(gives({ clusters: ["eu-1"] }, { paused: true }))];
    const resumed = await plan(gives({ clusters: ["eu-1"] }, { paused: false }), objects);
    expect(resumed.stdout).toContain("in eu-1: default -> v2  2  team-b, team-c\n");
  });

  it("prints a bounded number of rows, the largest first", async () => {
    const names = Array.from({ length: 30 }, (_, at) => `c-${at}`);
    const clusters = names.map((name) => meshClusterOf(name, "many", terminate));
    const many = (at: number) => Array.from({ length: at + 1 }, (_, each) => `n-${each}`);
    const slices = slice(...names.map((name, at) => owned("default", name, ...many(at))));
    const app = stored(gives(tier("canary", { clusters: names })));
    const { stdout } = await plan(gives({ clusterSelector: { matchLabels: { region: "many" } } }), [...clusters, slices, app]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toBe("VirtualApp ops/shop: 465 of 465 namespaces in other clusters move");
    expect(lines[1]).toMatch(/in c-29: default -> v2 {2}30 {2}n-0, n-1, n-2 and 27 more/);
    expect(lines.slice(21)).toEqual(["  and 10 more such rows, which -o json has"]);
  });
});

describe("plan of an edit of a MeshCluster", () => {
  const euRule = stored(gives(tier("canary", { clusterSelector: { matchLabels: { region: "eu" } } })));

  it("says which namespaces a label of the cluster moves", async () => {
    const { stdout } = await plan(meshClusterOf("eu-1", "ap", terminate), [EU, US, SLICE, euRule]);
    expect(stdout).toContain("1 of 4 namespaces in other clusters moves\n  in eu-1: v2 -> default  1  team-a\n");
  });

  it("says which namespaces move when their cluster gets one owner, and what is not known when it had one", async () => {
    const tunnel = meshClusterOf("eu-1", "eu");
    const joined = await plan(tunnel, [EU, US, SLICE, euRule]);
    expect(joined.stdout).toContain("clusters (by namespace) -> default  1  eu-1\n  in eu-1: v2 -> default  1  team-a\n");
    const divided = await plan(EU, [tunnel, US, euRule]);
    expect(divided.code).toBe(EXIT.findings);
    expect(divided.stdout).toContain("which namespaces move is not known here in: eu-1\n");
    const named = await plan(EU, [tunnel, US, euRule], "--inside", "eu-1=eu.yaml");
    expect(named.stdout).toContain("in eu-1: default -> v2  1  team-a\n");
  });
});

describe("plan inside clusters goes on, and says so,", () => {
  const edit = gives({ clusters: ["eu-1"] });

  it("without slices", async () => {
    const { code, stdout } = await plan(edit, [EU, CANARY]);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("which namespaces move is not known here in: eu-1\n");
    expect(stdout).toContain("to plan these: kubectl get namespaces -o yaml in that cluster, and --inside eu-1=FILE\n");
  });

  it("by the stored rules, if the user names the namespaces and no slice does", async () => {
    const { code, stdout } = await plan(edit, [EU, CANARY], "--inside", "eu-1=eu.yaml");
    expect([code, stdout]).toEqual([
      EXIT.findings,
      "VirtualApp ops/shop: 1 of 2 namespaces in other clusters moves\n  in eu-1: default -> v2  1  team-b\n",
    ]);
  });

  it("with slices that another program has written", async () => {
    const odd = { state: "Odd", insideClusters: "x" };
    const { stdout } = await plan(edit, [EU, slice(odd, { ...owned("default", "eu-1", "team-a"), insideClusters: [5] }), CANARY]);
    expect(stdout).toContain("which namespaces move is not known here in: eu-1\n");
  });
});

it.each([
  ["eu-1", EXIT.usage, "--inside eu-1: write it as CLUSTER=FILE"],
  ["=eu.yaml", EXIT.usage, "write it as CLUSTER=FILE"],
  ["eu-9=eu.yaml", EXIT.failed, "--inside: there is no MeshCluster eu-9 in namespace ops"],
  ["ap-1=eu.yaml", EXIT.failed, "the namespaces of MeshCluster ap-1 are divided only with interception: Terminate"],
  ["eu-1=pod.yaml", EXIT.failed, 'pod.yaml: Pod a: kind: "Pod": '],
  ["eu-1=numbers.yaml", EXIT.failed, "numbers.yaml: Namespace team-a: metadata.labels.tier: 5: must be a string"],
  ["eu-1=twice.yaml", EXIT.failed, "twice.yaml: Namespace team-a: it is in the file twice"],
  ["eu-1=upper.yaml", EXIT.failed, 'upper.yaml: Namespace TEAM A: metadata.name: "TEAM A": must be a DNS label'],
  ["eu-1=empty.yaml", EXIT.failed, "empty.yaml: it has no Namespace"],
  ["eu-1=gone.yaml", EXIT.failed, "gone.yaml"],
])("--inside %s is refused in plain words", async (flag, code, message) => {
  const objects = [EU, SLICE, CANARY, meshClusterOf("ap-1", "ap")];
  expect(await plan(undefined, objects, "--inside", flag)).toMatchObject({ code, stderr: expect.stringContaining(message) });
});

describe("plan of an edit of a root whose shards divide the namespaces", () => {
  const root = (fields: object = {}, shardingSize = 2) =>
    sampleShardingRoot({
      clusterSelector: {},
      clustersBy: "Namespace",
      auto: { shardingSize, everyShardReplicas: 2 },
      ...fields,
    });
  const status = { placement: formatPlacement(samplePlacement()) };
  const planned = async (edit: object) => {
    const before = { ...root(), status } as unknown as FakeObject;
    return plan(edit, [EU, before], "--inside", "eu-1=teams.yaml");
  };

  it("says which namespaces a third shard gets, though it is not placed yet", async () => {
    const { code, stdout } = await planned(root({}, 3));
    expect(code).toBe(EXIT.findings);
    expect(stdout).toMatch(/^ {2}in eu-1: shop-[12]-normal -> shop-3-normal {2}/m);
  });

  it("says which namespaces another placement moves", async () => {
    const { code, stdout } = await planned(root({ placement: "Balanced" }));
    expect(code).toBe(EXIT.findings);
    expect(stdout).toMatch(/^ {2}in eu-1: shop-1-normal -> shop-2-normal {2}/m);
    expect(stdout).toMatch(/^ {2}in eu-1: shop-2-normal -> shop-1-normal {2}/m);
  });

  it("says that nothing moves there by another field", async () => {
    const { stdout } = await planned(root({ maxMovingPercent: 50 }));
    expect(stdout).not.toContain("in eu-1");
  });
});

it("--inside takes each cluster once", async () => {
  const flags = ["--inside", "eu-1=eu.yaml", "--inside", "eu-1=eu.yaml"];
  expect(await plan(undefined, [EU, CANARY], ...flags)).toMatchObject({
    code: EXIT.usage,
    stderr: expect.stringContaining("--inside: eu-1 is named twice"),
  });
});
