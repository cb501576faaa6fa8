// Every fenced block of the documents: commands that no test runs stand here with the reason, commands name files, scripts and values that
// exist, and the YAML of the mesh's kinds is valid.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { KIND_NAMES } from "../../src/api/crd.ts";
import { CONDITION_REASONS } from "../../src/manager/status/app-status.ts";
import { blocksOf, type DocBlock, documents, readDocument } from "../support/doc-blocks.ts";
import { GUIDE } from "../support/docs-guide.ts";
import { exampleProblems } from "../support/example-problems.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OWN_OPERATOR = "needs the reader's operator, with its names";
/** The pages with commands that no test runs as they stand, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  "README.md": "test/golden/demo.test.ts runs the demo; the quickstart runs helm install with images",
  "docs/migration.md": "the commands for KusionStack run; those for openkruise are alike, and need its objects",
  "docs/quickstart.md": "docker and kind do not run here; `npm run test:node` runs port-forward",
  "docs/reference/cli.md": "test/e2e/ctrlmesh.test.ts runs the sources; `npm run test:node` has the image",
  "docs/protocol/README.md": "test/nightly/protocol.test.ts runs them for every row of the page",
  "docs/reference/injection.md": OWN_OPERATOR,
  "docs/reference/observability.md": "the test node has no port-forward",
  "docs/reference/status.md": "the quickstart runs them at the same point",
  "docs/reference/webhooks.md": OWN_OPERATOR,
  "docs/concepts/ownership.md": "src/proxy/debug-pages.test.ts reads the page; port-forward does not run here",
  "docs/tasks/adopt-an-operator.md": "the quickstart runs them at the same point",
  "docs/tasks/autoscale-an-operator.md": "test/nightly/sharding-hpa.test.ts runs the example with short times",
  "docs/tasks/break-glass.md": "the guide runs the rest; this one is for a deletion without a manager, as in docs/tasks/leave.md",
  "docs/tasks/build-images.md": "scripts/images.test.ts runs them with builders that record their calls",
  "docs/tasks/canary-an-operator.md": "the quickstart runs it at the same point",
  "docs/tasks/divide-cluster-namespaces.md": "test/e2e/cluster-namespaces.test.ts does the same on real control planes",
  "docs/tasks/divide-clusters.md": "test/e2e/clusters.test.ts waits for the same conditions",
  "docs/tasks/freeze-a-namespace.md": "the guide runs the rest; test/e2e/cluster-namespaces.test.ts freezes in another cluster",
  "docs/tasks/install.md": "docker does not run here; test/nightly/chart.test.ts installs with such values",
  "docs/tasks/label-objects.md": "test/nightly/labels.test.ts does the same",
  "docs/tasks/leave.md": "test/nightly/install-failures.test.ts and test/e2e/adopt-and-leave.test.ts do the same",
  "docs/tasks/limit-traffic.md":
    "test/nightly/policies-leaned-on.test.ts runs the questions about a breaker; the rest needs the reader's operator",
  "docs/tasks/move-namespaces.md": "test/e2e/adopt-and-leave.test.ts confirms a move in the same way",
  "docs/tasks/rotate-the-ca.md": "test/nightly/install-failures.test.ts rotates the CA in the same way",
  "docs/tasks/shard-an-operator.md": "the demo of sharding and test/nightly/sharding-rollout.test.ts do the same",
  "docs/tasks/upgrade.md": "the quickstart runs a restart of the same operator",
  "docs/tasks/use-cluster-profiles.md": "test/e2e/cluster-profiles.test.ts reads the same objects",
  "docs/tasks/use-gitops.md": "test/e2e/gitops.test.ts runs lint and plan on such a file",
  "docs/tasks/watch-in-a-browser.md": "test/e2e/dashboard.test.ts runs the sources",
  "docs/troubleshooting.md": OWN_OPERATOR,
};

const COMMAND = /^(kubectl|helm|docker|kind|npm|npx|node|curl|sed|cosign) /m;
const pages = documents().map((page) => ({ page, blocks: blocksOf(readDocument(page)) }));
const all = pages.flatMap(({ page, blocks }) => blocks.map((block) => ({ page, ...block })));
const isRun = ({ info }: DocBlock) => info === "sh" || info === "sh refused";
const commands = all.filter((block) => isRun(block) || block.info === "bash");
/** A command without the text of its here documents and quotes. */
const words = ({ text }: DocBlock) => text.replaceAll("\\\n", " ").replaceAll(/'[^']*'/g, "''");

describe("the commands of the documents", () => {
  it("are marked as commands", () => {
    const outputs = all.filter(({ info }) => info === "" || info === "text");
    const unmarked = outputs.filter(({ text }) => COMMAND.test(text));
    expect(unmarked.map(({ page, section }) => `${page}, ${section}`)).toEqual([]);
  });

  it("are without a prompt", () => {
    expect(commands.filter(({ text }) => /^[$#>] /m.test(text)).map(({ page, section }) => `${page}, ${section}`)).toEqual([]);
  });

  it("are run in the order of the guide, if they are marked so", () => {
    const sections = new Set(Object.values(GUIDE).flatMap((each) => each.map(({ page, section }) => `${page}, ${section}`)));
    const marked = new Set(all.filter(isRun).map(({ page, section }) => `${page}, ${section}`));
    expect([...marked].sort()).toEqual([...sections].sort());
  });

  it("have a reason here, if no test runs them", () => {
    const marked = new Set(all.filter(({ info }) => info === "bash").map(({ page }) => page));
    expect([...marked].sort()).toEqual(Object.keys(NOT_RUN).sort());
  });

  it.each(commands.map((block) => [`${block.page}, ${block.section}`, block] as const))(
    "of %s can be read by bash",
    (_, block) => {
      expect(() => execFileSync("bash", ["-n"], { input: block.text, stdio: "pipe" })).not.toThrow();
    },
  );

  it("name files of this repository that exist", () => {
    const paths = commands.flatMap((block) =>
      [...words(block).matchAll(/(?:^|\s)((?:charts|deploy|examples|scripts|test)\/\S+|Dockerfile\.\w+)/g)].map(
        ([, path]) => path,
      ),
    );
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => !existsSync(`${ROOT}${path}`))).toEqual([]);
  });

  it("name scripts of package.json that exist", () => {
    const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")) as { scripts: Record<string, string> };
    const named = commands.flatMap((block) =>
      [...words(block).matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name = ""]) => name),
    );
    expect(named).toContain("demo");
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  });

  it("wait for conditions that exist", () => {
    const waits = all.flatMap(({ text }) =>
      [...text.matchAll(/(?:condition=|type == '|(?:is|found)[([]")(\w+)/g)].map(([, type = ""]) => type),
    );
    const known = [...Object.keys(CONDITION_REASONS), "Available", "Established"];
    expect(waits).toContain("InjectionReady");
    expect(waits.filter((type) => !known.includes(type))).toEqual([]);
  });

  it("set values of the chart that exist", () => {
    const values: unknown = parse(readFileSync(`${ROOT}charts/ctrlmesh/values.yaml`, "utf8"));
    const set = commands.flatMap(({ text }) => [...text.matchAll(/--set '?([\w.]+)=/g)].map(([, path = ""]) => path));
    expect(set.length).toBeGreaterThan(5);
    const exists = (path: string) =>
      path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], values) !==
      undefined;
    expect([...new Set(set)].filter((path) => !exists(path))).toEqual([]);
  });
});

describe("the YAML of the documents", () => {
  const yaml = all.filter(({ info }) => info === "yaml");

  it.each(yaml.map((block) => [`${block.page}, ${block.section}`, block] as const))("of %s is valid", (_, { text }) => {
    for (const document of parseAllDocuments(text, { strict: true })) {
      expect(document.errors).toEqual([]);
      const object = document.toJS() as { kind?: string; metadata?: object } | null;
      if (KIND_NAMES.includes(object?.kind as never) && object?.metadata !== undefined)
        expect(exampleProblems(object)).toEqual([]);
    }
  });

  it("of the quickstart is the VirtualApp that it applies", () => {
    const applied = readFileSync(`${ROOT}examples/install/virtualapp.yaml`, "utf8").replace(/^#.*\n/, "");
    expect(yaml.find(({ page }) => page === "docs/quickstart.md")?.text).toBe(applied);
  });
});
