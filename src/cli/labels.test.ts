import { describe, expect, it } from "vitest";
import { type FakeObject, movingApp, startCli } from "../../test/support/cli.ts";
import { CONTROL, NAMESPACE, SHARD_HASH } from "../api/sharding-keys.ts";
import { MeshError } from "../base/errors.ts";
import { policyName } from "../manager/labels/label-policy.ts";
import { EXIT } from "./frame/exit.ts";
import { policyOf } from "./labels/labelled-kinds.ts";

const KUSION = "ctrlmesh.kusionstack.io/v1alpha1";
const object = (kind: string, apiVersion: string, metadata: object, more: object = {}): FakeObject =>
  ({ apiVersion, kind, metadata, ...more }) as unknown as FakeObject;
const config = (name: string, labelObjects: boolean, namespace = "ops") => {
  const relateResources = [{ apiGroups: [""], resources: ["configmaps"] }];
  return object("ShardingConfig", KUSION, { namespace, name }, { spec: { labelObjects, limits: [{ relateResources }] } });
};
const labels = (namespace: string) => ({ [NAMESPACE]: namespace, [SHARD_HASH]: "7", app: "mine" });
const configMap = (name: string, of: Record<string, string> = labels("a")) =>
  object("ConfigMap", "v1", { namespace: "a", name, labels: of });
const namespace = (name: string, control?: string) =>
  object("Namespace", "v1", { name, labels: { ...labels(name), ...(control !== undefined && { [CONTROL]: control }) } });

/** A cluster whose objects change as they are patched. */
function cliWith(...objects: FakeObject[]) {
  const cli = startCli([config("shop", false), ...objects]);
  const resources = [
    { name: "configmaps", kind: "ConfigMap", namespaced: true },
    { name: "namespaces", kind: "Namespace", namespaced: false },
  ];
  cli.answers.set("/api/v1", { resources });
  cli.onPatch.call = ({ kind }, { namespace: of, name }, patch, dryRun) => {
    if (dryRun) return;
    const at = cli.objects.findIndex(
      ({ kind: its, metadata }) => its === kind && metadata.name === name && (metadata.namespace ?? "") === of,
    );
    const stored = cli.objects[at];
    if (stored === undefined) throw new MeshError("NOT_FOUND", "gone");
    const removed = (patch as { metadata: { labels: object } }).metadata.labels;
    const left = Object.entries(stored.metadata.labels ?? {}).filter(([key]) => !(key in removed));
    cli.objects[at] = { ...stored, metadata: { ...stored.metadata, labels: Object.fromEntries(left) } };
  };
  return cli;
}
const labelsIn = (cli: ReturnType<typeof startCli>, kind: string) =>
  cli.objects.filter((each) => each.kind === kind).map(({ metadata }) => metadata.labels);

describe("labels remove", () => {
  it("removes the labels of the mesh and no others, and says from how many objects of which kind", async () => {
    const cli = cliWith(
      configMap("x"),
      configMap("y", { app: "mine" }),
      configMap("z", { [SHARD_HASH]: "7" }),
      namespace("a", "true"),
    );
    const { code, stdout, stderr } = await cli.run("labels", "remove", "shop");
    expect([code, stdout]).toEqual([EXIT.ok, "namespaces: removed from 1 object\nconfigmaps: removed from 2 objects\n"]);
    expect(labelsIn(cli, "ConfigMap")).toEqual([{ app: "mine" }, { app: "mine" }, {}]);
    expect(labelsIn(cli, "Namespace")).toEqual([{ app: "mine" }]);
    expect(stderr).toContain(`with kubectl: kubectl label configmaps --all -A ${NAMESPACE}- ${SHARD_HASH}-\n`);
    expect(stderr).toContain(`with kubectl: kubectl label namespaces -l ${CONTROL}=true ${CONTROL}-\n`);
  });

  it("leaves the label by which a user has opted a namespace out", async () => {
    const cli = cliWith(namespace("a", "false"));
    await cli.run("labels", "remove", "shop");
    expect(labelsIn(cli, "Namespace")).toEqual([{ app: "mine", [CONTROL]: "false" }]);
  });

  it("touches nothing while the labels would come back, and says what to do first", async () => {
    const policy = object("MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1", { name: "ctrlmesh-labels-configmaps" });
    for (const [objects, text] of [
      [[config("shop-b", true, "other")], "ShardingConfig other/shop-b asks for them too"],
      [[policy], "the policy ctrlmesh-labels-configmaps still sets the labels"],
    ] as const) {
      const cli = cliWith(configMap("x"), ...objects);
      const { code, stdout } = await cli.run("labels", "remove", "shop");
      expect([code, stdout]).toEqual([EXIT.failed, expect.stringContaining(`configmaps: not touched: ${text}`)]);
      expect(cli.patches.filter(({ path }) => path.includes("configmaps"))).toEqual([]);
    }
    const cli = startCli([config("shop", true), configMap("x")]);
    expect((await cli.run("labels", "remove", "shop")).stdout).toContain(
      `First: kubectl patch shardingconfigs.ctrlmesh.kusionstack.io shop -n ops --type=merge -p '{"spec":{"labelObjects":false}}'`,
    );
    expect(cli.patches).toEqual([]);
  });

  it("goes on after an object that is gone, that has changed, or that it may not change", async () => {
    const cli = cliWith(...["a", "b", "c", "d"].map((name) => configMap(name)));
    const change = cli.onPatch.call;
    const failures = new Map([
      ["b", [new MeshError("COMMAND_FAILED", "Conflict")]],
      ["c", Array.from({ length: 9 }, () => new MeshError("COMMAND_FAILED", "denied by a webhook"))],
    ]);
    cli.onPatch.call = (...args) => {
      const error = failures.get(args[1].name)?.pop();
      if (error !== undefined) throw error;
      if (args[1].name === "d") cli.objects.pop();
      change?.(...args);
    };
    const { code, stdout, stderr } = await cli.run("labels", "remove", "shop");
    expect([code, stdout]).toEqual([
      EXIT.failed,
      expect.stringContaining("configmaps: removed from 2 objects, 1 still have labels\n"),
    ]);
    expect(stderr).toContain("configmaps a/c: denied by a webhook\n");
  });

  it("ends, and says so, if something sets the labels again", async () => {
    const cli = cliWith(configMap("x"));
    cli.onPatch.call = () => {};
    const { stdout, stderr } = await cli.run("labels", "remove", "shop");
    expect(stdout).toContain("configmaps: removed from 0 objects, 1 still have labels");
    expect(stderr).toContain("configmaps a/x: its labels were set again");
  });

  it("removes from all of many pages", async () => {
    const cli = cliWith(...Array.from({ length: 1_203 }, (_, at) => configMap(`x-${at}`)));
    expect((await cli.run("labels", "remove", "shop")).stdout).toContain("configmaps: removed from 1203 objects\n");
  });

  it("changes nothing in a dry run, and counts", async () => {
    const cli = cliWith(configMap("x"), configMap("y"));
    const { stdout, stderr } = await cli.run("labels", "remove", "shop", "--dry-run");
    expect(stdout).toContain("configmaps: removed from 2 objects (dry run: nothing was changed)\n");
    expect(cli.patches.map(({ dryRun }) => dryRun)).toEqual([true]);
    expect(stderr).toContain(`${SHARD_HASH}- --dry-run=server\n`);
  });

  it("names the right that is missing, and removes what it may", async () => {
    const cli = cliWith(configMap("x"), namespace("a"));
    cli.denied.add("patch configmaps.");
    const { code, stdout } = await cli.run("labels", "remove", "shop");
    expect([code, stdout]).toEqual([
      EXIT.failed,
      "namespaces: removed from 1 object\nconfigmaps: not touched: you may not patch configmaps in all namespaces\n",
    ]);
  });

  it("refuses an app that labels nothing", async () => {
    const cli = startCli([movingApp()]);
    expect((await cli.run("labels", "remove", "shop")).stderr).toContain("only a ShardingConfig labels objects");
  });
});

it.each([
  { group: "", resource: "configmaps" },
  { group: "demo.ctrlmesh.io", resource: "foos" },
])("the policy of %j has the name that the manager gives it", (of) => {
  expect(policyOf(of)).toBe(policyName(of));
});
