// docs/reference/cli.md shows what the program prints.
import { expect, it } from "vitest";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { EXIT } from "../../src/cli/frame/exit.ts";
import { COMMANDS } from "../../src/cli/run.ts";
import { enforced } from "../../src/mesh/ownership/enforced.ts";
import { clusterPage, explainPage } from "../../src/proxy/debug-pages.ts";
import { ownersPage } from "../../src/proxy/owners-page.ts";
import { condition, type FakeObject, movingApp, movingSlice, startCli } from "../support/cli.ts";
import { cliOfMesh } from "../support/cli-of-mesh.ts";
import { readDocument } from "../support/doc-blocks.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { meshClusterOf, movingCluster } from "../support/mesh-cluster.ts";
import { runningPolicies } from "../support/running-policies.ts";
import { routes } from "../support/test-routes.ts";
import { sampleVirtualApp } from "../support/virtual-app.ts";

const page = readDocument("docs/reference/cli.md");
const OUTPUT = /```text\n[^`]*```/g;

/** The command line of each output in the page, with its world. */
const EXAMPLES: readonly (readonly [line: string, cli: ReturnType<typeof startCli>])[] = [
  ["--help", startCli([])],
  ["check", cliOfPausedApp()],
  ["status", startCli([movingApp()])],
  ["explain owner meshcluster/eu-1", cliWithClusters()],
  ["explain request shop-1 delete deployments.apps/web --in team-b", cliWithSidecar()],
  ["owners -o wide", startCli([movingSlice()])],
  ["diff shop-1", cliWithOldSidecar()],
  ["plan -f edit.yaml", cliWithEdit()],
  ["plan -f edit.yaml --delete-cluster ap-1", cliWithClusters()],
  ["plan -f edit.yaml", cliWithNamespacesAbroad()],
];

it("shows what the commands print", async () => {
  const printed: string[] = [];
  for (const [line, cli] of EXAMPLES) printed.push((await cli.run(...line.split(" "))).stdout);
  expect(page.match(OUTPUT)).toHaveLength(printed.length);
  const updated = page.replaceAll(OUTPUT, () => `\`\`\`text\n${printed.shift()}\`\`\``);
  // `npx vitest run --project unit test/docs/cli.test.ts -u` writes the page.
  await expect(updated).toMatchFileSnapshot("../../docs/reference/cli.md");
});

/** Everything is as it should be, but for an app that somebody has paused. */
function cliOfPausedApp() {
  const paused = movingApp({}, [condition("Ready", "True", "InSync"), condition("Converged", "False", "Paused")]);
  return cliOfMesh({ apps: [{ ...paused, spec: { route: { paused: true } } } as unknown as FakeObject] });
}

function cliWithSidecar() {
  const cli = startCli([]);
  cli.answers.set("/apis/apps", { preferredVersion: { version: "v1" } });
  cli.answers.set("/apis/apps/v1", { resources: [{ name: "deployments", namespaced: true }] });
  cli.sidecars.set("shop-1", { "/debug/explain": (query) => explainPage(query, sidecarOfTeamA()) });
  return cli;
}

/** A sidecar that does not know yet that team-b moves. */
function cliWithOldSidecar() {
  const pod = { metadata: { namespace: "ops", name: "shop-1", labels: { [INJECTED_LABEL]: "shop" } } };
  const ownership = [
    { state: "Moving", owners: [{ subset: "canary" }], from: ["default"], since: "2026-01-01T00:00:00Z", namespaces: ["team-b"] },
    {
      state: "Owned",
      owners: [{ subset: "default" }],
      since: "2026-01-01T00:00:00Z",
      namespaces: ["team-a"],
      clusterScope: true,
    },
  ];
  const cli = startCli([
    movingApp({ routeVersion: 17 }),
    movingSlice({ ownership }),
    { apiVersion: "v1", kind: "Pod", ...pod } as unknown as FakeObject,
  ]);
  const held = routes(15, { defaultSubset: ["team-a", "team-b"] }, { subset: "" });
  cli.sidecars.set("shop-1", {
    "/debug/owners": (query) => ownersPage(query, held),
    "/debug/policies": () => ({ rules: { first: [], truncated: false } }),
  });
  return cli;
}

/** An edit that gives two more namespaces to the subset v2. */
function cliWithEdit() {
  const dividedBy = (namespaceRegex: string) =>
    sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match: [{ namespaceRegex }] }] } });
  const namespaces = ["canary-a", "team-a", "team-b", "team-c"].map((name) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name },
  }));
  const stored = { ...dividedBy("^canary-"), status: { subsets: [{ name: "default", namespaces: 3, readyPods: 2, pods: 2 }] } };
  const cli = startCli([...namespaces, stored as unknown as FakeObject]);
  cli.files.set("edit.yaml", JSON.stringify(dividedBy("^(canary-|team-[ab])")));
  return cli;
}

/** An edit that gives the namespaces of another tier inside a cluster to the subset v2. */
function cliWithNamespacesAbroad() {
  const dividedBy = (tier: string) => {
    const match = { clusters: ["eu-1"], namespaceSelector: { matchLabels: { tier } } };
    return sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match: [match] }] } });
  };
  const entry = (name: string, ...namespaces: string[]) => ({
    state: "Owned",
    owners: [{ subset: name }],
    since: "2026-01-01T00:00:00Z",
    insideClusters: [{ cluster: "eu-1", namespaces }],
  });
  const cluster = meshClusterOf("eu-1", "eu", { interception: "Terminate", terminate: { kubeconfigSecret: "eu-1" } });
  const slice = movingSlice({ ownership: [entry("v2", "team-a"), entry("default", "team-b", "team-c")] });
  const cli = startCli([cluster, slice, dividedBy("canary") as unknown as FakeObject]);
  cli.files.set("edit.yaml", JSON.stringify(dividedBy("next")));
  return cli;
}

/** The subset v2 owns the clusters in Europe, and gets one of them. */
function cliWithClusters() {
  const clusterSelector = { matchLabels: { region: "eu" } };
  const app = sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match: [{ clusterSelector }] }] } });
  const status = movingCluster("v2", "shop-1", new Date(createFakeClock().now() - 41_000).toISOString());
  const metadata = { namespace: "ops", name: "shop-0", labels: { [INJECTED_LABEL]: "shop" } };
  const cli = startCli([
    app as unknown as FakeObject,
    { apiVersion: "v1", kind: "Pod", metadata, status: { phase: "Running" } } as unknown as FakeObject,
    { ...meshClusterOf("eu-1", "eu"), status } as FakeObject,
    meshClusterOf("us-1", "us"),
    meshClusterOf("ap-1", "ap"),
  ]);
  const clusters = [{ name: "eu-1", servers: ["eu-1.example:6443"], drainMs: 60_000, owner: "v2", isFenced: true as const }];
  const current = enforced(routes(17, {}, { subset: "v2", app: { namespace: "ops", name: "shop" }, clusters }));
  const home = { leftMs: () => 1, authorization: "Bearer x" };
  const deps = { session: { current }, gate: { closedFor: undefined }, home };
  cli.sidecars.set("shop-0", { "/debug/owner": (query) => clusterPage(query, deps) });
  cli.files.set("edit.yaml", JSON.stringify(meshClusterOf("us-1", "eu")));
  return cli;
}

/** A sidecar of the subset blue, which owns team-a. */
function sidecarOfTeamA() {
  const { policies } = runningPolicies();
  const current = enforced(
    routes(17, { blue: ["team-a"], defaultSubset: ["team-b"] }, { app: { namespace: "ops", name: "shop" } }),
  );
  return { session: { current }, policies, gate: { closedFor: undefined }, random: () => 0 };
}

it("has a row for each exit code, and a word on each command", () => {
  const codes = [...page.matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual(Object.values(EXIT));
  const headings = [...page.matchAll(/^## (.*)$/gm)].flatMap(([, names = ""]) => names.split(", "));
  expect(headings.sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
});
