import { describe, expect, it } from "vitest";
import { type FakeObject, movingApp, startCli } from "../../test/support/cli.ts";
import { sampleShardingConfig } from "../../test/support/sharding-config.ts";
import { EXIT } from "./frame/exit.ts";

const namespace = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } }) as unknown as FakeObject;
const app = (frozen?: unknown) => ({ ...movingApp(), spec: { route: { frozen } } }) as unknown as FakeObject;
const member = (name: string, frozen?: object) =>
  ({
    ...sampleShardingConfig({ frozen }),
    metadata: { namespace: "ops", name },
    status: { family: "lock" },
  }) as unknown as FakeObject;

describe("freeze", () => {
  it("patches one key of the app, says how kubectl would, and how to wait", async () => {
    const cli = startCli([app({ other: "kept" }), namespace("team-b")]);
    const { code, stdout, stderr } = await cli.run("freeze", "ns/team-b", "--app", "shop", "--reason", "restore");
    expect([code, stdout]).toEqual([EXIT.ok, "VirtualApp ops/shop has frozen namespace team-b\n"]);
    expect(cli.patches.map(({ patch }) => patch)).toEqual([{ spec: { route: { frozen: { "team-b": "restore" } } } }]);
    expect(stderr).toContain("with kubectl: kubectl patch virtualapps.ctrlmesh.kruise.io shop -n ops --type=merge -p ");
    expect(stderr).toContain("to wait until no write of its pods is under way there: ctrlmesh wait shop -n ops\n");
  });

  it("gives the day as the reason if there is none", async () => {
    const cli = startCli([app(), namespace("team-b")]);
    await cli.run("freeze", "team-b", "--app", "shop");
    expect(cli.patches[0]?.patch).toEqual({ spec: { route: { frozen: { "team-b": "frozen with ctrlmesh on 2026-01-01" } } } });
  });

  it("says which reason it replaces, since somebody else may still work there", async () => {
    const cli = startCli([app({ "team-b": "restore, ask Anna" }), namespace("team-b")]);
    const { code, stderr } = await cli.run("freeze", "team-b", "--app", "shop", "--reason", "repair");
    expect(code).toBe(EXIT.ok);
    expect(stderr).toContain("namespace team-b was frozen before, and one thaw ends both: restore, ask Anna\n");
  });

  it("freezes by one object of a family, and thaws all that have frozen it", async () => {
    const cli = startCli([member("a", { "team-b": "x" }), member("b", { "team-b": "y", prod: "z" }), namespace("team-c")]);
    expect((await cli.run("freeze", "team-c", "--app", "lock", "--reason", "r")).code).toBe(EXIT.ok);
    expect(cli.patches.splice(0).map(({ patch }) => patch)).toEqual([{ spec: { frozen: { "team-c": "r" } } }]);
    expect((await cli.run("thaw", "team-b", "--app", "lock")).code).toBe(EXIT.ok);
    expect(cli.patches.map(({ path, patch }) => [path.split("/").at(-1), patch])).toEqual([
      ["a", { spec: { frozen: { "team-b": null } } }],
      ["b", { spec: { frozen: { "team-b": null } } }],
    ]);
  });

  it.each<[what: string, argv: string[], code: number, text: string]>([
    [
      "a namespace that there is not",
      ["freeze", "team-x", "--app", "shop"],
      EXIT.failed,
      "there is no namespace team-x, so nothing was frozen",
    ],
    ["no app", ["freeze", "team-b"], EXIT.usage, "--app: name the app"],
    [
      "an app that there is not",
      ["freeze", "team-b", "--app", "shap"],
      EXIT.failed,
      "there is no app shap in namespace ops; its apps are: shop",
    ],
    ["no namespace", ["thaw", "--app", "shop"], EXIT.usage, "name a namespace"],
    ["an empty reason", ["freeze", "team-b", "--app", "shop", "--reason", " "], EXIT.usage, "--reason: the text is empty"],
    [
      "a thaw of another namespace",
      ["thaw", "prod", "--app", "shop"],
      EXIT.failed,
      "shop has not frozen namespace prod; frozen are: team-b",
    ],
  ])("changes nothing for %s", async (_what, argv, code, text) => {
    const cli = startCli([app({ "team-b": "restore" }), namespace("team-b")]);
    const { stderr, ...ended } = await cli.run(...argv);
    expect([ended.code, cli.patches]).toEqual([code, []]);
    expect(stderr).toContain(text);
  });

  it("is shown by status, whatever somebody has written there", async () => {
    const shown = await startCli([app({ "team-b": "restore\u001b[2J", prod: 7 })]).run("status");
    expect(shown.stdout).toContain("  frozen: namespace team-b: restore");
    expect(shown.stdout).not.toContain("\u001b");
    const { stdout } = await startCli([app({ "team-b": "restore" })]).run("status", "-o", "json");
    expect(JSON.parse(stdout).items[0].frozen).toEqual([{ namespace: "team-b", reason: "restore" }]);
    expect((await startCli([app("all")]).run("status")).code).toBe(EXIT.ok);
  });
});
