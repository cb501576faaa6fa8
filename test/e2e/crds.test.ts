// The generated CRDs on the real API server, which accepts them and validates objects by OpenAPI and CEL. The table SERVER_MESSAGES also
// lists the rules that only the manager's webhook checks.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { CircuitBreaker } from "../../src/api/circuit-breaker.ts";
import type { ManagerState } from "../../src/api/manager-state.ts";
import { CIRCUIT_BREAKERS, MANAGER_STATES, SHARDING_CONFIGS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { eventually } from "../support/eventually.ts";
import { exampleProblems } from "../support/example-problems.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { CIRCUIT_BREAKER } from "../support/originals/circuit-breaker.ts";
import { FAULT_INJECTION } from "../support/originals/fault-injection.ts";
import { objectWith, withField } from "../support/originals/field.ts";
import { TRAFFIC_POLICY } from "../support/originals/traffic-policy.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";
import { sampleShardingRoot } from "../support/sharding-config.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const NAMESPACE = "crds";
/** The collections of the kinds of which there are examples, also of a kind of Kubernetes. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  VirtualApp: `/apis/ctrlmesh.kruise.io/v1alpha1/namespaces/${NAMESPACE}/virtualapps`,
  ShardingConfig: `/apis/ctrlmesh.kusionstack.io/v1alpha1/namespaces/${NAMESPACE}/shardingconfigs`,
  TrafficPolicy: `/apis/ctrlmesh.kruise.io/v1alpha1/namespaces/${NAMESPACE}/trafficpolicies`,
  CircuitBreaker: `/apis/ctrlmesh.kusionstack.io/v1alpha1/namespaces/${NAMESPACE}/circuitbreakers`,
  FaultInjection: `/apis/ctrlmesh.kusionstack.io/v1alpha1/namespaces/${NAMESPACE}/faultinjections`,
  HorizontalPodAutoscaler: `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers`,
};

/** The server's message for each file of examples/invalid. Null: only the manager's validation finds the problem. */
const SERVER_MESSAGES: Readonly<Record<string, string | null>> = {
  "bad-regex.yaml": "spec.route.subRules[0].match[0].namespaceRegex: Invalid value",
  "duplicate-subset.yaml": 'spec.subsets[1]: Duplicate value: {"name":"v2"}',
  "empty-selector.yaml": "spec.selector: Invalid value: must have at least one term",
  "lock-too-long.yaml": "spec.configuration: Invalid value: the lock of a subset, NAME---SUBSET, must not be longer than 253",
  "object-selector-beside-namespaces.yaml": null, // comparing every two rules is beyond the cost limit of CEL
  "object-selector-two-terms.yaml": null, // counting the terms of two lists for each rule is beyond the cost limit of CEL
  "object-selector-without-resources.yaml": "spec.route.globalLimits[0]: Invalid value: objectSelector needs resources",
  "sharding-no-clusters.yaml": "spec.root.clustersBy: Invalid value: Namespace needs clusterSelector or clustersFrom",
  "sharding-empty-canary.yaml": "spec.root.canary: Invalid value: selects no namespaces",
  "sharding-named-default.yaml": "the name is the name of the shard",
  "sharding-resource-twice.yaml": null, // comparing every two lists is beyond the cost limit of CEL
  "sharding-too-many-hashed.yaml": "spec.root: Invalid value: Legacy placement divides 32 hashes",
  "sharding-unknown-key.yaml": "spec.limits[0].selector: Invalid value: the computed keys are",
  "sharding-without-limits.yaml": "spec: Invalid value: without root, selector and limits are required",
  "sharding-wrong-hash.yaml": null, // a pattern for every value is beyond the cost limit of CEL
  "subset-named-default.yaml": "is reserved for the pods that match no subset",
  "regex-with-boundary.yaml": null, // what is slow is a matter of the manager's engine
  "rule-used-twice.yaml": "spec.subsets: Invalid value: a subRule can belong to one subset only",
  "traffic-duration-without-unit.yaml": "spec.httpFault[0].delay.fixedDelay: Invalid value",
  "traffic-empty-list.yaml": "spec.rateLimitings[0].resourceRules[0].verbs: Invalid value",
  "traffic-http-match-regex.yaml": "spec.httpFault[0].match.httpMatch[0].path.regex: Invalid value",
  "traffic-intercept-url.yaml": null, // a pattern for every content is beyond the cost limit of CEL, as contentType decides what it is
  "traffic-intercept-wildcard.yaml": null,
  "traffic-limits-nothing.yaml": "spec.rateLimiting.ratePolicies[0]: Invalid value: limits nothing",
  "traffic-normal-without-recovery.yaml":
    "spec.rateLimitings[0].recoverPolicy: Invalid value: required with triggerPolicy Normal",
  "traffic-old-intercept-type.yaml": 'spec.trafficInterceptRules[0].interceptType: Unsupported value: "White"',
  "traffic-old-recover-policy.yaml": "spec.rateLimitings[0].recoverPolicy: Invalid value",
  "traffic-old-window-size.yaml": null, // the API server would have to know the key
  "traffic-percent-as-number.yaml": "spec.httpFault[0].abort.percent: Invalid value",
  "traffic-related-resources.yaml": 'unknown field "spec.httpFault[0].match.relatedResources"', // with strict field validation
  "traffic-rest-rule-path.yaml": "spec.rateLimitings[0].restRules[0].url: Invalid value",
  "traffic-wildcard-beside-names.yaml": "spec.rateLimitings[0].resourceRules[0].namespaces: Invalid value",
  "two-lock-names.yaml": "spec.configuration.controller: Invalid value: leaderElectionName and leaderElection.lockName",
  "two-selector-kinds.yaml": "spec.route.globalLimits[0]: Invalid value: exactly one of namespaceSelector, objectSelector",
  "unknown-field.yaml": 'unknown field "spec.route.subRules[0].match[0].namespaceSelecter"', // with strict field validation
  "unknown-rule.yaml": "spec.subsets: Invalid value: every entry of routeRules must be the name of one of spec.route.subRules",
};

const ORIGINALS = [CIRCUIT_BREAKER, FAULT_INJECTION, TRAFFIC_POLICY];

/** API servers before 1.34 name the kind of a value in messages of CEL rules. */
const withoutKinds = (message: string) =>
  message.replace(/( value:) (?:map\[string\]interface \{\}|"(?:object|array)":) ?/g, "$1 ");
const yamlFiles = (folder: string) => readdirSync(join(ROOT, folder)).filter((name) => name.endsWith(".yaml"));
const documents = (path: string) =>
  parseAllDocuments(readFileSync(join(ROOT, path), "utf8")).map((each) => each.toJS() as KubeObject);

describeWithKube("the CRDs of deploy/crds", () => {
  let kube: Kube;
  let client: KubeClient;
  const crds = yamlFiles("deploy/crds").flatMap((name) => documents(`deploy/crds/${name}`));

  beforeAll(async () => {
    kube = await startKube();
    client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "crds-test" });
    for (const crd of crds) await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd as never);
    for (const { metadata } of crds) {
      await eventually(async () => {
        const { status } = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name: metadata.name ?? "" });
        expect(status?.conditions?.find(({ type }) => type === "Established")).toMatchObject({ status: "True" });
      });
    }
    await client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  });
  afterAll(async () => {
    await client?.close();
    await kube?.stop();
  });

  /** Creates the object in a dry run with strict validation. @returns the server's message if it refuses */
  async function refusal(object: KubeObject): Promise<string | undefined> {
    const path = `${COLLECTIONS[object.kind ?? ""]}?dryRun=All&fieldValidation=Strict`;
    const body = { ...object, metadata: { ...object.metadata, namespace: NAMESPACE } };
    return client.request({ method: "POST", path, body }).then(
      () => undefined,
      (error: unknown) => withoutKinds((error as Error).message),
    );
  }

  it("have structural schemas without a warning condition", async () => {
    for (const { metadata } of crds) {
      const { status } = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name: metadata.name ?? "" });
      const others = status?.conditions?.filter(({ type }) => !["Established", "NamesAccepted"].includes(type));
      expect(others).toEqual([]);
    }
  });

  it.each(
    [
      "examples",
      "examples/demo/divide",
      "examples/demo/sharding",
      "examples/install",
      "examples/sharding",
      "examples/traffic",
    ].flatMap((folder) => yamlFiles(folder).map((name) => `${folder}/${name}`)),
  )("accept %s", async (path) => {
    const known = documents(path).filter(({ kind }) => kind !== undefined && Object.hasOwn(COLLECTIONS, kind));
    for (const each of known) expect(await refusal(each)).toBeUndefined();
  });

  it("give a root without auto shards of one pod", async () => {
    const path = `${COLLECTIONS.ShardingConfig}?dryRun=All&fieldValidation=Strict`;
    const body = { ...sampleShardingRoot({ auto: undefined }), metadata: { name: "shop", namespace: NAMESPACE } };
    const answer = await client.request({ method: "POST", path, body });
    expect(answer).toMatchObject({ spec: { root: { auto: { everyShardReplicas: 1, graceSeconds: 600 } } } });
  });

  it.each(yamlFiles("examples/invalid"))("refuse examples/invalid/%s as the table says", async (name) => {
    const [app] = documents(`examples/invalid/${name}`);
    if (app === undefined) throw new Error("no document");
    expect(exampleProblems(app)).not.toEqual([]);
    const expected = SERVER_MESSAGES[name];
    expect(expected, "a new example: add the server's message to SERVER_MESSAGES").not.toBeUndefined();
    const message = await refusal(app);
    if (expected === null)
      expect(message, "the server now finds this problem: add its message to SERVER_MESSAGES").toBeUndefined();
    else expect(message).toContain(expected);
  });

  describe.each(ORIGINALS)("and the original's $kind", (type) => {
    const cases = Object.entries(type.fields).flatMap(([path, list]) => list.map((each) => ({ path, each })));

    it("accept each value that works", async () => {
      for (const { path, each } of cases.filter(({ each: { refused } }) => refused === undefined)) {
        const message = await refusal(objectWith(type, path, each) as KubeObject);
        expect(message, `${path}: ${JSON.stringify(each.value)}`).toBeUndefined();
      }
    });

    it("refuse the fields of older versions as unknown", async () => {
      for (const [path, value] of Object.entries(type.older)) {
        const message = await refusal(withField(type.sample(), path, value) as KubeObject);
        expect(message).toContain(`unknown field "${path.replaceAll("[]", "[0]")}"`);
      }
    });
  });

  it("allow changes of a VirtualApp, except of its selector", async () => {
    const [app] = documents("examples/virtualapp-test-operator.yaml") as VirtualApp[];
    if (app === undefined) throw new Error("no document");
    const ref = { namespace: NAMESPACE, name: "immutable" };
    await client.create(VIRTUAL_APPS, { ...app, metadata: ref });
    const patch = (spec: object) => client.patch(VIRTUAL_APPS, ref, { type: "merge", body: { spec } });
    await expect(patch({ selector: { matchLabels: { component: "other" } } })).rejects.toThrow(
      /spec\.selector: Invalid value: .*cannot be changed/,
    );
    await expect(patch({ selector: { matchLabels: { more: "terms" } } })).rejects.toThrow("cannot be changed");
    const changed = await patch({ subsets: [], route: { subRules: [] } });
    expect(changed.spec.subsets ?? []).toEqual([]);
  });

  it("allow setting the name of the operator's lock once, in either form, but not changing or removing it", async () => {
    const [app] = documents("examples/virtualapp-test-operator.yaml") as VirtualApp[];
    if (app === undefined) throw new Error("no document");
    const ref = { namespace: NAMESPACE, name: "lock" };
    const { configuration: _, ...spec } = app.spec;
    await client.create(VIRTUAL_APPS, { ...app, metadata: ref, spec });
    const patch = (configuration: object | null) =>
      client.patch(VIRTUAL_APPS, ref, { type: "merge", body: { spec: { configuration } } });
    const refused =
      /name of the operator's lock cannot be changed once it is set: delete this VirtualApp, wait until it is deleted, and create it again/;

    await patch({ controller: {} }); // no name yet
    await patch({ controller: { leaderElectionName: "one" } });
    await expect(patch({ controller: { leaderElectionName: "two" } })).rejects.toThrow(refused);
    await expect(patch({ controller: { leaderElectionName: null } })).rejects.toThrow(refused);
    await expect(patch({ controller: null })).rejects.toThrow(refused);
    await expect(patch(null)).rejects.toThrow(refused);
    const older = { leaderElection: { lockName: "two" } };
    await expect(patch({ controller: { leaderElectionName: null, ...older } })).rejects.toThrow(refused);
    await patch({ controller: { leaderElection: { lockName: "one" } } }); // both forms
    await patch({ controller: { leaderElectionName: null } }); // the older form only
    await expect(patch({ controller: older })).rejects.toThrow(refused);
    await patch({ controller: { leaderElection: null, leaderElectionName: "one" } });
    await patch({ restConfigOverrides: { userAgentOrPrefix: "mesh/" } }); // another part of the configuration
  });

  it("allow changes of a ShardingConfig, except of its selector, its lock and its form", async () => {
    const [config] = documents("examples/sharding/hand-written.yaml") as ShardingConfig[];
    if (config === undefined) throw new Error("no document");
    const ref = { namespace: NAMESPACE, name: "immutable" };
    await client.create(SHARDING_CONFIGS, { ...config, metadata: ref });
    const patch = (body: object) => client.patch(SHARDING_CONFIGS, ref, { type: "merge", body: { spec: body } });
    await expect(patch({ selector: { matchLabels: { more: "terms" } } })).rejects.toThrow(
      /spec\.selector: Invalid value: .*cannot be changed: delete this ShardingConfig/,
    );
    const [root] = documents("examples/sharding/root.yaml") as ShardingConfig[];
    if (root === undefined) throw new Error("no document");
    await expect(patch({ selector: null, limits: null, root: root.spec.root })).rejects.toThrow(
      "selector cannot be added or removed",
    );
    await expect(patch({ limits: null, root: root.spec.root })).rejects.toThrow("root cannot be added or removed");
    const refused = "name of the operator's lock cannot be changed, and only a root may set it later";
    await expect(patch({ controller: { leaderElectionName: "two" } })).rejects.toThrow(refused);
    await expect(patch({ controller: null })).rejects.toThrow(refused);
    const changed = await patch({ limits: [{ relateResources: [{ apiGroups: [""], resources: ["pods"] }] }], paused: true });
    expect(changed.spec).toMatchObject({ paused: true, controller: config.spec.controller });
    const withoutLock = async (object: ShardingConfig, name: string) => {
      const { controller: _, ...spec } = object.spec;
      await client.create(SHARDING_CONFIGS, { ...object, metadata: { namespace: NAMESPACE, name }, spec });
      const body = { spec: { controller: { leaderElectionName: "one" } } };
      return client.patch(SHARDING_CONFIGS, { namespace: NAMESPACE, name }, { type: "merge", body });
    };
    await expect(withoutLock(config, "alone")).rejects.toThrow(refused);
    expect((await withoutLock(root, "late-lock")).spec.controller).toEqual({ leaderElectionName: "one" });
  });

  it("bound the lock of a root by the longest name of a shard, in CEL as in the manager", async () => {
    const [root] = documents("examples/sharding/root.yaml");
    if (root === undefined) throw new Error("no document");
    const named = (length: number) => {
      const spec = { ...(root as ShardingConfig).spec, controller: { leaderElectionName: "l".repeat(length) } };
      return { ...root, spec };
    };
    expect([exampleProblems(named(236)), await refusal(named(236))]).toEqual([[], undefined]);
    expect([exampleProblems(named(237)), await refusal(named(237))]).toEqual([
      [expect.stringContaining("at most 236 here")],
      expect.stringContaining("spec.controller: Invalid value: the lock of a shard"),
    ]);
  });

  it("allow only one ManagerState, named ctrlmesh-manager", async () => {
    const named = (name: string): ManagerState => ({
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "ManagerState",
      metadata: { name },
    });
    await expect(client.create(MANAGER_STATES, named("other"))).rejects.toThrow("named ctrlmesh-manager");
    await client.create(MANAGER_STATES, named("ctrlmesh-manager"));
  });

  itWithProgram("kubectl", "show the state of a VirtualApp in kubectl's columns", async () => {
    const [app] = documents("examples/virtualapp-test-operator.yaml") as VirtualApp[];
    if (app === undefined) throw new Error("no document");
    const ref = { namespace: NAMESPACE, name: "columns" };
    await client.create(VIRTUAL_APPS, { ...app, metadata: ref });
    const condition = {
      type: "Ready",
      status: "False",
      reason: "Moving",
      message: "one-namespace-moves",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    const status = {
      conditions: [condition],
      proxies: { total: 3, connected: 3, synced: 2 },
      namespaces: { total: 40, moving: 1, held: 0 },
      handover: {
        from: "default",
        to: "canary",
        phase: "Draining",
        since: "2026-01-01T00:00:00Z",
        done: 0,
        total: 1,
        waitingOn: [{ pod: "shop-operator-1", reason: "WriteInFlight", since: "2026-01-01T00:00:00Z" }],
      },
      routeVersion: 7,
    };
    await client.patch(VIRTUAL_APPS, ref, { type: "merge", body: { status } }, { subresource: "status" });
    const rows = async (...args: string[]) => {
      const text = await kubectl(kube.kubeconfig, ["get", "vapp", "columns", "-n", NAMESPACE, ...args]);
      return text
        .trimEnd()
        .split("\n")
        .map((line) => line.split(/\s+/));
    };
    const [head, row] = await rows();
    expect(head).toEqual(["NAME", "READY", "REASON", "PROXIES", "SYNCED", "NAMESPACES", "MOVING", "WAITING-FOR", "WHY", "AGE"]);
    expect(row?.slice(0, -1)).toEqual(["columns", "False", "Moving", "3", "2", "40", "1", "shop-operator-1", "WriteInFlight"]);
    const [wideHead, wideRow] = await rows("-o", "wide");
    expect(wideHead?.slice(-2)).toEqual(["ROUTE", "MESSAGE"]);
    expect(wideRow?.slice(-2)).toEqual(["7", "one-namespace-moves"]);
    expect(await kubectl(kube.kubeconfig, ["get", "ctrlmesh", "-n", NAMESPACE, "-o", "name"])).toContain("/columns\n");
    expect(await kubectl(kube.kubeconfig, ["explain", "virtualapp.spec.subsets.routeRules"])).toContain(
      "can belong to one subset only",
    );
  });

  itWithProgram("kubectl", "show the state of a ShardingConfig in kubectl's columns", async () => {
    const [config] = documents("examples/sharding/hand-written.yaml") as ShardingConfig[];
    if (config === undefined) throw new Error("no document");
    const ref = { namespace: NAMESPACE, name: "columns" };
    await client.create(SHARDING_CONFIGS, { ...config, metadata: ref });
    const condition = (type: string, status: string, reason: string) => {
      return { type, status, reason, message: `message-of-${type}`, lastTransitionTime: "2026-01-01T00:00:00Z" };
    };
    const status = {
      family: "operator-leader",
      shard: "columns",
      shardPods: "1/2",
      shardNamespaces: 40,
      balance: { largest: 41, smallest: 39, mean: 40.25, skew: 1.02 },
      gaps: 0,
      standby: 1,
      conditions: [condition("Ready", "False", "Moving"), condition("Balanced", "True", "Even")],
    };
    const written = await client.patch(SHARDING_CONFIGS, ref, { type: "merge", body: { status } }, { subresource: "status" });
    expect(written.status).toEqual(status);
    const text = await kubectl(kube.kubeconfig, ["get", "shard", "columns", "-n", NAMESPACE, "-o", "wide"]);
    const [head, row] = text.split("\n").map((line) => line.trim().split(/\s+/));
    expect(head).toEqual(["NAME", "FAMILY", "SHARD", "PODS", "NAMESPACES", "BALANCED", "READY", "REASON", "AGE", "MESSAGE"]);
    expect(row?.toSpliced(8, 1)).toEqual([
      "columns",
      "operator-leader",
      "columns",
      "1/2",
      "40",
      "True",
      "False",
      "Moving",
      "message-of-Ready",
    ]);
    expect(await kubectl(kube.kubeconfig, ["explain", "shardingconfig.spec.root.canary.percent"])).toContain(
      "Percentage of all namespaces",
    );
  });

  itWithProgram("kubectl", "show the state of a policy in kubectl's columns", async () => {
    const [breaker] = documents("examples/traffic/circuit-breaker.yaml") as CircuitBreaker[];
    if (breaker === undefined) throw new Error("no document");
    const ref = { namespace: NAMESPACE, name: "columns" };
    await client.create(CIRCUIT_BREAKERS, { ...breaker, metadata: ref });
    const time = "2026-01-01T00:00:00Z";
    const rule = { name: "delete-pods", state: "Opened", lastTransitionTime: time };
    const status = {
      observedGeneration: 1,
      specSince: time,
      currentSpecHash: "abc",
      lastUpdatedTime: time,
      mode: "Enforce",
      conditions: [{ type: "Ready", status: "True", reason: "Opened", message: "message", lastTransitionTime: time }],
      targets: { total: 3, synced: 2, opened: 1 },
      targetStatus: [{ podName: "demo-0", podIP: "10.0.0.1", configHash: "abc", message: "behind", limitingSnapshots: [rule] }],
    };
    const written = await client.patch(CIRCUIT_BREAKERS, ref, { type: "merge", body: { status } }, { subresource: "status" });
    expect(written.status).toEqual(status);
    const text = await kubectl(kube.kubeconfig, ["get", "cbk", "columns", "-n", NAMESPACE, "-o", "wide"]);
    const [head, row] = text.split("\n").map((line) => line.trim().split(/\s+/));
    expect(head).toEqual(["NAME", "READY", "REASON", "MODE", "PODS", "SYNCED", "OPEN", "AGE", "MESSAGE"]);
    expect(row?.toSpliced(7, 1)).toEqual(["columns", "True", "Opened", "Enforce", "3", "2", "1", "message"]);
    for (const [field, said] of [
      ["circuitbreaker.spec.rateLimitings.trigger.slowerThan", "counts as a failure"],
      ["circuitbreaker.spec.trafficInterceptRules", "ctrlmesh.kruise.io/egress"],
      ["trafficpolicy.spec.targetVirtualApps.specificSubsets", "means all subsets"],
      ["faultinjection.spec.maxDuration", "end by themselves"],
    ] as const) {
      expect((await kubectl(kube.kubeconfig, ["explain", field])).replaceAll(/\s+/g, " ")).toContain(said);
    }
    expect(await kubectl(kube.kubeconfig, ["get", "tp,fj", "-n", NAMESPACE, "-o", "name"])).toBe("");
  });
});
