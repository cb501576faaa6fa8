import { describe, expect, it } from "vitest";
import { type FakeObject, movingApp, movingSlice, startCli } from "../../test/support/cli.ts";
import { subset, table } from "../../test/support/route-table.ts";
import { routes } from "../../test/support/test-routes.ts";
import { INJECTED_LABEL } from "../api/injected-pod.ts";
import type { Snapshot } from "../mesh/ownership/snapshot.ts";
import { ownersPage } from "../proxy/owners-page.ts";
import { EXIT } from "./frame/exit.ts";

const object = (kind: string, group: string, name: string, more: object, labels = {}): FakeObject =>
  ({ apiVersion: group, kind, metadata: { namespace: "ops", name, labels }, ...more }) as unknown as FakeObject;
const POD = object("Pod", "v1", "shop-1", { status: { phase: "Running" } }, { [INJECTED_LABEL]: "shop" });
const since = "2026-01-01T00:00:00Z";
const owned = (name: string) => ({ state: "Owned", owners: [{ subset: name }], since });
const slice = (...ownership: { namespaces?: string[]; clusterScope?: boolean }[]) => {
  const places = ownership.reduce((sum, each) => sum + (each.namespaces?.length ?? 0) + (each.clusterScope ? 1 : 0), 0);
  return movingSlice({ ownership, places });
};
const policy = (name: string, targetStatus: object[], mode = "Enforce") =>
  object("TrafficPolicy", "ctrlmesh.kruise.io/v1alpha1", name, { status: { mode, targetStatus } });

interface Sidecar {
  readonly snapshot?: Snapshot;
  /** Names of TrafficPolicies. */
  readonly policies?: readonly string[];
}

function cliWith(
  objects: FakeObject[],
  { snapshot = routes(15, { blue: ["team-b"], defaultSubset: ["team-a"] }), policies = [] }: Sidecar = {},
) {
  const cli = startCli([movingApp({ routeVersion: 17 }), POD, ...objects]);
  const rules = {
    first: policies.map((name) => ({ kind: "TrafficPolicy", object: `ops/${name}`, rule: "r" })),
    truncated: false,
  };
  cli.sidecars.set("shop-1", {
    "/debug/owners": (query) => ownersPage(query, snapshot),
    "/debug/policies": () => ({ rules }),
  });
  return cli;
}
const SAME = slice(
  { ...owned("default"), namespaces: ["team-a"], clusterScope: true },
  { ...owned("blue"), namespaces: ["team-b"] },
);
const itemsOf = async (cli: ReturnType<typeof startCli>) => {
  const { stdout } = await cli.run("diff", "shop-1", "-o", "json");
  return (JSON.parse(stdout).items as { of: string; published: string; held: string }[]).map((each) => Object.values(each));
};

describe("diff", () => {
  it("ends with 0 if the sidecar enforces what the slices say, also with a lower version", async () => {
    expect(await cliWith([SAME]).run("diff", "pod/shop-1")).toEqual({
      code: EXIT.ok,
      stdout:
        "pod shop-1 (subset blue) enforces route 15; the newest of shop is 17\nnothing differs in 3 places and 0 policy objects\n",
      stderr: "compared with the OwnershipSlices and statuses that the manager publishes, which may be some seconds old\n",
    });
  });

  it("names each place that the sidecar sees otherwise, and ends with 2", async () => {
    const slices = slice({ ...owned("blue"), namespaces: ["team-a", "team-new"] }, { ...owned("default"), clusterScope: true });
    const { code, stdout } = await cliWith([slices]).run("diff", "shop-1");
    expect(code).toBe(EXIT.findings);
    expect(stdout).toBe(`pod shop-1 (subset blue) enforces route 15; the newest of shop is 17
DIFFERS   PUBLISHED      SIDECAR
team-a    blue, Owned    default
team-new  blue, Owned    not known
team-b    not published  blue
`);
  });

  it("finds a next owner that is not fenced, an owner that still is, and resources that differ", async () => {
    const moving = { state: "Moving", owners: [{ subset: "blue" }], from: ["default"], since, namespaces: ["team-b"] };
    const base = { ...owned("default"), clusterScope: true };
    expect(await itemsOf(cliWith([slice(base, moving)], { snapshot: routes(15, { blue: ["team-b"] }) }))).toEqual([
      ["team-b", "blue, Moving from default", "blue"],
    ]);
    const fenced = routes(15, { blue: ["team-b"], fenced: ["team-b"] });
    expect(await itemsOf(cliWith([slice(base, moving)], { snapshot: fenced }))).toEqual([]);
    const granted = { ...owned("blue"), namespaces: ["team-b"] };
    expect(await itemsOf(cliWith([slice(base, granted)], { snapshot: fenced }))).toEqual([
      ["team-b", "blue, Owned", "blue, fenced"],
    ]);
    const pods = [{ apiGroups: [""], resources: ["pods"] }];
    const ofPods = routes(15, {}, { table: table([{ ...subset("blue"), resources: pods }], { "team-b": [0] }) });
    expect(await itemsOf(cliWith([slice(base, granted)], { snapshot: ofPods }))).toEqual([
      ["team-b", "blue, Owned", "blue: pods; default: all others"],
    ]);
  });

  it("compares what is frozen", async () => {
    const frozen = { frozen: [{ namespace: "team-b", reason: "a person works there" }] };
    const held = routes(15, { blue: ["team-b"] }, frozen);
    const base = { ...owned("default"), clusterScope: true };
    const place = { ...owned("blue"), namespaces: ["team-b"] };
    const isFrozen = { ...place, state: "Frozen" };
    expect(await itemsOf(cliWith([slice(base, isFrozen)], { snapshot: held }))).toEqual([]);
    expect(await itemsOf(cliWith([slice(base, place)], { snapshot: held }))).toEqual([["team-b", "blue, Owned", "blue, frozen"]]);
    expect(await itemsOf(cliWith([slice(base, isFrozen)], { snapshot: routes(15, { blue: ["team-b"] }) }))).toEqual([
      ["team-b", "blue, Frozen", "blue"],
    ]);
  });

  it("compares the places inside other clusters, and not these clusters as a whole", async () => {
    const inside = table([subset("blue")], { "team-a": [0], "team-b": [], "": [] }, { fenced: ["team-a"] });
    const eu = { name: "eu-1", servers: ["eu-1:443"], drainMs: 1, owner: "", upstream: { url: "https://eu-1" } };
    const snapshot = routes(
      15,
      { defaultSubset: ["team-a"] },
      { subset: "blue", clusters: [{ ...eu, isFenced: true }], clusterTables: new Map([["eu-1", inside]]) },
    );
    const home = { ...owned("default"), namespaces: ["team-a"], clusterScope: true };
    const abroad = (...namespaces: string[]) => [{ cluster: "eu-1", namespaces, clusterScope: true }];
    const rest = { ...owned("default"), insideClusters: abroad("team-b") };
    const moving = {
      ...owned("blue"),
      state: "Moving",
      from: ["default"],
      insideClusters: [{ cluster: "eu-1", namespaces: ["team-a"] }],
    };
    expect(await itemsOf(cliWith([movingSlice({ places: 5, ownership: [home, rest, moving] })], { snapshot }))).toEqual([]);
    const wrong = { ...owned("default"), insideClusters: abroad("team-a", "gone") };
    expect(await itemsOf(cliWith([movingSlice({ places: 5, ownership: [home, wrong] })], { snapshot }))).toEqual([
      ["eu-1/team-a", "default, Owned", "blue, fenced"],
      ["eu-1/gone", "default, Owned", "not known"],
      ["eu-1/team-b", "not published", "default"],
    ]);
  });

  it("compares the policies: one that is late, one that is gone, one without a rule", async () => {
    const target = (message?: string) => [{ podName: "shop-1", ...(message !== undefined && { message }) }];
    const policies = [
      policy("fine", target()),
      policy("late", target("it enforces an earlier version")),
      policy("lost", target()),
      policy("off", target(), "Disabled"),
      policy("of-others", [{ podName: "other-0" }]),
    ];
    expect(await itemsOf(cliWith([SAME, ...policies], { policies: ["fine", "late", "gone"] }))).toEqual([
      ["TrafficPolicy ops/late", "not synced: it enforces an earlier version", "enforced"],
      ["TrafficPolicy ops/lost", "enforced", "not enforced"],
      ["TrafficPolicy ops/gone", "there is no such object", "enforced"],
    ]);
  });

  it("reads all pages of the sidecar", async () => {
    const names = Array.from({ length: 2_500 }, (_, at) => `ns-${at}`);
    const some = (from: number) => slice({ ...owned("default"), namespaces: names.slice(from, from + 900) });
    const slices = [slice({ ...owned("default"), clusterScope: true }), some(0), some(900), some(1_800)];
    const cli = cliWith(slices, { snapshot: routes(15, { defaultSubset: names }) });
    expect((await cli.run("diff", "shop-1")).stdout).toContain("nothing differs in 2501 places");
  });

  it("takes places that another version has published for no difference, and says so", async () => {
    const odd = { ...owned("blue"), state: "Sleeping", namespaces: ["team-b"] };
    const slices = slice({ ...owned("default"), namespaces: ["team-a"], clusterScope: true }, odd);
    const { code, stderr } = await cliWith([slices]).run("diff", "shop-1");
    expect([code, stderr]).toEqual([
      EXIT.ok,
      expect.stringContaining("1 place not compared: another version has written them\n"),
    ]);
  });

  it("says what is not compared: no slices, no routes, no sidecar, an older one", async () => {
    expect((await cliWith([]).run("diff", "shop-1")).stderr).toContain(
      "the owners are not compared: there is no OwnershipSlice of shop",
    );
    const bare = cliWith([object("Pod", "v1", "bare", {})]);
    expect(await bare.run("diff", "bare")).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining("has no sidecar"),
    });
    bare.sidecars.set("shop-1", {
      "/debug/owners": () => ({ snapshot: null }),
      "/debug/policies": () => ({ rules: { first: [], truncated: false } }),
    });
    expect(await bare.run("diff", "shop-1")).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining("no routes yet"),
    });
    bare.sidecars.set("shop-1", {});
    expect((await bare.run("diff", "shop-1")).stderr).toContain("older than this page");
    expect(await bare.run("diff")).toMatchObject({ code: EXIT.usage });
  });
});
