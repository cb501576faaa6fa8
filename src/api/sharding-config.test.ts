import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot, shardingProblemsOf } from "../../test/support/sharding-config.ts";
import type { KubeObject, LabelSelector } from "../kube/types.ts";
import { annotationKey } from "./annotations.ts";
import type { AppStatus } from "./app-status.ts";
import { autoOf, type ShardingConfig, type ShardingConfigSpec, validateShardingConfig } from "./sharding-config.ts";

describe("the type ShardingConfig", () => {
  it("is a Kubernetes object with the status of an app", () => {
    expectTypeOf<ShardingConfig>().toExtend<KubeObject>();
    expectTypeOf<NonNullable<ShardingConfigSpec["selector"]>>().toExtend<LabelSelector>();
    expectTypeOf<NonNullable<ShardingConfig["status"]>>().toExtend<AppStatus>();
  });
});

describe("validateShardingConfig", () => {
  it("returns a hand-written config with every field unchanged, with metadata that the schema does not list", () => {
    const webhook = { certDir: "/tmp/webhook-certs", port: 9443 };
    const object = {
      ...sampleShardingConfig({ webhook, onLoss: "InPlace", paused: true }),
      metadata: { name: "shop-east", managedFields: [{ manager: "kubectl" }] },
    };
    expect(validateShardingConfig(object)).toEqual({ ok: true, value: object });
  });

  it("returns a root with every field unchanged", () => {
    const root = {
      disable: false,
      canary: { replicas: 2, inNamespaces: ["canary", "test"], inShardHash: ["0", "9", "10", "31"], percent: 5 },
      auto: { shardingSize: 64, everyShardReplicas: 3, graceSeconds: 0 },
      placement: "Balanced",
      resourceSelector: [
        { relateResources: [{ apiGroups: ["*"], resources: ["pods"] }], selector: { matchLabels: { "control-by": "shop" } } },
        { relateResources: [{ apiGroups: ["example.com"], resources: ["shops"] }] },
      ],
    };
    const object = sampleShardingRoot(root, { selector: { matchLabels: { app: "shop" } } });
    expect(validateShardingConfig(object)).toEqual({ ok: true, value: object });
  });

  it("accepts the smallest root: no canary, no lock, as many shards as the StatefulSet has room for", () => {
    expect(
      shardingProblemsOf(sampleShardingRoot({ canary: undefined, auto: { everyShardReplicas: 1 } }, { controller: undefined })),
    ).toEqual([]);
  });

  it("reports all problems at once", () => {
    const object = sampleShardingRoot(
      {
        prefix: "a---b",
        targetStatefulSet: "",
        canary: { replicas: 0, inNamespaces: [], inShardHash: ["32", "07", 5], percent: 100 },
        auto: { everyShardReplicas: -1, shardingSize: 65, graceSeconds: -1 },
        placement: "balanced",
        resourceSelector: [{ relatedResources: [] }],
      },
      { controller: {}, webhook: { certDir: "certs", port: 0 }, limits: [], onLoss: "Resync" },
    );
    expect(shardingProblemsOf(object)).toEqual([
      "spec.controller.leaderElectionName: required",
      'spec.webhook.certDir: "certs": must be an absolute path',
      "spec.webhook.port: 0: must be at least 1",
      "spec.limits: must not be empty",
      'spec.root.prefix: "a---b": must consist of lower-case letters, digits and "-" without "---", and begin with a letter or digit: the shards are named PREFIX-0-canary and PREFIX-1-normal',
      'spec.root.targetStatefulSet: "": must be a DNS subdomain: lower-case letters, digits, "-" and ".", with a letter or digit at both ends',
      "spec.root.canary.replicas: 0: must be at least 1",
      "spec.root.canary.inNamespaces: must not be empty",
      'spec.root.canary.inShardHash[0]: "32": must be a whole number from "0" to "31"',
      'spec.root.canary.inShardHash[1]: "07": must be a whole number from "0" to "31"',
      'spec.root.canary.inShardHash[2]: 5: must be a string from "0" to "31", in quotes',
      "spec.root.canary.percent: 100: must be at most 99",
      "spec.root.auto.everyShardReplicas: -1: must be at least 1",
      "spec.root.auto.shardingSize: 65: must be at most 64",
      "spec.root.auto.graceSeconds: -1: must be at least 0",
      'spec.root.placement: "balanced": must be one of "Legacy", "Balanced"; did you mean "Balanced"?',
      'spec.root.resourceSelector[0].relateResources: required: write "*" as group and resource for all resources, which KusionStack means without this field',
      'spec.root.resourceSelector[0].relatedResources: unknown field; did you mean "relateResources"?',
      'spec.onLoss: "Resync": must be one of "Restart", "InPlace"',
    ]);
  });

  it("has shards of one pod that follow the StatefulSet without auto or its fields", () => {
    expect(shardingProblemsOf(sampleShardingRoot({ auto: undefined }))).toEqual([]);
    expect(shardingProblemsOf(sampleShardingRoot({ auto: {} }))).toEqual([]);
    expect(shardingProblemsOf(sampleShardingRoot({ auto: { shardingSize: 4 } }))).toEqual([]);
    expect(autoOf({})).toMatchObject({ everyShardReplicas: 1, graceSeconds: 600 });
    expect(autoOf({ auto: { everyShardReplicas: 2, shardingSize: 4 } })).toMatchObject({
      everyShardReplicas: 2,
      shardingSize: 4,
    });
  });

  it("names no resource by a group or a name alone, which KusionStack ignores", () => {
    const relateResources = [{ resources: ["pods"] }, { apiGroups: [""] }];
    expect(shardingProblemsOf(sampleShardingRoot({ resourceSelector: [{ relateResources }] }))).toEqual([
      'spec.root.resourceSelector[0].relateResources[0].apiGroups: required: "" is the core group, "*" all groups',
      'spec.root.resourceSelector[0].relateResources[1].resources: required: "*" stands for all resources',
    ]);
  });

  it("names what a root needs", () => {
    expect(shardingProblemsOf(sampleShardingRoot({}, { root: {} }))).toEqual([
      "spec.root.prefix: required",
      "spec.root.targetStatefulSet: required",
      "spec.root.resourceSelector: required: it names the resources that the shards divide",
    ]);
  });

  it("does not honour KusionStack's label ignore-validate", () => {
    const labels = { "ctrlmesh.kusionstack.io/ignore-validate": "true" };
    const object = { ...sampleShardingConfig({ limits: [] }), metadata: { name: "shop-east", labels } };
    expect(shardingProblemsOf(object)).toEqual(["spec.limits: must not be empty"]);
  });

  it("checks the annotations of an app", () => {
    const object = {
      ...sampleShardingConfig(),
      metadata: { name: "shop-east", annotations: { [annotationKey("intercept")]: "kubeconfg" } },
    };
    expect(shardingProblemsOf(object)).toEqual([expect.stringContaining('did you mean "kubeconfig"?')]);
  });

  it("refuses a name that is too long for a label of pods", () => {
    for (const sample of [sampleShardingConfig(), sampleShardingRoot()]) {
      expect(shardingProblemsOf({ ...sample, metadata: { name: "n".repeat(64) } })).toEqual([
        expect.stringContaining("must have at most 63 characters"),
      ]);
    }
  });

  it("keeps KusionStack's status, and drops one that it cannot read", () => {
    const status = { root: { childShardingConfigs: ["shop-0-canary"] } };
    expect(validateShardingConfig({ ...sampleShardingRoot(), status })).toMatchObject({ ok: true, value: { status } });
    expect(validateShardingConfig({ ...sampleShardingRoot(), status: { gaps: "many" } })).toMatchObject({
      ok: true,
      value: { status: undefined },
    });
  });

  it("has a status with room for the most shards: 64 normal ones, a canary, and the pods of no shard", () => {
    const subsets = Array.from({ length: 66 }, (_, index) => ({ name: `s${index}`, namespaces: 0, readyPods: 0 }));
    expect(validateShardingConfig({ ...sampleShardingRoot(), status: { subsets } })).toMatchObject({
      value: { status: { subsets } },
    });
  });

  it("lists the missing fields of any other object", () => {
    expect(shardingProblemsOf({})).toEqual([
      'apiVersion: required: must be "ctrlmesh.kusionstack.io/v1alpha1"',
      'kind: required: must be "ShardingConfig"',
      "metadata: required",
      "spec: required",
    ]);
  });

  it("names the field of clustersFrom that is wrong, and takes it with a selector and alone", () => {
    const clustersFrom = { placementDecision: "fleet" };
    expect(shardingProblemsOf(sampleShardingRoot({ clustersFrom }))).toEqual([]);
    expect(shardingProblemsOf(sampleShardingRoot({ clustersFrom, clusterSelector: {} }))).toEqual([]);
    expect(shardingProblemsOf(sampleShardingRoot({ clustersFrom: { placementDecision: "-a" } }))).toEqual([
      expect.stringContaining('spec.root.clustersFrom.placementDecision: "-a": must be a label value'),
    ]);
    expect(shardingProblemsOf(sampleShardingRoot({ clustersFrom: { placementDecisions: "a" } }))).toEqual([
      expect.stringContaining("spec.root.clustersFrom.placementDecision: required"),
      expect.stringContaining('placementDecisions: unknown field; did you mean "placementDecision"?'),
    ]);
  });

  it("never throws, for any input", () => {
    const json = fc.jsonValue({ maxDepth: 6 }).filter((value) => value !== undefined);
    const anywhere = fc.constantFrom("selector", "controller", "limits", "root");
    fc.assert(
      fc.property(json, anywhere, (value, field) => {
        expect(Array.isArray(shardingProblemsOf(value))).toBe(true);
        expect(Array.isArray(shardingProblemsOf(sampleShardingRoot({}, { [field]: value })))).toBe(true);
      }),
      { interruptAfterTimeLimit: 1_500 },
    );
  });

  it("never throws on a valid object with one part replaced", () => {
    for (const sample of [sampleShardingConfig(), sampleShardingRoot()]) {
      const whole = JSON.stringify(sample);
      const leaves = whole.match(/"[^"]*"(?=[,\]}])/g) ?? [];
      fc.assert(
        fc.property(fc.constantFrom(...leaves), fc.jsonValue(), (leaf, value) => {
          expect(Array.isArray(shardingProblemsOf(JSON.parse(whole.replace(leaf, () => JSON.stringify(value)))))).toBe(true);
        }),
        { interruptAfterTimeLimit: 750 },
      );
    }
  });
});
