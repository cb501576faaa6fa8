import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import { problemsOf, sampleVirtualApp } from "../../test/support/virtual-app.ts";
import type { KubeObject, LabelSelector } from "../kube/types.ts";
import { annotationKey } from "./annotations.ts";
import {
  lockNameOf,
  type Subset,
  type VirtualApp,
  type VirtualAppSpec,
  validateVirtualApp,
  type virtualAppKind,
} from "./virtual-app.ts";

const selector = { matchLabels: { component: "shop" } };

describe("the type VirtualApp", () => {
  it("is the inferred type of the schema, deeply readonly", () => {
    expectTypeOf<z.output<typeof virtualAppKind.schema>>().toExtend<VirtualApp>();
    expectTypeOf<VirtualApp["spec"]>().toEqualTypeOf<VirtualAppSpec>();
    expectTypeOf<NonNullable<VirtualAppSpec["subsets"]>>().toEqualTypeOf<readonly Subset[]>();
    expectTypeOf<Subset>().toEqualTypeOf<{
      readonly name: string;
      readonly labels: { readonly [key: string]: string };
      readonly routeRules: readonly string[];
    }>();
  });

  it("is a Kubernetes object with Kubernetes selectors", () => {
    expectTypeOf<VirtualApp>().toExtend<KubeObject>();
    expectTypeOf<VirtualAppSpec["selector"]>().toExtend<LabelSelector>();
  });
});

describe("validateVirtualApp", () => {
  it("returns a valid object unchanged, with metadata that the schema does not list", () => {
    const object = { ...sampleVirtualApp(), metadata: { name: "shop", managedFields: [{ manager: "kubectl" }] } };
    expect(validateVirtualApp(object)).toEqual({ ok: true, value: object });
  });

  it("accepts the smallest object, without route and subsets", () => {
    expect(problemsOf({ ...sampleVirtualApp(), spec: { selector } })).toEqual([]);
  });

  it("reports all problems at once", () => {
    const object = sampleVirtualApp({
      selector: {},
      selectors: 1,
      configuration: { webhook: { certDir: "certs", port: 70_000.5 } },
      route: {
        globalLimits: [{ namespaceRegex: "(" }],
        subRules: [{ name: "pilot", match: [{ namespaceRegex: "a", namespaceSelector: {} }] }],
      },
      subsets: [
        { name: "a---b", labels: {}, routeRules: [] },
        { name: "v2", labels: { version: "v2" }, routeRules: ["pilto"] },
        5,
      ],
    });
    expect(problemsOf(object)).toEqual([
      'spec.configuration.webhook.certDir: "certs": must be an absolute path',
      "spec.configuration.webhook.port: 70000.5: must be a whole number, not a fraction",
      'spec.subsets[0].name: "a---b": must not contain "---", which separates a lock from its subset',
      "spec.subsets[0].routeRules: must not be empty",
      "spec.subsets[2]: 5: must be an object, not a number",
      'spec.selectors: unknown field; did you mean "selector"?',
      'spec.subsets[1].routeRules[0]: "pilto": no such subRule; did you mean "pilot"?',
      "spec.selector: must have at least one term: an empty selector matches everything",
      'spec.route.globalLimits[0].namespaceRegex: "(": does not compile as RE2: error parsing regexp: missing closing ): `(`',
      "spec.route.subRules[0].match[0]: exactly one of namespaceSelector, objectSelector, namespaceRegex, clusters, clusterSelector and clustersFrom must be set; namespaceSelector and namespaceRegex are set",
      "spec.subsets[0].labels: must not be empty: without labels every pod would be in the subset",
    ]);
  });

  it.each([0, 65_536, -1])("refuses the webhook port %i", (port) => {
    const configuration = { webhook: { certDir: "/certs", port } };
    expect(problemsOf(sampleVirtualApp({ configuration }))).toEqual([
      expect.stringMatching(/^spec\.configuration\.webhook\.port: /),
    ]);
  });

  it("refuses an invalid lock name, and a user agent that cannot be a header", () => {
    const configuration = {
      controller: { leaderElectionName: "Shop_Lock" },
      restConfigOverrides: { userAgentOrPrefix: "a\r\nb" },
    };
    expect(problemsOf(sampleVirtualApp({ configuration }))).toEqual([
      expect.stringContaining('leaderElectionName: "Shop_Lock": must be a DNS subdomain'),
      expect.stringContaining("userAgentOrPrefix"),
    ]);
  });

  it("refuses a name that is too long for the label of injected pods", () => {
    expect(problemsOf({ ...sampleVirtualApp(), metadata: { name: "n".repeat(64) } })).toEqual([
      expect.stringContaining("must have at most 63 characters"),
    ]);
  });

  it("lists the missing fields of any other object", () => {
    expect(problemsOf({})).toEqual([
      'apiVersion: required: must be "ctrlmesh.kruise.io/v1alpha1"',
      'kind: required: must be "VirtualApp"',
      "metadata: required",
      "spec: required",
    ]);
    expect(problemsOf(null)).toEqual(["must be an object, not null"]);
  });

  it("keeps a status of an older version, with any content", () => {
    const old = { routeVersion: 3, conditions: [], podsOfThePast: [1, 2] };
    expect(validateVirtualApp({ ...sampleVirtualApp(), status: old })).toMatchObject({
      ok: true,
      value: { status: { routeVersion: 3 } },
    });
    expect(validateVirtualApp({ ...sampleVirtualApp(), status: { conditions: "none" } })).toMatchObject({
      ok: true,
      value: { status: undefined },
    });
  });

  it("never throws for a value that has no text of its own", () => {
    const bad = { toString: [] };
    const subsets = [{ name: bad, labels: { version: "v2" }, routeRules: ["objects"] }];
    const match = [{ objectSelector: { matchLabels: { a: "b", c: "d" } }, resources: [{ apiGroups: [""], resources: [bad] }] }];
    const spec = { route: { onLoss: bad, subRules: [{ name: "objects", match }] }, subsets };
    expect(validateVirtualApp({ metadata: { annotations: { [annotationKey("intercept")]: bad } }, spec })).toMatchObject({
      ok: false,
    });
  });

  it("never throws, for any input", () => {
    const json = fc.jsonValue({ maxDepth: 6 }).filter((value) => value !== undefined);
    const anywhere = fc.constantFrom("selector", "configuration", "route", "subsets");
    fc.assert(
      fc.property(json, anywhere, (value, field) => {
        expect(Array.isArray(problemsOf(value))).toBe(true);
        expect(Array.isArray(problemsOf(sampleVirtualApp({ [field]: value })))).toBe(true);
      }),
      { interruptAfterTimeLimit: 1_500 },
    );
  });

  it("never throws on a valid object with one part replaced", () => {
    const whole = JSON.stringify(sampleVirtualApp());
    const leaves = whole.match(/"[^"]*"(?=[,\]}])/g) ?? [];
    fc.assert(
      fc.property(fc.constantFrom(...leaves), fc.jsonValue(), (leaf, value) => {
        expect(Array.isArray(problemsOf(JSON.parse(whole.replace(leaf, () => JSON.stringify(value)))))).toBe(true);
      }),
      { interruptAfterTimeLimit: 1_500 },
    );
  });

  it("answers without delay for a deeply nested object", () => {
    const deep = JSON.parse(`${'{"spec":'.repeat(5_000)}1${"}".repeat(5_000)}`);
    expect(problemsOf(deep).length).toBeGreaterThan(0);
  });
});

describe("lockNameOf", () => {
  it("reads either field, leaderElectionName first", () => {
    expect(lockNameOf({ selector, configuration: { controller: { leaderElectionName: "a" } } })).toBe("a");
    expect(lockNameOf({ selector, configuration: { controller: { leaderElection: { lockName: "b" } } } })).toBe("b");
    expect(
      lockNameOf({ selector, configuration: { controller: { leaderElectionName: "a", leaderElection: { lockName: "a" } } } }),
    ).toBe("a");
  });

  it('is "" for an operator without a lock', () => {
    expect(lockNameOf({ selector })).toBe("");
    expect(lockNameOf({ selector, configuration: { controller: { leaderElection: {} } } })).toBe("");
  });
});

describe("spec.route.frozen", () => {
  const problemsWith = (frozen: unknown) => problemsOf(sampleVirtualApp({ subsets: [], route: { frozen } }));
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`team-${at}`, "x"]));

  it("names up to 64 namespaces, each with a reason", () => {
    expect(problemsWith({ ...many(64) })).toEqual([]);
    expect(problemsWith(many(65)).join()).toContain("spec.route.frozen: must have at most 64 namespaces, and has 65");
    expect(problemsWith({ "team-b": "" }).join()).toContain("spec.route.frozen[team-b]");
    expect(problemsWith({ "team-b": "x".repeat(257) }).join()).toContain("spec.route.frozen[team-b]");
  });
  it("names no patterns", () => {
    for (const name of [
      "team-*",
      "Team",
      "",
      "eu-1/",
      "/team-b",
      "eu-1/team-b/c",
      "EU/team-b",
      "eu-1/Team",
      "eu-1/*",
      "__proto__",
    ])
      expect(problemsWith(JSON.parse(`{${JSON.stringify(name)}: "x"}`)).join()).toMatch(
        /^spec\.route\.frozen.*: must be the name of a namespace, or CLUSTER\/NAMESPACE for one inside another cluster$/,
      );
  });
  it("names namespaces inside other clusters, which count like those at home", () => {
    expect(problemsWith({ "eu-1/team-b": "x", "eu-1.example/team-b": "x", "team-b": "x" })).toEqual([]);
    expect(problemsWith({ ...many(64), "eu-1/team-b": "x" }).join()).toContain("at most 64 namespaces, and has 65");
  });
});
