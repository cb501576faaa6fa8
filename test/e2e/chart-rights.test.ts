// Least privilege of the chart. A real manager with the token of the chart's service account does all its work without a refusal,
// and uses every permission that the chart grants, except those in RARE. The API server's audit log, here with reads, shows both.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { PLACEMENT_DECISIONS } from "../../src/api/placement-decision.ts";
import { MESH_CLUSTERS, SHARDING_CONFIGS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, PODS, SECRETS } from "../../src/kube/client/resources.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { applyProfile, installInventory } from "../support/cluster-inventory.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { untilGrown } from "../support/grown-namespace.ts";
import { CHART_ARGS, helm, helmTemplate, MESH_NAMESPACE, RELEASE } from "../support/helm.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { writeKubeconfig } from "../support/mesh/cluster.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { programMain } from "../support/programs.ts";
import { type PolicyRule, refusals, rightsOf, unusedRights } from "../support/rbac.ts";
import { describeWithKube } from "../support/requirements.ts";
import { refusedByPolicy, withStolenToken } from "../support/stolen-token.ts";

const USER = `system:serviceaccount:${MESH_NAMESPACE}:ctrlmesh-manager`;
const NAMESPACE = "foo-system";
const APP = { namespace: NAMESPACE, name: "foo-operator" };
const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - { level: Metadata, users: ["${USER}"] }
  - { level: None }
`;
/** Permissions that this run does not use, and the cases that use them. */
const RARE: Readonly<Record<string, string>> = {
  "get ctrlmesh.kruise.io/virtualapps": "after a conflict",
  "get ctrlmesh.kusionstack.io/shardingconfigs": "the same",
  "get ctrlmesh.kruise.io/trafficpolicies": "the same",
  "get ctrlmesh.kusionstack.io/circuitbreakers": "the same",
  "get ctrlmesh.kusionstack.io/faultinjections": "the same",
  "get ctrlmesh.kruise.io/meshclusters": "the same",
  "get ctrlmesh.kruise.io/managerstates": "after another replica was faster",
  "delete ctrlmesh.kruise.io/ownershipslices": "when two slices fit into one, or an app is disabled",
  "get apps/replicasets/scale": "when a workload has fewer pods than before for some seconds",
  "get apps/statefulsets/scale": "the same",
  "get apps/controllerrevisions": "in a rollout: test/nightly/sharding-rollout.test.ts",
  "get replicationcontrollers/scale": "the same",
  "patch events": "when something happens again",
  "get pods": "when a pod asks for a certificate before it is known",
  "create authentication.k8s.io/tokenreviews": "when a sidecar connects: test/nightly/install-failures.test.ts",
  "update secrets ctrlmesh-ca": "when the CA is rotated: the same",
  "create configmaps ctrlmesh-ca": "by an apply, which the audit log calls a patch",
  "delete configmaps ctrlmesh-ca": "a minute after the last injected pod of a namespace without a VirtualApp",
};

describeWithKube("a manager with only the chart's permissions", () => {
  let dir: string;
  let kube: Kube;
  let kubeconfig: string;
  let mesh: Mesh;
  let runner: PodRunner | undefined;
  let manager: Child | undefined;
  const run = (...args: string[]) => kubectl(kube.kubeconfig, args);

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-rights-"));
    const policy = join(dir, "audit-policy.yaml");
    writeFileSync(policy, AUDIT_POLICY);
    kube = await startKube({ controllerManager: true, apiServerArgs: [`--audit-policy-file=${policy}`] });
    for (const name of ["team-a", "team-b"]) await run("create", "namespace", name); // early, to be grown soon
    await installInventory(kube); // before the manager looks for it, which it does again only after 30 s
    await helm(["install", RELEASE, ...CHART_ARGS, "--create-namespace"], kube.kubeconfig);
    const token = (await run("create", "token", "ctrlmesh-manager", "-n", MESH_NAMESPACE, "--duration=1h")).trim();
    kubeconfig = writeKubeconfig(join(dir, "manager.kubeconfig"), kube.server, kube.caFile, token);
    mesh = await startMesh({ kube, managerKubeconfig: kubeconfig });
  });
  afterAll(async () => {
    await runner?.stop();
    await manager?.stop();
    await mesh?.stop();
    await kube?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const status = async () => (await mesh.client.get(VIRTUAL_APPS, APP)).status;
  const expectConverged = async () => {
    const now = await status();
    expect(now?.restart).toBeUndefined();
    expect(now?.conditions?.find(({ type }) => type === "Converged")).toMatchObject({ status: "True" });
  };

  it("leads, moves a namespace, evicts the pods that lost the namespace, and releases a deleted VirtualApp", async () => {
    await mesh.apply(demoVirtualApp({ onLoss: "Restart" }));
    const lockName = APP.name; // a restart waits for the leader, and 30 s if there is none
    const manager = String(mesh.manager.ready.grpc);
    runner = startPodRunner({ kube, client: mesh.client, namespace: NAMESPACE, lockName, manager });
    await mesh.apply(injectedWorkload({ name: "foo", replicas: 2, version: "v1" }));
    await mesh.apply(injectedWorkload({ name: "foo-canary", replicas: 1, version: "v2" }));
    await eventually(async () => {
      const { items } = await mesh.client.list(PODS, { namespace: NAMESPACE });
      const isReady = (type: string, value: string) => type === "Ready" && value === "True";
      expect(items.filter(({ status: is }) => is?.conditions?.some((one) => isReady(one.type, one.status)))).toHaveLength(3);
      await expectConverged();
    }, 60_000);
    const before = (await mesh.client.list(PODS, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.uid);
    await untilGrown(mesh.client, "team-b");
    await mesh.labelNamespace("team-b", { "ns-type": "canary-1" });
    await eventually(async () => {
      const now = (await mesh.client.list(PODS, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.uid);
      expect(now.filter((uid) => before.includes(uid))).toHaveLength(1);
      await expectConverged();
    }, 120_000);
    // The status says what the API server refuses to a Deployment, and no longer when that is over.
    const readyText = [
      "get",
      "vapp",
      APP.name,
      "-n",
      NAMESPACE,
      "-o",
      'jsonpath={.status.conditions[?(@.type=="Ready")].message}',
    ];
    const refusal = /; ReplicaSet foo-\w+ cannot create pods: pods "foo-\S+" is forbidden: .*quota.*: tight/;
    await run("create", "quota", "tight", "-n", NAMESPACE, "--hard=pods=3");
    const hard = ["get", "quota", "tight", "-n", NAMESPACE, "-o", "jsonpath={.status.hard.pods}"];
    await eventually(async () => expect(await run(...hard)).toBe("3")); // before that, a pod may pass
    await run("scale", "deployment", "foo", "-n", NAMESPACE, "--replicas=3");
    await eventually(async () => expect(await run(...readyText)).toMatch(refusal), 30_000);
    await run("scale", "deployment", "foo", "-n", NAMESPACE, "--replicas=2");
    await eventually(async () => expect(await run(...readyText)).not.toMatch(refusal), 30_000);
    await run("delete", "quota", "tight", "-n", NAMESPACE);
    await run("delete", "virtualapp", APP.name, "-n", NAMESPACE, "--timeout=60s");
  }, 240_000);

  it("makes, repairs and deletes the children of a root", async () => {
    const root = JSON.stringify({
      apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
      kind: "ShardingConfig",
      metadata: { namespace: NAMESPACE, name: "sharded" },
      spec: {
        root: {
          prefix: "sharded",
          targetStatefulSet: "sharded",
          auto: { everyShardReplicas: 1 },
          resourceSelector: [{ relateResources: [{ apiGroups: [""], resources: ["configmaps"] }] }],
        },
      },
    });
    await mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "sharded", replicas: 0, version: "v1", app: "sharded" }));
    await mesh.apply(root);
    const child = () =>
      run("get", "shard", "sharded-1-normal", "-n", NAMESPACE, "-o", "jsonpath={.spec.paused}/{.status.family}");
    await eventually(async () => expect(await child()).toBe("/sharded"), 60_000);
    // A root without pods is gone at once, and then the garbage collector deletes its children.
    await run("patch", "shard", "sharded", "-n", NAMESPACE, "--type=merge", "-p", '{"spec":{"root":{"disable":true}}}');
    await eventually(async () => {
      expect(await run("get", "shard", "-n", NAMESPACE, "-o", "name")).toBe("shardingconfig.ctrlmesh.kusionstack.io/sharded\n");
    });
    await run("delete", "shard", "sharded", "-n", NAMESPACE, "--timeout=60s");
  }, 120_000);

  it("writes the status of each policy", async () => {
    const namespace = "operator-demo";
    await run("create", "namespace", namespace);
    await mesh.apply(demoVirtualApp({ name: "test-operator", namespace, webhook: { certDir: "/certs", port: 9443 } }));
    for (const name of ["traffic-policy", "circuit-breaker", "fault-injection"]) {
      await run("apply", "-f", new URL(`../../examples/traffic/${name}.yaml`, import.meta.url).pathname);
    }
    const accepted = 'jsonpath={range .items[*]}{.kind}={.status.conditions[?(@.type=="Accepted")].status} {end}';
    await eventually(async () => {
      expect(await run("get", "tp,cbk,fj", "-n", namespace, "-o", accepted)).toBe(
        "TrafficPolicy=True TrafficPolicy=True CircuitBreaker=True FaultInjection=True ",
      );
    }, 60_000);
    // KusionStack's controllers have left this, and the manager takes it away.
    const finalizers = ["finalizer.ctrlmesh.kusionstack.io/protected"];
    for (const object of (await run("get", "cbk,fj", "-n", namespace, "-o", "name")).trim().split("\n")) {
      await run("patch", object, "-n", namespace, "--type=merge", "-p", JSON.stringify({ metadata: { finalizers } }));
      await run("delete", object, "-n", namespace, "--timeout=60s");
    }
    await run("delete", "virtualapp", "test-operator", "-n", namespace, "--timeout=60s");
  }, 120_000);

  it("makes MeshClusters from ClusterProfiles, and publishes who owns them", async () => {
    const namespace = "fleet";
    await run("create", "namespace", namespace);
    const divide = (match: object) => {
      const app = parse(demoVirtualApp({ name: "fleet-operator", namespace }));
      app.spec.route.subRules[0].match.push(match);
      return mesh.apply(stringify(app));
    };
    const profile = (server: string) => applyProfile(kube, { namespace, name: "eu", servers: [server] });
    const shown = async () => {
      const servers = await run("get", "meshclusters", "-n", namespace, "-o", "jsonpath={.items[*].spec.servers}");
      return `${servers} ${await run("get", "placementdecisions", "-n", namespace, "-o", "jsonpath={.items[*].metadata.name}")}`;
    };
    await divide({ clusters: ["eu"] });
    await profile("https://eu.example");
    await eventually(async () => expect(await shown()).toBe('["https://eu.example"] fleet-operator.v2-0'), 60_000);
    await profile("https://new.example");
    const [decision, edit] = ["fleet-operator.v2-0", '{"decisions":[]}'];
    await run("patch", "placementdecision", decision, "-n", namespace, "--type=merge", "-p", edit);
    await divide({ clusters: ["other"] });
    await eventually(async () => expect(await shown()).toBe('["https://new.example"] fleet-operator.default-0'), 60_000);
    await run("patch", "placementdecision", "fleet-operator.default-0", "-n", namespace, "--type=merge", "-p", edit);
    const clusters = () =>
      run(
        "get",
        "placementdecision",
        "fleet-operator.default-0",
        "-n",
        namespace,
        "-o",
        "jsonpath={.decisions[*].clusterProfileRef.name}",
      );
    await eventually(async () => expect(await clusters()).toBe("eu"), 30_000);
    await run("delete", "virtualapp", "fleet-operator", "-n", namespace, "--timeout=60s");
  }, 240_000);

  it("creates the CA, publishes the trust and fills in the webhooks, with the Deployment's own settings", async () => {
    await runner?.stop();
    for (const { stop } of mesh.managers) await stop(5_000);
    manager = await startChild({
      name: "manager",
      command: process.execPath,
      args: [programMain("manager"), "--print-ready"],
      env: { ...(await deploymentEnv()), ...LOCAL, CTRLMESH_KUBECONFIG: kubeconfig },
    });
    await mesh.apply(demoVirtualApp());
    await eventually(async () => {
      const bundle = await run("get", "configmap", "ctrlmesh-ca", "-n", NAMESPACE, "-o", "jsonpath={.data.ca\\.crt}");
      expect(bundle.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThanOrEqual(2);
      const ofApp = `${APP.name}.${NAMESPACE}.inject.ctrlmesh.kruise.io`;
      expect(await webhookNames("mutatingwebhookconfiguration", "ctrlmesh-injection")).toContain(ofApp);
      // One webhook for the mesh's own kinds, one for the pods of the app, and two for labels of pods.
      expect(await webhookNames("validatingwebhookconfiguration", "ctrlmesh-validation")).toHaveLength(4);
    }, 60_000);
    await run("get", "secret", "ctrlmesh-ca", "-n", MESH_NAMESPACE);
  }, 120_000);

  it("gets no refusal, and has no permission that it never uses", async () => {
    const log = kube.audit();
    expect(log.length).toBeGreaterThan(50);
    expect([...new Set(refusals(log))]).toEqual([]);
    const granted = parseAllDocuments(await helmTemplate("rbac: { aggregate: false }")).flatMap((document) => {
      const { rules = [] } = (document.toJS() ?? {}) as { rules?: readonly PolicyRule[] };
      return rightsOf(rules.filter(({ resources }) => resources !== undefined));
    });
    expect(unusedRights(granted, log).filter((right) => !Object.hasOwn(RARE, right))).toEqual([]);
    expect(Object.keys(RARE).filter((right) => !granted.includes(right))).toEqual([]);
  });

  it("cannot read other Secrets, delete pods, or write StatefulSets and other webhooks", async () => {
    const may = async (...args: string[]) => (await tryKubectl(kubeconfig, ["auth", "can-i", ...args])).stdout.trim();
    expect(await may("get", "secrets/other", "-n", MESH_NAMESPACE)).toBe("no");
    expect(await may("list", "secrets", "-n", MESH_NAMESPACE)).toBe("no");
    expect(await may("get", "secrets/ctrlmesh-ca", "-n", NAMESPACE)).toBe("no");
    expect(await may("delete", "pods", "-n", NAMESPACE)).toBe("no");
    for (const verb of ["create", "update", "patch", "delete"]) {
      expect(await may(verb, "statefulsets.apps", "-n", NAMESPACE)).toBe("no");
    }
    expect(await may("patch", "mutatingwebhookconfigurations/other")).toBe("no");
    expect(await may("create", "mutatingwebhookconfigurations")).toBe("no");
    expect(await may("update", "configmaps/other", "-n", NAMESPACE)).toBe("no");
  });

  it("with a stolen token changes no spec, label, webhook or Secret that the manager has no need to change", async () => {
    const root = { namespace: NAMESPACE, name: "victim" };
    const selector = { matchLabels: { "ctrlmesh.kusionstack.io/namespace": "team-a" } };
    const limits = [{ relateResources: [{ apiGroups: [""], resources: ["configmaps"] }], selector }];
    const spec = { selector: { matchLabels: { app: "victim" } }, limits };
    await mesh.client.create(SHARDING_CONFIGS, {
      metadata: { ...root, labels: { team: "a" }, annotations: { note: "b" } },
      spec,
    } as never);
    const own = { namespace: NAMESPACE, name: "own" };
    const servers = { servers: ["https://own.example"] };
    await mesh.client.create(MESH_CLUSTERS, { metadata: own, spec: servers } as never);
    await mesh.client.create(PLACEMENT_DECISIONS, { metadata: own, schedulerName: "other", decisions: [] });
    const owner = {
      apiVersion: "multicluster.x-k8s.io/v1alpha1",
      kind: "ClusterProfile",
      name: "own",
      uid: "x",
      controller: true,
    };
    const refusals = await withStolenToken(kubeconfig, async (thief) => {
      const merge = (body: object) => ({ type: "merge", body }) as const;
      const app = (body: object) => refusedByPolicy(thief.patch(VIRTUAL_APPS, APP, merge(body)));
      const config = (body: object) => refusedByPolicy(thief.patch(SHARDING_CONFIGS, root, merge(body)));
      const webhook = { name: "evil.ctrlmesh.kruise.io", admissionReviewVersions: ["v1"], sideEffects: "None" };
      const rules = [{ apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"] }];
      const service = { name: "ctrlmesh-manager", namespace: MESH_NAMESPACE };
      const webhooks = (each: object) =>
        refusedByPolicy(
          thief.patch(
            MUTATING_WEBHOOK_CONFIGURATIONS,
            { name: "ctrlmesh-injection" },
            merge({ webhooks: [{ ...webhook, ...each }] }),
          ),
        );
      const child = { "ctrlmesh.kusionstack.io/auto-sharding-root": "x" };
      const secret = { metadata: { namespace: MESH_NAMESPACE, name: "token" } };
      return [
        await webhooks({ rules: [], clientConfig: { url: "https://evil.example/mutate" } }),
        await webhooks({ rules: [], clientConfig: { service: { ...service, name: "evil" } } }),
        await webhooks({ rules, clientConfig: { service } }),
        await app({ spec: { route: { onLoss: "Restart" } } }),
        await app({ metadata: { labels: { team: "evil" } } }),
        await app({ metadata: { annotations: { "kubectl.kubernetes.io/evil": "x" } } }),
        await app({ metadata: { finalizers: ["evil.example/keep"] } }),
        await config({ metadata: { labels: child } }),
        await config({ metadata: { annotations: { note: null } } }),
        await refusedByPolicy(thief.delete(SHARDING_CONFIGS, root)),
        await refusedByPolicy(thief.create(SHARDING_CONFIGS, { metadata: { ...root, name: "more" }, spec } as never)),
        await refusedByPolicy(thief.create(SECRETS, secret)),
        await refusedByPolicy(thief.create(MESH_CLUSTERS, { metadata: { ...own, name: "more" }, spec: servers } as never)),
        await refusedByPolicy(thief.patch(MESH_CLUSTERS, own, merge({ spec: { servers: ["https://evil.example"] } }))),
        await refusedByPolicy(thief.patch(MESH_CLUSTERS, own, merge({ metadata: { ownerReferences: [owner] } }))),
        await refusedByPolicy(
          thief.patch(
            PLACEMENT_DECISIONS,
            own,
            merge({ metadata: { labels: { "ctrlmesh.kruise.io/app": "x" } }, schedulerName: "ctrlmesh-manager" }),
          ),
        ),
        await refusedByPolicy(thief.delete(PLACEMENT_DECISIONS, own)),
      ];
    });
    const changes = "the manager changes only";
    expect(refusals).toEqual([
      ...Array(2).fill("ctrlmesh-manager-webhooks: the manager writes only webhooks of its own Service"),
      "ctrlmesh-manager-webhooks: the manager writes only webhooks for pods, namespaces and the mesh's own kinds",
      ...Array(2).fill(`ctrlmesh-manager-apps: ${changes} finalizers and annotations of what it did not make`),
      `ctrlmesh-manager-apps: ${changes} its own annotations`,
      `ctrlmesh-manager-apps: ${changes} its own finalizer`,
      `ctrlmesh-manager-apps: ${changes} finalizers and annotations of what it did not make`,
      `ctrlmesh-manager-apps: ${changes} its own annotations`,
      ...Array(2).fill("ctrlmesh-manager-apps: the manager creates and deletes only the children of a root"),
      "ctrlmesh-manager-names: the manager creates only the Secret ctrlmesh-ca and the Lease ctrlmesh-manager",
      ...Array(3).fill("ctrlmesh-manager-clusters: the manager writes only MeshClusters that it makes from a ClusterProfile"),
      ...Array(2).fill("ctrlmesh-manager-clusters: the manager writes only PlacementDecisions of its own"),
    ]);
  });

  it("may still write as many webhooks as the API server stores", async () => {
    const { webhooks = [] } = await mesh.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, { name: "ctrlmesh-injection" });
    const [own] = webhooks.filter(({ name }) => name.includes(".inject."));
    if (own === undefined) throw new Error("no injection");
    // With a short bundle there is room for 1,500 of them.
    const clientConfig = { ...own.clientConfig, caBundle: undefined };
    const many = Array.from({ length: 1_500 }, (_, at) => ({
      ...own,
      clientConfig,
      name: `app-${at}.ns-${at}.inject.ctrlmesh.kruise.io`,
    }));
    const patch = { type: "merge", body: { webhooks: many } } as const;
    const written = await withStolenToken(kubeconfig, (manager) =>
      manager.patch(MUTATING_WEBHOOK_CONFIGURATIONS, { name: "ctrlmesh-injection" }, patch, { dryRun: true }),
    );
    expect(written.webhooks).toHaveLength(1_500);
  });

  it("leaves no webhook behind if helm uninstall removes a running manager", async () => {
    await helm(["uninstall", RELEASE], kube.kubeconfig);
    const names = ["ctrlmesh-injection", "ctrlmesh-validation"];
    const left = async () =>
      (await run("get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name"))
        .split("\n")
        .filter((name) => names.some((each) => name.endsWith(each)));
    expect(await left()).toEqual([]);
    // A new app makes the manager write to the webhook configurations, and so notice that they are gone.
    await mesh.apply(demoVirtualApp({ name: "another" }));
    await eventually(() => manager?.output().includes("webhook-configuration") ?? false);
    expect(await left()).toEqual([]);
  });

  const webhookNames = async (kind: string, name: string) =>
    (await run("get", kind, name, "-o", "jsonpath={.webhooks[*].name}")).split(" ").filter((each) => each !== "");
});

/** The variables of the Deployment, with fixed values for references to the pod's fields. */
async function deploymentEnv(): Promise<Record<string, string>> {
  const fields: Readonly<Record<string, string>> = {
    "metadata.namespace": MESH_NAMESPACE,
    "metadata.name": "ctrlmesh-manager-1",
    "status.podIP": "127.0.0.1",
  };
  interface Env {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
  }
  const documents = parseAllDocuments(await helmTemplate()).map(
    (document) => document.toJS() as { readonly kind?: string } | null,
  );
  const deployment = documents.find((object) => object?.kind === "Deployment") as unknown as {
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly [{ readonly env: readonly Env[] }] } } };
  };
  const { env } = deployment.spec.template.spec.containers[0];
  return Object.fromEntries(
    env.map(({ name, value, valueFrom }) => [name, value ?? fields[valueFrom?.fieldRef.fieldPath ?? ""] ?? ""]),
  );
}

/** Free ports on the loopback. */
const LOCAL = {
  CTRLMESH_GRPC_LISTEN: "127.0.0.1:0",
  CTRLMESH_HEALTH_LISTEN: "127.0.0.1:0",
  CTRLMESH_WEBHOOK_LISTEN: "127.0.0.1:0",
};
