import { describe, expect, it } from "vitest";
import { type FakeObject, movingApp, startCli } from "../../test/support/cli.ts";
import { SLICE_APP_LABEL } from "../api/ownership-slice.ts";
import { EXIT } from "./frame/exit.ts";

const app = (frozen?: unknown) => ({ ...movingApp(), spec: { route: { frozen } } }) as unknown as FakeObject;
const cluster = (name: string, interception?: string, namespace = "ops") =>
  ({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "MeshCluster",
    metadata: { namespace, name },
    spec: { servers: [], interception },
  }) as unknown as FakeObject;
const slice = (...namespaces: string[]) =>
  ({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "OwnershipSlice",
    metadata: { namespace: "ops", name: "shop-1", labels: { [SLICE_APP_LABEL]: "shop" } },
    app: "shop",
    places: namespaces.length,
    ownership: [{ state: "Owned", owners: [], since: "2026-01-01T00:00:00Z", insideClusters: [{ cluster: "eu-1", namespaces }] }],
  }) as unknown as FakeObject;
const TERMINATED = cluster("eu-1", "Terminate");
const FREEZE = ["freeze", "team-b", "--app", "shop", "--cluster", "eu-1"];

describe("freeze --cluster", () => {
  it("patches the key of the cluster and the namespace, whatever home has, and thaw takes it back", async () => {
    const cli = startCli([app({ "team-b": "at home" }), TERMINATED, slice("team-b")]);
    const frozen = await cli.run(...FREEZE, "--reason", "restore");
    expect([frozen.code, frozen.stdout]).toEqual([EXIT.ok, "VirtualApp ops/shop has frozen namespace team-b of cluster eu-1\n"]);
    expect(frozen.stderr).not.toMatch(/was frozen before|is not known/);
    expect(cli.patches.splice(0).map(({ patch }) => patch)).toEqual([
      { spec: { route: { frozen: { "eu-1/team-b": "restore" } } } },
    ]);
    cli.objects[0] = app({ "team-b": "at home", "eu-1/team-b": "restore" });
    const thawed = await cli.run("thaw", "team-b", "--app", "shop", "--cluster", "eu-1");
    expect(thawed.stdout).toBe("VirtualApp ops/shop has thawed namespace team-b of cluster eu-1\n");
    expect(cli.patches.map(({ patch }) => patch)).toEqual([{ spec: { route: { frozen: { "eu-1/team-b": null } } } }]);
  });

  it("says that it does not know the namespaces of a cluster that no OwnershipSlice is about", async () => {
    const { code, stderr } = await startCli([app(), TERMINATED]).run(...FREEZE);
    expect(code).toBe(EXIT.ok);
    expect(stderr).toContain("whether MeshCluster eu-1 has a namespace team-b is not known: no OwnershipSlice says it\n");
  });

  it.each<[what: string, objects: FakeObject[], text: string]>([
    [
      "without a MeshCluster",
      [cluster("eu-1", "Terminate", "other")],
      "there is no MeshCluster eu-1 in namespace ops, so nothing",
    ],
    [
      "with Tunnel",
      [cluster("eu-1", "Tunnel")],
      "MeshCluster eu-1 has interception Tunnel, and freezes need Terminate, so nothing",
    ],
    ["with the default", [cluster("eu-1")], "MeshCluster eu-1 has interception Tunnel, and freezes need Terminate, so nothing"],
    ["with None", [cluster("eu-1", "None")], "MeshCluster eu-1 has interception None, and freezes need Terminate, so nothing"],
    ["without the namespace", [TERMINATED, slice("team-a")], "MeshCluster eu-1 has no namespace team-b, so nothing was frozen"],
  ])("changes nothing for a cluster %s", async (_what, objects, text) => {
    const cli = startCli([app(), ...objects]);
    const { code, stderr } = await cli.run(...FREEZE);
    expect([code, cli.patches]).toEqual([EXIT.failed, []]);
    expect(stderr).toContain(text);
  });

  it("changes nothing for an empty name, nor for a thaw in another cluster", async () => {
    const cli = startCli([app({ "eu-1/team-b": "x" }), TERMINATED]);
    expect((await cli.run("freeze", "team-b", "--app", "shop", "--cluster", "")).code).toBe(EXIT.usage);
    const { code, stderr } = await cli.run("thaw", "team-b", "--app", "shop");
    expect([code, cli.patches]).toEqual([EXIT.failed, []]);
    expect(stderr).toContain("shop has not frozen namespace team-b; frozen are: eu-1/team-b");
  });
});

describe("a freeze in another cluster", () => {
  const unheld = () => {
    const object = app({ "eu-1/team-b": "restore", prod: "x" }) as unknown as { status: { conditions: object[] } };
    const lastTransitionTime = new Date(0).toISOString();
    const condition = { type: "Converged", status: "False", reason: "NotFrozen", message: "why", lastTransitionTime };
    return { ...object, status: { ...object.status, conditions: [condition] } } as unknown as FakeObject;
  };

  it("is shown by status with its cluster, and with a doubt if the status says that one stops nobody", async () => {
    const { stdout } = await startCli([app({ "eu-1/team-b": "restore" })]).run("status");
    expect(stdout).toContain("  frozen: namespace team-b of cluster eu-1: restore\n");
    const json = await startCli([app({ "eu-1/team-b": "restore" })]).run("status", "-o", "json");
    expect(JSON.parse(json.stdout).items[0].frozen).toEqual([{ cluster: "eu-1", namespace: "team-b", reason: "restore" }]);
    const doubted = await startCli([unheld()]).run("status");
    expect(doubted.stdout).toContain("  maybe not frozen, see Converged: namespace team-b of cluster eu-1: restore\n");
    expect(doubted.stdout).toContain("  frozen: namespace prod: x\n");
  });
});
