import { describe, expect, it } from "vitest";
import { movingApp as app, condition, type FakeObject, startCli } from "../../test/support/cli.ts";
import { routes } from "../../test/support/test-routes.ts";
import { VERSION } from "../base/version.ts";
import { enforced } from "../mesh/ownership/enforced.ts";
import { ownerPage } from "../proxy/debug-pages.ts";
import { EXIT } from "./frame/exit.ts";

const READY = [condition("Ready", "True", "InSync"), condition("Converged", "True", "InSync")];

describe("status", () => {
  it("shows the subsets, what moves, for how long, and who is waited for", async () => {
    const { code, stdout } = await startCli([app()]).run("status");
    expect(code).toBe(EXIT.ok);
    expect(stdout).toBe(`VirtualApp ops/shop: ready (Draining), 1 of 3 proxies in sync, 412 namespaces, 1 moving
  default  388 namespaces  2 of 2 pods ready  lock shop-lock: shop-0
  canary   24 namespaces   0 of 1 pods ready  lock shop-lock---canary: nobody leads  SubsetWithoutPods
  moving: 1 namespace from default to canary, Draining for 41s, 1 of 2 pods are through
    waits for  pod shop-1  WriteInFlight for 12s  for example namespace team-b
  Converged is False (Moving): 1 of 3 proxies enforce route 17
`);
  });

  it("says that an app is paused, also if nothing would move", async () => {
    const paused = { ...app({ handover: undefined }, READY), spec: { route: { paused: true } } } as unknown as FakeObject;
    expect((await startCli([paused]).run("status")).stdout).toContain(
      "  paused by its spec: no namespace moves until: ctrlmesh resume shop -n ops\n",
    );
    expect(JSON.parse((await startCli([paused]).run("status", "-o", "json")).stdout).items[0].paused).toBe(true);
  });

  it("gives programs one document, and says what is not known for the last edit", async () => {
    const edited = app({}, [condition("Ready", "True", "Serving", "", 2)]);
    const { stdout, stderr } = await startCli([edited]).run("status", "shop", "-o", "json");
    const { items, ...head } = JSON.parse(stdout);
    expect(head).toEqual({ apiVersion: "cli.ctrlmesh.kruise.io/v1alpha1", kind: "AppList" });
    expect(items[0]).toMatchObject({
      kind: "VirtualApp",
      namespace: "ops",
      name: "shop",
      ready: { status: "True", isCurrent: false },
    });
    expect(items[0].handover.phase).toBe("Draining");
    expect(stderr).toBe("");
    expect((await startCli([edited]).run("status")).stdout).toContain("not known yet for the last edit (Serving)");
  });

  it("says what there is if there is no such app, and nothing on stdout", async () => {
    const cli = startCli([app()]);
    expect(await cli.run("status", "shpo")).toEqual({
      code: EXIT.failed,
      stdout: "",
      stderr: "ctrlmesh: there is no app shpo in namespace ops; its apps are: shop\n",
    });
    expect(await cli.run("status", "-n", "other")).toEqual({
      code: EXIT.ok,
      stdout: "",
      stderr: "there is no app in namespace other; -A shows all namespaces\n",
    });
  });

  it("shows a family of shards once", async () => {
    const config = (name: string, status: object, more: object = {}): FakeObject =>
      ({
        apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
        kind: "ShardingConfig",
        metadata: { namespace: "ops", name, ...more },
        status,
      }) as unknown as FakeObject;
    const owner = {
      apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
      kind: "ShardingConfig",
      name: "root",
      uid: "u",
      controller: true,
    };
    const objects = [
      config("root", { subsets: [] }),
      config("root-0", { shard: "root-0" }, { ownerReferences: [owner] }),
      config("hand-b", { family: "lock", shard: "b" }),
      config("hand-a", { family: "lock", shard: "a", subsets: [] }),
    ];
    const { stdout } = await startCli(objects).run("status", "-A", "-o", "json");
    expect(JSON.parse(stdout).items.map(({ name }: { name: string }) => name)).toEqual(["lock", "root"]);
  });
});

describe("wait", () => {
  it("ends when the condition is true of the last edit", async () => {
    expect(await startCli([app({}, READY)]).run("wait", "shop")).toMatchObject({
      code: EXIT.ok,
      stdout: "shop: Converged (InSync)\n",
    });
  });

  it("goes on while it is true of an earlier edit only, and then says why", async () => {
    const objects = [app({}, [condition("Ready", "True", "Serving", "", 2)])];
    const cli = startCli(objects);
    const waiting = cli.run("wait", "shop", "--for", "ready", "--timeout", "10s");
    await cli.clock.advance(5_000);
    objects[0] = app({}, READY);
    await cli.clock.advance(1_000);
    expect(await waiting).toEqual({
      code: EXIT.ok,
      stdout: "shop: Ready (InSync)\n",
      stderr: "shop: Ready is not known yet for the last edit\n",
    });
  });

  it("ends with 4 in time, with the reason and the status", async () => {
    const cli = startCli([app()]);
    const waiting = cli.run("wait", "shop", "--timeout=3s");
    await cli.clock.advance(3_000);
    const { code, stdout } = await waiting;
    expect(code).toBe(EXIT.timedOut);
    expect(stdout).toContain("shop: not Converged (Moving): 1 of 3 proxies enforce route 17 after 3s\nVirtualApp ops/shop");
  });

  it("ends with the command that says whether a manager leads, if none has looked at the last edit", async () => {
    const cli = startCli([app({}, [condition("Converged", "True", "InSync", "", 2)])]);
    const waiting = cli.run("wait", "shop", "--timeout=3s", "--context=prod");
    await cli.clock.advance(3_000);
    const { code, stdout } = await waiting;
    expect(code).toBe(EXIT.timedOut);
    expect(stdout).toMatch(/for the last edit after 3s\nwhether a manager leads is said by: ctrlmesh check --context=prod\n/);
  });
});

describe("the hands", () => {
  it.each([
    ["pause", { spec: { route: { paused: true } } }],
    ["resume", { spec: { route: { paused: false } } }],
  ])("%s patches the app, and says how kubectl would", async (command, patch) => {
    const cli = startCli([app()]);
    const { code, stdout, stderr } = await cli.run(command, "shop");
    expect([code, stdout]).toEqual([EXIT.ok, `VirtualApp ops/shop ${command}d\n`]);
    expect(cli.patches).toEqual([
      { path: "/apis/ctrlmesh.kruise.io/v1alpha1/namespaces/ops/virtualapps/shop", patch, dryRun: false },
    ]);
    expect(stderr).toContain(
      `kubectl patch virtualapps.ctrlmesh.kruise.io shop -n ops --type=merge -p '${JSON.stringify(patch)}' --field-manager=ctrlmesh`,
    );
  });

  it("change nothing in a dry run", async () => {
    const cli = startCli([app()]);
    expect((await cli.run("pause", "shop", "--dry-run")).stdout).toContain("nothing was changed");
    expect(cli.patches.map(({ dryRun }) => dryRun)).toEqual([true]);
  });

  it("confirm only moves that wait for it, of the last edit", async () => {
    const key = "ctrlmesh.kruise.io/confirm-moves";
    const waiting = (generation: number) =>
      app({}, [condition("Converged", "False", "ConfirmationRequired", `... the annotation ${key}=3`, generation)]);
    const cli = startCli([waiting(3)]);
    expect((await cli.run("confirm", "shop")).code).toBe(EXIT.ok);
    expect(cli.patches[0]?.patch).toEqual({ metadata: { annotations: { [key]: "3" } } });
    expect((await startCli([waiting(2)]).run("confirm", "shop")).stderr).toContain("edited a moment ago");
    expect((await startCli([app()]).run("confirm", "shop")).stderr).toContain("no moves that wait");
  });
});

describe("lint", () => {
  const VALID = `apiVersion: ctrlmesh.kruise.io/v1alpha1
kind: VirtualApp
metadata: { namespace: ops, name: shop }
spec:
  selector: { matchLabels: { app: shop } }
`;
  it("finds nothing in a valid file, and does not look at objects of others", async () => {
    const cli = startCli([]);
    cli.files.set("a.yaml", `${VALID}---\napiVersion: v1\nkind: Nonsense\n`);
    expect(await cli.run("lint", "-f", "a.yaml")).toEqual({ code: EXIT.ok, stdout: "1 object, no problems\n", stderr: "" });
  });

  it("names the field, what is wrong with it, and the object", async () => {
    const cli = startCli([]);
    cli.files.set("b.yaml", `${VALID.replace("selector:", "selektor:")}---\n{ not: [yaml`);
    const { code, stdout } = await cli.run("lint", "b.yaml");
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain('b.yaml: VirtualApp ops/shop: spec.selektor: unknown field; did you mean "selector"?');
    expect(stdout).toContain("b.yaml: document 2: ");
  });

  it("names the kinds that there are", async () => {
    const cli = startCli([]);
    cli.files.set("-", VALID.replace("VirtualApp", "VirtuaApp"));
    expect((await cli.run("lint", "-f", "-")).stdout).toContain('kind: "VirtuaApp" is none of: VirtualApp,');
  });
});

describe("version", () => {
  const state = {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "ManagerState",
    metadata: { name: "ctrlmesh-manager" },
    status: { namespace: "mesh", endpoints: [{ name: "m-0", podIP: "1.1.1.1", leader: true }] },
  } as unknown as FakeObject;
  const pod = (name: string, container: string, image: string, labels?: Record<string, string>) =>
    ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace: "mesh", name, labels },
      spec: { containers: [{ name: container, image }] },
    }) as unknown as FakeObject;

  it("is that of this program without the cluster", async () => {
    expect(await startCli([]).run("version", "--client")).toMatchObject({ code: EXIT.ok, stdout: `ctrlmesh ${VERSION}\n` });
  });

  it("shows the managers and the sidecars by image", async () => {
    const labels = { "ctrlmesh.kruise.io/virtual-app-injected": "shop" };
    const sidecars = ["a:1", "a:2", "a:2"].map((image, at) => pod(`p-${at}`, "ctrlmesh-proxy", image, labels));
    const { stdout, stderr } = await startCli([state, pod("m-0", "manager", "m:2"), ...sidecars]).run("version");
    expect(stdout).toBe(`ctrlmesh         ${VERSION}\nleader mesh/m-0  m:2\n2 sidecars       a:2\n1 sidecar        a:1\n`);
    expect(stderr).toContain("the sidecars differ");
  });

  it("says that no manager is there", async () => {
    expect(await startCli([]).run("version")).toMatchObject({ code: EXIT.failed, stdout: "" });
  });
});

describe("explain owner", () => {
  const pod = (name: string, phase: string): FakeObject =>
    ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace: "ops", name, labels: { "ctrlmesh.kruise.io/virtual-app-injected": "shop" } },
      status: { phase },
    }) as unknown as FakeObject;

  it("shows why a sidecar was not asked, and fails if none was", async () => {
    const { code, stdout } = await startCli([app(), pod("shop-0", "Running"), pod("shop-1", "Pending")]).run(
      "explain",
      "owner",
      "ns/a",
    );
    expect(code).toBe(EXIT.failed);
    expect(stdout).toBe(
      "APP       POD     SUBSET  ROUTE  OWNER OF a\nops/shop  shop-0  -       -      not asked: no port of pod shop-0 can be reached here\n",
    );
  });

  it("says that the namespace is frozen, with the reason that the sidecar has", async () => {
    const cli = startCli([app(), pod("shop-0", "Running")]);
    const frozen = [{ namespace: "a", reason: "restore" }];
    const { snapshot } = enforced(routes(17, { blue: ["a"] }, { frozen }));
    cli.sidecars.set("shop-0", { "/debug/owner": (query) => ownerPage(query, snapshot) });
    expect((await cli.run("explain", "owner", "a")).stdout).toContain('17     subset "blue", frozen: restore\n');
  });

  it("says that no sidecar runs", async () => {
    expect((await startCli([app()]).run("explain", "owner", "a")).stderr).toContain(
      "no pod of these apps has a sidecar that runs",
    );
  });
});

it("takes --version as people type it", async () => {
  expect(await startCli([]).run("--version")).toEqual({ code: EXIT.ok, stdout: `ctrlmesh ${VERSION}\n`, stderr: "" });
});

describe("a wrong command line", () => {
  it.each([
    [["stauts"], 'there is no command "stauts"; the commands are: check, status, wait'],
    [["status", "a", "b"], "status: too many arguments: b"],
    [["status", "--foo"], "status: Unknown option '--foo'"],
    [["status", "-o", "yaml"], '-o: "yaml" is not known'],
    [["wait", "shop", "--for", "ever"], '--for: "ever" is none of: ready, moved'],
    [["wait", "shop", "--timeout", "soon"], '--timeout: "soon" is no duration'],
    [["status", "--request-timeout", "5"], '--request-timeout: "5" is no duration'],
    [["pause"], "name an app"],
    [["lint"], "name a file with -f"],
    [["explain", "owner"], "name a namespace"],
    [["explain"], 'there is no command "explain"; the commands are: explain owner, explain request, explain inject\n'],
  ])("%j ends with 64 and says what is wrong", async (argv, message) => {
    const { code, stdout, stderr } = await startCli([app()]).run(...argv);
    expect([code, stdout]).toEqual([EXIT.usage, ""]);
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/^see: ctrlmesh .*--help$/m);
  });

  it("of nothing, or of --help, shows the commands", async () => {
    expect((await startCli([]).run()).stdout).toContain("status [APP]");
    expect((await startCli([]).run("wait", "--help")).stdout).toContain("--for ready|moved");
  });

  it("of help and a command shows the help of the command, and does not run it", async () => {
    const stored = app();
    const cli = startCli([{ ...stored, metadata: { ...stored.metadata, name: "pause" } }]);
    const { stdout, code } = await cli.run("help", "pause");
    expect(stdout).toBe((await cli.run("pause", "--help")).stdout);
    expect({ code, patches: cli.patches }).toEqual({ code: 0, patches: [] });
  });

  it("with --help aligns the flags of the command and the common ones", async () => {
    const { stdout } = await startCli([]).run("status", "--help");
    const [own, common] = ["in all namespaces", "the context of the kubeconfig"].map((help) =>
      stdout
        .split("\n")
        .find((line) => line.endsWith(help))
        ?.indexOf(help),
    );
    expect(own).toBe(common);
  });
});
