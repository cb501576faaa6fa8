// A valid VirtualApp for tests, and the problems that the validation finds.
import { formatProblem } from "../../src/api/problems.ts";
import { validateVirtualApp } from "../../src/api/virtual-app.ts";

/** A new valid object with one rule and one subset; `spec` replaces fields of its spec. */
export function sampleVirtualApp(spec: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { name: "shop", namespace: "ops" },
    spec: {
      selector: { matchLabels: { component: "shop" } },
      configuration: { controller: { leaderElectionName: "shop-lock" } },
      route: { subRules: [{ name: "canary-eu", match: [{ namespaceRegex: "^canary-" }] }] },
      subsets: [{ name: "v2", labels: { version: "v2" }, routeRules: ["canary-eu"] }],
      ...spec,
    },
  };
}

/** The problems of an object, one line each; empty if the object is valid. */
export function problemsOf(object: unknown): string[] {
  const result = validateVirtualApp(object);
  return result.ok ? [] : result.problems.map(formatProblem);
}
