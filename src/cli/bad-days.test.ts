// ctrlmesh with hostile, old and incomplete objects, and with hostile files.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { movingApp as app, condition, type FakeObject, startCli } from "../../test/support/cli.ts";
import { MeshError } from "../base/errors.ts";
import { loadConnection } from "../runtime/kubeconfig.ts";
import { directCluster } from "./cluster/direct.ts";
import { lintText } from "./commands/lint.ts";
import { EXIT } from "./frame/exit.ts";

const healthy = { ...app(), metadata: { namespace: "ops", name: "healthy", generation: 3 } } as unknown as FakeObject;
const REJECTED = ["Ready", "Accepted", "Converged"].map((type) => condition(type, "False", "Invalid", "spec.subsets: too many"));
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed.
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed.
const NOT_ONE_LINE = /[\u0000-\u001f\u007f-\u009f]/;

const VALID = `apiVersion: ctrlmesh.kruise.io/v1alpha1
kind: VirtualApp
metadata: { namespace: ops, name: shop }
spec: { selector: { matchLabels: { app: shop } } }
`;

describe("an app whose first spec the manager has refused (rejectedStatus: conditions, but no subsets)", () => {
  const rejected = app({ subsets: undefined, handover: undefined, proxies: undefined, namespaces: undefined }, REJECTED);

  it("is shown by status, with the reason", async () => {
    const { stdout, stderr } = await startCli([rejected]).run("status");
    expect([stdout, stderr]).toEqual([expect.stringContaining("spec.subsets: too many"), ""]);
  });

  it("is found by wait, which says why it waits", async () => {
    const cli = startCli([rejected]);
    const waiting = cli.run("wait", "shop", "--timeout", "2s");
    await cli.clock.advance(2_000);
    expect(await waiting).toMatchObject({ code: EXIT.timedOut, stderr: expect.stringContaining("spec.subsets: too many") });
  });

  it("can be paused", async () => {
    expect((await startCli([rejected]).run("pause", "shop")).code).toBe(EXIT.ok);
  });
});

describe("a status that another version has written", () => {
  it.each<[string, object]>([
    ["a subset without a name", { subsets: [{ namespaces: 1, readyPods: 1 }] }],
    ["subsets that are null", { subsets: null }],
    ["a handover that is null", { handover: null }],
    ["waitingOn that is null", { handover: { phase: "Draining", done: 0, total: 1, waitingOn: null } }],
    ["conditions that are a map", { conditions: {} }],
  ])("with %s does not hide the other apps", async (_, status) => {
    const { stdout, stderr } = await startCli([app(status), healthy]).run("status");
    expect(stdout).toContain("VirtualApp ops/healthy");
    expect(stderr).not.toMatch(/Cannot|is not a function/);
  });

  it.each<[string, object]>([
    ["a subset without counts", { subsets: [{ name: "default" }] }],
    ["a condition without reason and message", { conditions: [{ type: "Converged", status: "False" }] }],
    ["a wait without reason", { handover: { phase: "Draining", done: 0, total: 1, waitingOn: [{ pod: "p" }] } }],
  ])("with %s does not print undefined", async (_, status) => {
    expect((await startCli([app(status)]).run("status")).stdout).not.toContain("undefined");
  });

  it("with a condition without a message gives confirm a message for people", async () => {
    const { stderr } = await startCli([app({}, [{ type: "Converged", status: "False", reason: "X" }])]).run("confirm", "shop");
    expect(stderr).toContain("no moves that wait for a confirmation");
  });
});

describe("control characters", () => {
  it("of a status neither drive the terminal nor make lines of their own", async () => {
    const message = "first\nVirtualApp ops/good: ready (Serving)\u001b[2J\u001b]52;c;ZXZpbA==\u0007";
    const { stdout } = await startCli([app({}, [condition("Converged", "False", "X", message)])]).run("status");
    expect(stdout).not.toMatch(CONTROL);
    expect(stdout).not.toMatch(/^VirtualApp ops\/good/m);
  });

  it("of a file that is linted do not make lines of their own, such as commands of a CI system", () => {
    const { problems } = lintText(
      "a.yaml",
      VALID.replace("shop }\n", '"x\\n::set-env name=A::b\\e[2J" }\n').replace("selector:", "s:"),
    );
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.map(({ object }) => object).join("")).not.toMatch(NOT_ONE_LINE);
  });
});

describe("lint", () => {
  it("checks each file if -f is given twice, as kubectl takes it", async () => {
    const cli = startCli([]);
    cli.files.set("bad.yaml", VALID.replace("selector", "selektor"));
    cli.files.set("good.yaml", VALID);
    expect((await cli.run("lint", "-f", "bad.yaml", "-f", "good.yaml")).code).not.toBe(EXIT.ok);
  });

  it.each([
    [
      "an alias bomb",
      ["a: &a [x,x]", ..."bcdefghij".split("").map((name, at) => `${name}: &${name} [${Array(9).fill(`*${"abcdefghi"[at]}`)}]`)],
    ],
    ["a list that contains itself", ["&a", "kind: List", "items: [*a]"]],
    ["an alias without an anchor", ["a: *nope"]],
  ])("reports %s as a problem of that document, and checks the other files", async (_, lines) => {
    const cli = startCli([]);
    cli.files.set("bad.yaml", VALID.replace("selector", "selektor"));
    cli.files.set("bomb.yaml", lines.join("\n"));
    const { code, stdout } = await cli.run("lint", "bad.yaml", "bomb.yaml");
    expect(code).toBe(EXIT.findings);
    expect(stdout).toContain("bomb.yaml: document 1: ");
    expect(stdout).toContain("bad.yaml: VirtualApp ops/shop: spec.selektor");
  });
});

describe("the hands", () => {
  it.each([
    ["--context", "prod"],
    ["--kubeconfig", "/tmp/prod"],
    ["--as", "admin"],
  ])("print a kubectl command for the same cluster and user: %s", async (flag, value) => {
    const { stderr } = await startCli([app()]).run("pause", "shop", flag, value);
    expect(stderr).toMatch(new RegExp(`with kubectl: kubectl .*${flag}[= ]'?${value}`));
  });

  it("print a kubectl command that changes nothing in a dry run either", async () => {
    expect((await startCli([app()]).run("pause", "shop", "--dry-run")).stderr).toContain("--dry-run=server");
  });

  it("refuse an empty namespace, as of a variable that is not set, instead of looking in all namespaces", async () => {
    const cli = startCli([app()]);
    expect((await cli.run("pause", "shop", "-n", "")).code).toBe(EXIT.usage);
  });

  it("say how to choose one of two apps of one name", async () => {
    const config = { ...app(), apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "ShardingConfig" } as unknown as FakeObject;
    expect((await startCli([app(), config]).run("pause", "shop")).stderr).toMatch(/ctrlmesh pause \w+\/shop|kubectl/);
  });
});

describe("a family of hand-written ShardingConfigs, whose name is its lock", () => {
  const config = (name: string, more: object): FakeObject =>
    ({
      apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
      kind: "ShardingConfig",
      metadata: { namespace: "ops", name, generation: 1 },
      spec: { controller: { leaderElectionName: "shop-lock" } },
      status: { family: "shop-lock", shard: name, ...more },
    }) as unknown as FakeObject;
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: "ops", name: "shop-0", labels: { "ctrlmesh.kruise.io/virtual-app-injected": "shop-lock" } },
    status: { phase: "Running" },
  } as unknown as FakeObject;

  it("has pods that explain owner asks", async () => {
    const objects = [config("shard-a", { subsets: [] }), config("shard-b", {}), pod];
    expect((await startCli(objects).run("explain", "owner", "ns/a")).stdout).toContain("shop-0");
  });
});

describe("a family of which a later config is paused, which pauses the family (sharding-source.ts)", () => {
  const config = (name: string, more: object): FakeObject =>
    ({
      apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
      kind: "ShardingConfig",
      metadata: { namespace: "ops", name, generation: 1 },
      ...more,
    }) as unknown as FakeObject;
  const objects = [
    config("shard-a", { spec: {}, status: { family: "shop-lock", shard: "shard-a", subsets: [] } }),
    config("shard-b", { spec: { paused: true }, status: { family: "shop-lock", shard: "shard-b" } }),
  ];

  it("is shown as paused", async () => {
    expect((await startCli(objects).run("status")).stdout).toContain("paused by its spec");
  });

  it("goes on after resume", async () => {
    const cli = startCli(objects);
    for (const name of ["shard-a", "shard-b"]) await cli.run("resume", name);
    expect(cli.patches.map(({ path }) => path.split("/").at(-1))).toContain("shard-b");
  });
});

describe("status APP -A", () => {
  it("looks in all namespaces, or is a wrong command line", async () => {
    const elsewhere = { ...app(), metadata: { namespace: "other", name: "far", generation: 3 } } as unknown as FakeObject;
    const { code, stdout } = await startCli([elsewhere]).run("status", "far", "-A");
    expect(code === EXIT.usage || stdout.includes("VirtualApp other/far")).toBe(true);
  });
});

describe("without kubectl", () => {
  const withKubeconfig = async (text: string, body: (path: string) => Promise<void>) => {
    const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-attack-"));
    try {
      writeFileSync(join(dir, "config"), text);
      await body(join(dir, "config"));
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  };

  it("a kubeconfig with an error of syntax does not show its token", () =>
    withKubeconfig('apiVersion: v1\nusers:\n- name: u\n  user: { token: "SECRETTOKEN\n', async (kubeconfig) => {
      const error: unknown = await loadConnection({ kubeconfig, env: {}, userAgent: "t" }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(MeshError);
      expect(String((error as MeshError).cause)).not.toContain("SECRETTOKEN");
    }));

  it("the namespace is that of the context, as --help says", () =>
    withKubeconfig(
      JSON.stringify({
        "current-context": "c",
        clusters: [{ name: "c", cluster: { server: "http://127.0.0.1:1" } }],
        contexts: [{ name: "c", context: { cluster: "c", user: "u", namespace: "ops" } }],
        users: [{ name: "u", user: {} }],
      }),
      async (kubeconfig) => {
        const cluster = await directCluster({ kubeconfig, context: undefined, as: undefined, requestTimeoutMs: 1_000 });
        expect(cluster.namespace).toBe("ops");
      },
    ));
});
