import { describe, expect, it } from "vitest";
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import { notSupported } from "./not-supported.ts";

const spec = (more: Partial<VirtualAppSpec>): VirtualAppSpec => ({ selector: { matchLabels: { a: "b" } }, ...more });

describe("notSupported", () => {
  it("finds nothing in an app that is divided by namespaces, labels and callers", () => {
    const objectSelector = { matchLabels: { a: "b" } };
    const match = [{ namespaceRegex: "a" }, { objectSelector, resources: [{ apiGroups: [""], resources: ["pods"] }] }];
    const configuration = { restConfigOverrides: { userAgentOrPrefix: "x/" } };
    const route = { subRules: [{ name: "r", match }], subsetDefaultOnlyUserAgents: ["x"] };
    expect(notSupported(spec({ configuration, route }))).toEqual([]);
  });
  it("names what has no effect yet", () => {
    expect(notSupported(spec({ configuration: { webhook: { certDir: "/c", port: 9443 } } }))).toEqual([
      "spec.configuration.webhook",
    ]);
  });
});
