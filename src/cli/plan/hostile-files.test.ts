// `ctrlmesh plan` with files and objects that are not as they should be.
import { performance } from "node:perf_hooks";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { type FakeObject, startCli } from "../../../test/support/cli.ts";
import { sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { EXIT } from "../frame/exit.ts";

const namespace = (name: string, labels?: unknown) =>
  ({ apiVersion: "v1", kind: "Namespace", metadata: { name, ...(labels !== undefined && { labels }) } }) as unknown as FakeObject;
const NAMESPACES = ["canary-a", "team-a", "team-b"].map((name) => namespace(name));
const routeFor = (expression: string, more: object = {}) => ({
  route: { subRules: [{ name: "canary-eu", match: [{ namespaceRegex: expression }] }], ...more },
});
const BY_LABEL = {
  route: {
    subRules: [
      { name: "canary-eu", match: [{ namespaceSelector: { matchExpressions: [{ key: "gold", operator: "Exists" }] } }] },
    ],
  },
};
const stored = (spec: object = {}): FakeObject =>
  ({
    ...sampleVirtualApp({ ...spec }),
    metadata: { name: "shop", namespace: "ops", generation: 3 },
    status: {},
  }) as unknown as FakeObject;

async function plan(objects: readonly unknown[], cluster: readonly FakeObject[] = [...NAMESPACES, stored()]) {
  const cli = startCli([...cluster]);
  cli.files.set("edit.yaml", objects.map((object) => stringify(object, { version: "1.1" })).join("---\n"));
  return cli.run("plan", "-f", "edit.yaml");
}

describe("plan", () => {
  it("does not look at objects of others, also without a name", async () => {
    const job = { apiVersion: "batch/v1", kind: "Job", metadata: { generateName: "job-" } };
    const values = { replicas: 3 };
    expect(await plan([job, values, sampleVirtualApp(routeFor("^team-a"))])).toMatchObject({
      code: EXIT.findings,
      stderr: expect.not.stringContaining("metadata.name"),
    });
  });

  it("takes a label away that a file sets to null, as kubectl apply does", async () => {
    const { code, stdout } = await plan(
      [namespace("team-a", { gold: null })],
      [namespace("team-a", { gold: "yes" }), namespace("team-b"), stored(BY_LABEL)],
    );
    expect(stdout).toContain("v2 -> default  1  team-a");
    expect(code).toBe(EXIT.findings);
  });

  it.each([[undefined], [null], [{}]])("takes a Namespace with labels %j", async (labels) => {
    expect(await plan([namespace("team-a", labels)], [namespace("team-a", { gold: "yes" }), stored(BY_LABEL)])).toMatchObject({
      code: EXIT.ok,
    });
  });

  it.each([["x"], [{ gold: 5 }], [["gold"]]])("refuses a Namespace with labels %j, as the API server does", async (labels) => {
    expect(await plan([namespace("team-a", labels)], [...NAMESPACES, stored(BY_LABEL)])).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining("metadata.labels"),
    });
  });

  it("says that nothing moves for a Namespace in a cluster without apps", async () => {
    expect(await plan([namespace("team-a", { gold: "yes" })], NAMESPACES)).toMatchObject({
      code: EXIT.ok,
      stdout: expect.stringContaining("nothing moves"),
    });
  });

  it("says that a paused app stays paused if the file does not say otherwise", async () => {
    const { code, stdout } = await plan(
      [sampleVirtualApp(routeFor("^team-a"))],
      [...NAMESPACES, stored(routeFor("^canary", { paused: true }))],
    );
    expect(stdout).toContain("paused");
    expect(code).toBe(EXIT.findings);
  });

  it.each<[string, unknown]>([
    ["no spec", { ...sampleVirtualApp(), spec: undefined }],
    ["a spec that is null", { ...sampleVirtualApp(), spec: null }],
    ["a spec that is a text", { ...sampleVirtualApp(), spec: "x" }],
    ["a spec that is a list", { ...sampleVirtualApp(), spec: [] }],
    ["subRules that are a map", sampleVirtualApp({ route: { subRules: {} } })],
    ["a namespace that is a number", { ...sampleVirtualApp(), metadata: { name: "shop", namespace: 5 } }],
    ["annotations that are a text", { ...sampleVirtualApp(), metadata: { name: "shop", namespace: "ops", annotations: "x" } }],
    ["labels that are a text", { ...sampleVirtualApp(), metadata: { name: "shop", namespace: "ops", labels: "x" } }],
    ["an unknown field", sampleVirtualApp({ selektor: {} })],
    ["a version that is not served", { ...sampleVirtualApp(), apiVersion: "ctrlmesh.kruise.io/v9" }],
    ["the group of another kind", { ...sampleVirtualApp(), apiVersion: "ctrlmesh.kusionstack.io/v1alpha1" }],
    ["a config with no spec", { ...sampleShardingConfig(), spec: undefined }],
    ["a config with limits that are a text", sampleShardingConfig({ limits: "x" })],
    ["a config with a controller that is null", sampleShardingConfig({ controller: null })],
    ["a root with nothing", { ...sampleShardingRoot(), spec: { root: null } }],
    [
      "ownerReferences that are a text",
      { ...sampleShardingConfig(), metadata: { name: "a", namespace: "ops", ownerReferences: "x" } },
    ],
  ])("names what is wrong with %s", async (_, object) => {
    const { code, stdout, stderr } = await plan([object]);
    expect(`${stdout}${stderr}`).not.toMatch(/Cannot|is not a function|not iterable|undefined|\[object/);
    expect({ code, text: `${stdout}${stderr}` }).toMatchObject({ code: EXIT.failed });
  });

  it.each<[string, object]>([
    ["no spec", { spec: undefined }],
    ["a spec of another version", { spec: { route: { subRules: { a: 1 } }, subsets: 7 } }],
    ["a status of another version", { status: { conditions: "x", subsets: { a: 1 } } }],
  ])("plans one app though another one is stored with %s", async (_, more) => {
    const odd = { ...stored(), metadata: { name: "odd", namespace: "ops", generation: 1 }, ...more } as unknown as FakeObject;
    expect(await plan([sampleVirtualApp(routeFor("^team-a"))], [...NAMESPACES, odd, stored()])).toMatchObject({
      code: EXIT.findings,
      stdout: expect.stringContaining("VirtualApp ops/shop: "),
    });
  });

  it("plans an app that is stored with a status of another version", async () => {
    const odd = { ...stored(), status: { conditions: "x", subsets: { a: 1 } } } as unknown as FakeObject;
    expect(await plan([sampleVirtualApp(routeFor("^team-a"))], [...NAMESPACES, odd])).toMatchObject({ code: EXIT.findings });
  });

  it("judges a VirtualApp and a ShardingConfig of one name each by its own", async () => {
    const config = { ...sampleShardingConfig(), metadata: { name: "shop", namespace: "ops" } };
    const { stdout } = await plan([sampleVirtualApp(routeFor("^team-a")), config]);
    expect(stdout).toContain("VirtualApp ops/shop: 2 of 3 namespaces move");
    expect(stdout).toContain("ShardingConfig ops/");
  });

  it("takes a List, and an object that stands twice as the second edit", async () => {
    const list = { apiVersion: "v1", kind: "List", items: [sampleVirtualApp(routeFor("^team-")), sampleVirtualApp()] };
    const { stdout } = await plan([list]);
    expect(stdout.match(/VirtualApp ops\/shop/g)).toHaveLength(1);
  });

  it("takes children of a root as views, which move nothing", async () => {
    const child = {
      ...sampleShardingConfig(),
      metadata: {
        name: "shop-0",
        namespace: "ops",
        ownerReferences: [
          { apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "ShardingConfig", name: "shop", controller: true, uid: "u" },
        ],
      },
    };
    const { stdout, stderr } = await plan([child], [...NAMESPACES, sampleShardingRoot() as unknown as FakeObject]);
    expect(`${stdout}${stderr}`).not.toMatch(/Cannot|is not a function|undefined/);
  });

  it("takes 10,000 namespaces and 64 rules with long expressions in a few seconds", { timeout: 60_000 }, async () => {
    const many = Array.from({ length: 10_000 }, (_, at) => namespace(`${"a".repeat(55)}${at}`));
    const rules = Array.from({ length: 64 }, (_, at) => ({
      name: `r${at}`,
      match: [{ namespaceRegex: `^(a+)+${at}(b|ab?)*c$` }],
    }));
    const names = rules.map(({ name }) => name);
    const subsets = [names.slice(0, 32), names.slice(32)].map((routeRules, at) => ({
      name: `v${at}`,
      labels: { version: `v${at}` },
      routeRules,
    }));
    const begin = performance.now();
    const { code } = await plan([sampleVirtualApp({ route: { subRules: rules }, subsets })], [...many, stored()]);
    expect(code).toBe(EXIT.ok);
    expect(performance.now() - begin).toBeLessThan(20_000);
  });
});
