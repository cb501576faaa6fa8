// The objects of the mesh's kinds in examples/ are valid, and each one in examples/invalid is refused with the message of its first line.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { lockNameOf, validateVirtualApp } from "../../src/api/virtual-app.ts";
import { exampleProblems } from "../support/example-problems.ts";

const EXAMPLES = new URL("../../examples/", import.meta.url);

const read = (path: string) => readFileSync(new URL(path, EXAMPLES), "utf8");
const documents = (text: string): unknown[] => parseAllDocuments(text, { strict: true }).map((each) => each.toJS());
const invalid = readdirSync(new URL("invalid/", EXAMPLES)).filter((name) => name.endsWith(".yaml"));

describe("examples", () => {
  it.each([
    "virtualapp-test-operator.yaml",
    "virtualapp-test-operator-lockname.yaml",
    "virtualapp-labels-and-callers.yaml",
    "demo/divide/virtualapp.yaml",
    "demo/sharding/shardingconfig.yaml",
    "install/virtualapp.yaml",
    "sharding/hand-written.yaml",
    "sharding/root.yaml",
    "sharding/balanced.yaml",
    "sharding/clusters.yaml",
    "traffic/circuit-breaker.yaml",
    "traffic/delete-guard.yaml",
    "traffic/egress.yaml",
    "traffic/fault-injection.yaml",
    "traffic/traffic-policy.yaml",
  ])("%s is valid", (path) => {
    for (const document of documents(read(path))) expect(exampleProblems(document)).toEqual([]);
  });

  it("the two forms of the example name the same lock", () => {
    const locks = ["virtualapp-test-operator.yaml", "virtualapp-test-operator-lockname.yaml"].map((path) => {
      const result = validateVirtualApp(documents(read(path))[0]);
      return result.ok ? lockNameOf(result.value.spec) : undefined;
    });
    expect(locks).toEqual(["test-operator", "test-operator"]);
  });

  it("the demo's files have its namespaces", () => {
    const names = documents(read("demo/divide/namespaces.yaml")).map(
      (each) => (each as { metadata: { name: string } }).metadata.name,
    );
    expect(names).toEqual(["foo-system", "team-a", "team-b", "canary-eu", "team-c"]);
  });

  it.each(invalid)("invalid/%s is refused only for the reason in its first line", (name) => {
    const text = read(`invalid/${name}`);
    const expected = /^# expect: (.+)\n/.exec(text)?.[1];
    expect(expected, "the first line says what is expected").toBeDefined();
    const problems = exampleProblems(documents(text)[0]);
    expect(problems).toEqual([expect.stringContaining(expected ?? "")]);
  });

  it("examples/invalid has at least six common mistakes", () => {
    expect(invalid).toEqual(
      expect.arrayContaining(
        ["empty-selector", "unknown-rule", "rule-used-twice", "bad-regex", "two-selector-kinds", "unknown-field"].map(
          (name) => `${name}.yaml`,
        ),
      ),
    );
  });
});
