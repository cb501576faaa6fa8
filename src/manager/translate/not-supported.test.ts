import { describe, expect, it } from "vitest";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { notSupported } from "./not-supported.ts";

const spec = (more: Partial<VirtualAppSpec>): VirtualAppSpec => ({ selector: { matchLabels: { a: "b" } }, ...more });
const resources = [{ apiGroups: [""], resources: ["pods"] }];

describe("notSupported", () => {
  it("finds nothing in an app that is divided by namespaces", () => {
    const route = { subRules: [{ name: "r", match: [{ namespaceRegex: "a" }] }] };
    expect(notSupported(spec({ route }))).toEqual({ refused: [], idle: [] });
  });
  it("refuses what would silently show more than was asked", () => {
    const limit = { objectSelector: { matchLabels: { a: "b" } }, resources };
    const route = {
      globalLimits: [limit],
      subRules: [{ name: "r", match: [{ namespaceRegex: "a" }, limit] }],
      subsetDefaultOnlyUserAgents: ["x"],
    };
    expect(notSupported(spec({ route })).refused).toEqual([
      "spec.route.globalLimits[0].objectSelector",
      "spec.route.subRules[0].match[1].objectSelector",
      "spec.route.subsetDefaultOnlyUserAgents",
    ]);
  });
  it("names what has no effect yet", () => {
    const configuration = { webhook: { certDir: "/c", port: 9443 }, restConfigOverrides: { userAgentOrPrefix: "x/" } };
    expect(notSupported(spec({ configuration })).idle).toEqual([
      "spec.configuration.webhook",
      "spec.configuration.restConfigOverrides",
    ]);
  });
});
