import { expect, it } from "vitest";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { clusterOwnersBy } from "./cluster-owners.ts";

function spec(
  subRules: NonNullable<NonNullable<VirtualAppSpec["route"]>["subRules"]>,
  subsets: Record<string, string[]>,
): VirtualAppSpec {
  const listed = Object.entries(subsets).map(([name, routeRules]) => ({ name, labels: { version: name }, routeRules }));
  return { selector: { matchLabels: { app: "shop" } }, route: { subRules }, subsets: listed };
}

it("the first subset in spec order with a matching rule owns a cluster, and the default subset all others", () => {
  const rules = [
    { name: "named", match: [{ clusters: ["eu-1", "eu-2"] }] },
    { name: "labelled", match: [{ namespaceRegex: "^a" }, { clusterSelector: { matchLabels: { region: "eu" } } }] },
  ];
  const owners = clusterOwnersBy(spec(rules, { blue: ["labelled"], green: ["named"] }));
  const clusters = [
    { name: "eu-1", labels: { region: "eu" } },
    { name: "eu-2", labels: {} },
    { name: "us-1", labels: { region: "us" } },
  ];
  expect(Object.fromEntries(owners?.(clusters) ?? [])).toEqual({ "eu-1": "blue", "eu-2": "green", "us-1": "" });
});

it("an app divides no cluster unless a subset uses a rule about clusters", () => {
  const rules = [
    { name: "unused", match: [{ clusters: ["eu-1"] }] },
    { name: "home", match: [{ namespaceRegex: "^a" }] },
  ];
  expect(clusterOwnersBy(spec(rules, { blue: ["home"] }))).toBeUndefined();
});
