import { describe, expect, it } from "vitest";
import { specOf } from "../../../test/support/source-apps.ts";
import { problemsOf, sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { annotationKey } from "../../api/annotations.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { planApp } from "../../mesh/handover/plan-app.ts";
import { NO_CALLER_POLICY } from "../../mesh/ownership/snapshot.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import { routeOf } from "./route-rules.ts";
import { callersOf } from "./virtual-app-source.ts";

const plain: VirtualAppSpec = { selector: { matchLabels: { a: "b" } } };

describe("callersOf", () => {
  it("is empty if the app sets nothing", () => {
    expect(callersOf(plain, {})).toEqual(NO_CALLER_POLICY);
  });

  it("uses the user agents of the spec and the annotation of the object", () => {
    const spec: VirtualAppSpec = {
      ...plain,
      configuration: { restConfigOverrides: { userAgentOrPrefix: "mesh/" } },
      route: { subsetDefaultOnlyUserAgents: ["b", "a/*", "b"] },
    };
    expect(callersOf(spec, { [annotationKey("strip-managed-fields")]: "true" })).toEqual({
      userAgent: "mesh/",
      defaultOnlyUserAgents: ["a/*", "b"],
      stripManagedFields: true,
    });
    expect(callersOf(spec, { [annotationKey("strip-managed-fields")]: "false" }).stripManagedFields).toBe(false);
  });
});

describe("planApp", () => {
  it("gives the policy and the guard to every subset, and different ones have different digests", () => {
    const subsets = [{ name: "v2", labels: { version: "v2" }, routeRules: ["r"] }];
    const route = { subRules: [{ name: "r", match: [{ namespaceRegex: "^canary-" }] }] };
    const plan = (annotations: Record<string, string>, guard: "Enforce" | "Warn" = "Enforce") => {
      const spec = { ...plain, route: { ...route, guard }, subsets };
      return planApp({
        ...specOf(spec),
        callers: callersOf(spec, annotations),
        app: { namespace: "n", name: "a" },
        words: undefined,
        bySpec: compileNow(routeOf(spec), []),
        pods: [],
        factsOf: () => undefined,
      });
    };
    const stripping = plan({ [annotationKey("strip-managed-fields")]: "true" });
    expect([...stripping.rules.values()].map(({ callers }) => callers.stripManagedFields)).toEqual([true, true]);
    expect(stripping.digest).not.toBe(plan({}).digest);
    const warning = plan({}, "Warn");
    expect([...warning.rules.values()].map(({ guard }) => guard)).toEqual(["Warn", "Warn"]);
    expect(warning.digest).not.toBe(plan({}).digest);
  });
});

describe("the annotation", () => {
  it("is refused with its name and the allowed values", () => {
    const metadata = { name: "shop", annotations: { [annotationKey("strip-managed-fields")]: "yes", other: "anything" } };
    expect(problemsOf({ ...sampleVirtualApp(), metadata })).toEqual([
      'metadata.annotations[ctrlmesh.kruise.io/strip-managed-fields]: "yes": must be "true" or "false"',
    ]);
    expect(
      problemsOf({
        ...sampleVirtualApp(),
        metadata: { ...metadata, annotations: { [annotationKey("strip-managed-fields")]: "true" } },
      }),
    ).toEqual([]);
  });
});
