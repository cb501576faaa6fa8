import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { condition, type FakeObject, startCli } from "../../../test/support/cli.ts";
import { sampleShardingConfig } from "../../../test/support/sharding-config.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import type { KubeObject } from "../../kube/types.ts";
import { EXIT } from "../frame/exit.ts";

const NAMES = ["canary-a", "team-a", "team-b", "team-c"];
const namespaces = NAMES.map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels: { tier: name } } }));
const routeFor = (expression: string, more: object = {}) => ({
  route: { subRules: [{ name: "canary-eu", match: [{ namespaceRegex: expression }] }], ...more },
});
const stored = (spec: object = {}, conditions: object[] = []): FakeObject =>
  ({
    ...sampleVirtualApp({ ...spec }),
    metadata: { name: "shop", namespace: "ops", generation: 3 },
    status: { subsets: [{ name: "default", namespaces: 3, readyPods: 2, pods: 2 }], conditions },
  }) as unknown as FakeObject;

/** Plans the objects of one file, in a cluster with these objects. */
async function plan(objects: readonly object[], cluster: readonly FakeObject[] = [stored()]) {
  const cli = startCli([...(namespaces as unknown as FakeObject[]), ...cluster]);
  cli.files.set("edit.yaml", objects.map((object) => stringify(object)).join("---\n"));
  return cli.run("plan", "-f", "edit.yaml");
}

describe("plan", () => {
  it("says what moves, between whom, and which pods are restarted", async () => {
    const { code, stdout } = await plan([sampleVirtualApp(routeFor("^(canary-|team-[ab])"))]);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toBe(`VirtualApp ops/shop: 2 of 4 namespaces move
  default -> v2  2  team-a, team-b
  the pods that lose namespaces are restarted one after the other: 2 pods of default
`);
  });

  it("ends with 0 if nothing moves, also for an edit of something else", async () => {
    expect(await plan([sampleVirtualApp()])).toMatchObject({ code: EXIT.ok, stdout: "VirtualApp ops/shop: nothing moves\n" });
    expect((await plan([sampleVirtualApp(routeFor("^canary", { onLoss: "InPlace" }))])).code).toBe(EXIT.ok);
  });

  it("names what the webhook would refuse, and ends with 1", async () => {
    const { code, stdout } = await plan([sampleVirtualApp({ selector: { matchLabels: { component: "other" } } })]);
    expect(code).toBe(EXIT.failed);
    expect(stdout).toContain("VirtualApp ops/shop: would be refused\n  spec.selector: cannot be changed");
  });

  it("says that a paused app keeps its namespaces, and what a limit of moves asks for", async () => {
    const paused = await plan([sampleVirtualApp(routeFor("^team-", { paused: true }))]);
    expect(paused).toMatchObject({ code: EXIT.ok, stdout: expect.stringContaining("is paused by spec.route.paused") });
    const limited = await plan([sampleVirtualApp(routeFor("^(canary-|team-[ab])", { maxMovingPercent: 10 }))]);
    expect(limited.stdout).toContain(
      "is above spec.route.maxMovingPercent (10): nothing moves until: ctrlmesh confirm shop -n ops",
    );
  });

  it("counts what apply keeps: fields, labels and annotations that the file does not name", async () => {
    const limited = stored({ route: { ...routeFor("^canary-").route, maxMovingPercent: 10 } });
    const file = sampleVirtualApp(routeFor("^(canary-|team-[ab])"));
    const cli = startCli([...(namespaces as unknown as FakeObject[]), limited]);
    cli.files.set("edit.yaml", stringify(file));
    cli.applies.call = (object) => {
      const { spec } = object as unknown as { spec: { route: object } };
      return { ...limited, ...object, spec: { ...spec, route: { ...spec.route, maxMovingPercent: 10 } } } as KubeObject;
    };
    const { stdout, stderr } = await cli.run("plan", "-f", "edit.yaml");
    expect(stdout).toContain("is above spec.route.maxMovingPercent (10): nothing moves until");
    expect(stderr).not.toContain("as the file has it");
  });

  it("takes away what apply takes away: a label that an earlier file had", async () => {
    const selector = { namespaceSelector: { matchLabels: { tier: "team-a" } } };
    const route = { route: { subRules: [{ name: "canary-eu", match: [selector] }] } };
    const cli = startCli([...(namespaces as unknown as FakeObject[]), stored(route)]);
    cli.files.set("edit.yaml", stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "team-a" } }));
    expect((await cli.run("plan", "-f", "edit.yaml")).stdout).toContain("nothing moves");
    cli.applies.call = (object) => object;
    expect((await cli.run("plan", "-f", "edit.yaml")).stdout).toContain("v2 -> default  1  team-a");
  });

  it("applies an object as it was applied last", async () => {
    const managedFields = [{ manager: "argocd-controller", operation: "Apply", time: "2026-05-01T00:00:00Z", fieldsV1: {} }];
    const { metadata, ...rest } = stored();
    const appliers: unknown[] = [];
    for (const object of [stored(), { ...rest, metadata: { ...metadata, managedFields } } as FakeObject]) {
      const cli = startCli([...(namespaces as unknown as FakeObject[]), object]);
      cli.files.set("edit.yaml", stringify(sampleVirtualApp()));
      cli.applies.call = (file, serverSideAs) => {
        appliers.push(serverSideAs);
        return file;
      };
      await cli.run("plan", "-f", "edit.yaml");
    }
    expect(appliers).toEqual([undefined, "argocd-controller"]);
  });

  it("says why it plans as the file has it", async () => {
    const { stderr } = await plan([sampleVirtualApp()]);
    expect(stderr).toContain(
      "planned as the file has it, since kubectl apply could not be tried: VirtualApp ops/shop: applying is not allowed here\n",
    );
  });

  it("says that a plan begins at the stored spec while namespaces still move", async () => {
    const moving = stored({}, [condition("Converged", "False", "Moving")]);
    expect((await plan([sampleVirtualApp(routeFor("^team-a"))], [moving])).stdout).toContain("a move is running");
  });

  it("says of a new app that it begins with its pods", async () => {
    expect((await plan([sampleVirtualApp()], [])).stdout).toContain("is new to the manager");
  });

  it("shows which apps the labels of a namespace move", async () => {
    const bySelector = {
      route: { subRules: [{ name: "canary-eu", match: [{ namespaceSelector: { matchLabels: { tier: "gold" } } }] }] },
    };
    const label = { apiVersion: "v1", kind: "Namespace", metadata: { name: "team-b", labels: { tier: "gold" } } };
    const { code, stdout } = await plan([label], [stored(bySelector)]);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("VirtualApp ops/shop: 1 of 4 namespaces moves\n  default -> v2  1  team-b\n");
  });

  it("judges the configs of a family in one file together", async () => {
    const config = (name: string, label: string, values: string[]) => ({
      ...sampleShardingConfig({
        selector: { matchLabels: { shard: label } },
        limits: [
          {
            relateResources: [{ apiGroups: [""], resources: ["pods"] }],
            selector: { matchExpressions: [{ key: "ctrlmesh.kusionstack.io/namespace", operator: "In", values }] },
          },
        ],
      }),
      metadata: { name, namespace: "ops", generation: 1 },
    });
    const family = [config("a", "a", ["team-a", "team-b"]), config("b", "b", ["team-c"])] as unknown as FakeObject[];
    const { code, stdout } = await plan([config("a", "a", ["team-a"]), config("b", "b", ["team-b", "team-c"])], family);
    expect(code).toBe(EXIT.findings);
    expect(stdout).toMatch(/^ShardingConfig ops\/shop-lock: 1 of 4 namespaces moves\n {2}a -> b +1 +team-b\n/);
  });

  it("gives programs all names", async () => {
    const cli = startCli([...(namespaces as unknown as FakeObject[]), stored()]);
    cli.files.set("-", JSON.stringify(sampleVirtualApp(routeFor("^"))));
    const { stdout } = await cli.run("plan", "-f", "-", "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "Plan",
      apps: [
        {
          kind: "VirtualApp",
          name: "shop",
          total: 4,
          moves: [{ from: "default", to: "v2", namespaces: ["team-a", "team-b", "team-c"] }],
        },
      ],
    });
  });

  it.each([
    ["kind: ConfigMap\nmetadata: {name: a}\n", EXIT.failed, "is it the right one?"],
    ["kind: [", EXIT.failed, "edit.yaml: document 1"],
    ["apiVersion: ctrlmesh.kruise.io/v1alpha1\nkind: VirtualApp\n", EXIT.failed, "metadata.name must be set"],
  ])("says what is wrong with %j", async (text, code, message) => {
    const cli = startCli([]);
    cli.files.set("edit.yaml", text);
    expect(await cli.run("plan", "-f", "edit.yaml")).toMatchObject({
      code,
      stdout: "",
      stderr: expect.stringContaining(message),
    });
  });
});
