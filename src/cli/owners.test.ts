import { expect, it } from "vitest";
import { movingApp, movingSlice, startCli } from "../../test/support/cli.ts";
import { EXIT } from "./frame/exit.ts";

it("shows each place once, in order, with its owner, state and age", async () => {
  const { code, stdout } = await startCli([movingSlice()]).run("owners");
  expect(code).toBe(EXIT.ok);
  expect(stdout).toBe(`APP       PLACE            OWNER            STATE                SINCE
ops/shop  kube-system      nobody           Unowned              1d1h
ops/shop  team-a           default          Owned                5h
ops/shop  team-b           canary, default  Moving from default  41s
ops/shop  (cluster scope)  default          Owned                5h
`);
});

it("shows with -o wide which resources each subset owns, and the slice", async () => {
  const { stdout } = await startCli([movingSlice()]).run("owners", "-o", "wide");
  expect(stdout).toMatch(/team-b .* canary: deployments.apps configmaps; default: all others +shop-0\n/);
});

it("gives programs one document, with one item for each place", async () => {
  const ownership = [{ state: "Owned", owners: [{ subset: "s-1" }], since: "2026-01-01T00:00:00Z", buckets: [10, 9] }];
  const { stdout } = await startCli([movingSlice({ places: 2, ownership })]).run("owners", "-o", "json");
  const { items, ...head } = JSON.parse(stdout);
  expect(head).toEqual({ apiVersion: "cli.ctrlmesh.kruise.io/v1alpha1", kind: "OwnerList" });
  const common = { app: "ops/shop", slice: "shop-0", state: "Owned", owners: [{ subset: "s-1" }], since: "2026-01-01T00:00:00Z" };
  expect(items).toEqual([
    { ...common, bucket: 9 },
    { ...common, bucket: 10 },
  ]);
});

it("shows the places inside other clusters behind those at home, by cluster", async () => {
  const since = "2026-01-01T00:00:00Z";
  const entry = (name: string, more: object) => ({ state: "Owned", owners: [{ subset: name }], since, ...more });
  const inside = [
    { cluster: "us-1", namespaces: ["team-a"] },
    { cluster: "eu-1", namespaces: ["team-b", "team-a"], clusterScope: true },
  ];
  const ownership = [
    entry("default", { namespaces: ["team-a"], clusters: ["ap-1"], insideClusters: inside }),
    {
      ...entry("v2", { insideClusters: [{ cluster: "eu-1", buckets: [4], namespaces: ["mover"] }] }),
      state: "Moving",
      from: ["default"],
    },
  ];
  const cli = startCli([movingSlice({ places: 8, ownership })]);
  expect((await cli.run("owners")).stdout.split("\n").map((line) => line.split(/ {2,}/).slice(1, 4))).toEqual([
    ["PLACE", "OWNER", "STATE"],
    ["team-a", "default", "Owned"],
    ["(cluster ap-1)", "default", "Owned"],
    ["eu-1/mover", "v2", "Moving from default"],
    ["eu-1/team-a", "default", "Owned"],
    ["eu-1/team-b", "default", "Owned"],
    ["eu-1/(cluster scope, hash 4)", "v2", "Moving from default"],
    ["eu-1/(cluster scope)", "default", "Owned"],
    ["us-1/team-a", "default", "Owned"],
    [],
  ]);
  const { items } = JSON.parse((await cli.run("owners", "-o", "json")).stdout);
  expect(items[2]).toMatchObject({ cluster: "eu-1", namespace: "mover", owners: [{ subset: "v2" }], from: ["default"] });
});

it("shows one app by any of its names, and the namespace of -n or all of them", async () => {
  const other = { ...movingSlice({ app: "till" }), metadata: { namespace: "till", name: "till-0" } };
  const cli = startCli([movingApp(), movingSlice(), other]);
  expect((await cli.run("owners", "virtualapp/shop")).stdout).toContain("ops/shop  team-a");
  expect((await cli.run("owners")).stdout).not.toContain("till/till");
  expect((await cli.run("owners", "-A")).stdout).toContain("till/till  team-a");
  expect(await cli.run("owners", "shpo")).toMatchObject({ code: EXIT.failed, stderr: expect.stringMatching(/no app shpo/) });
});

it("says that there is no slice, and that another version has written a part of one", async () => {
  const cli = startCli([movingApp()]);
  expect(await cli.run("owners")).toMatchObject({
    code: EXIT.ok,
    stdout: "",
    stderr: expect.stringMatching(/no OwnershipSlice in namespace ops/),
  });
  expect(await cli.run("owners", "shop")).toMatchObject({
    code: EXIT.failed,
    stderr: expect.stringMatching(/no OwnershipSlice of shop in namespace ops/),
  });
  const newer = movingSlice({
    places: 3,
    ownership: [{ state: "Doubled", since: "2026-01-01T00:00:00Z", namespaces: ["a", "b", "c"] }],
  });
  expect(await startCli([newer]).run("owners")).toMatchObject({
    stdout: "",
    stderr: expect.stringMatching(/^3 places more not shown/),
  });
});

it("takes wide as a format, and other commands do not", async () => {
  expect((await startCli([]).run("status", "-o", "wide")).code).toBe(EXIT.usage);
  expect((await startCli([]).run("owners", "-o", "yaml")).stderr).toContain("there is json, wide, and text without it");
});
