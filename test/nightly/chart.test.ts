// The Helm chart on the real control plane, with Helm itself. The API server accepts every object, an upgrade keeps the manager's own
// writes, and an uninstall leaves nothing that could stop a pod. chart-rights.test.ts covers the chart's RBAC.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import type { KubeObject } from "../../src/kube/types.ts";
import { OPTIONAL_KINDS, REFUSED, VALUES } from "../support/chart-values.ts";
import { eventually } from "../support/eventually.ts";
import { CHART, CHART_ARGS, helm, helmTemplate, MESH_NAMESPACE, RELEASE, tryHelm } from "../support/helm.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { describeWithKube } from "../support/requirements.ts";
import { anchorsOf } from "../support/tree-map.ts";

interface Manifest extends KubeObject {
  readonly kind: string;
  readonly spec?: { readonly template?: { readonly metadata: object; readonly spec: object } };
}

describeWithKube("the chart", () => {
  let kube: Kube;
  const run = (...args: string[]) => kubectl(kube.kubeconfig, args);
  const apply = (yaml: string, ...args: string[]) => kubectl(kube.kubeconfig, ["apply", "-f", "-", ...args], yaml);
  const manifests = async (values = "") =>
    parseAllDocuments(await helmTemplate(values)).flatMap((document) => (document.toJS() as Manifest | null) ?? []);
  const helmHere = (...args: string[]) => helm(args, kube.kubeconfig);

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    for (const kind of OPTIONAL_KINDS) await apply(otherCrd(kind));
    await run("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s");
    await run("create", "namespace", MESH_NAMESPACE);
    await run("label", "namespace", MESH_NAMESPACE, "pod-security.kubernetes.io/enforce=restricted");
  });
  afterAll(() => kube?.stop());

  it("passes helm lint --strict with every set of test values", async () => {
    for (const values of Object.values(VALUES))
      await helm(["lint", "--strict", ...CHART_ARGS, "--values", "-"], undefined, values);
  });

  it.each(Object.keys(VALUES))("has only objects that the API server accepts: %s", async (name) => {
    const yaml = await helmTemplate(VALUES[name]);
    const result = await apply(yaml, "--server-side", "--dry-run=server", "--validate=strict");
    expect(result.trim().split("\n")).toHaveLength((await manifests(VALUES[name])).length);
  });

  it("has plain manifests that the API server accepts", async () => {
    const file = new URL("../../deploy/ctrlmesh.yaml", import.meta.url);
    await apply(readFileSync(file, "utf8"), "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts");
  });

  it("refuses to install without a registry, and says what to do", async () => {
    const { code, stderr } = await tryHelm(["template", RELEASE, CHART]);
    expect(code).not.toBe(0);
    expect(stderr).toContain("set image.registry: there are no published images yet; docs/tasks/build-images.md");
  });

  it("finds a troubleshooting heading for each runbook_url", async () => {
    const rule = (await manifests(VALUES["everything on"])).find(({ kind }) => kind === "PrometheusRule");
    const text = JSON.stringify(rule);
    const anchors = [...text.matchAll(/"runbook_url":"https:\/\/docs\.example\.com\/troubleshooting\.md#([^"]+)"/g)].map(
      ([, anchor]) => anchor,
    );
    const page = anchorsOf(readFileSync(new URL("../../docs/troubleshooting.md", import.meta.url), "utf8"));
    expect(anchors).toHaveLength(text.match(/"alert":/g)?.length ?? -1);
    expect(anchors.filter((anchor) => !page.has(anchor ?? ""))).toEqual([]);
  });

  it.each(REFUSED)("refuses the values $values and names $names", async ({ values, names }) => {
    const { code, stderr } = await tryHelm(["template", RELEASE, ...CHART_ARGS, "--values", "-"], undefined, values);
    expect(code).not.toBe(0);
    expect(stderr).toContain(names);
  });

  it("refuses every variable in extraEnv that the chart itself sets, all in one message", async () => {
    const container = "identity: { caSecret: mine }\nproxy: { imagePullSecrets: [{ name: pull }] }";
    const pod = (await manifests(container)).find(({ kind }) => kind === "Deployment")?.spec?.template?.spec;
    const env = (pod as { containers: { env: { name: string }[] }[] }).containers[0]?.env ?? [];
    const values = stringify({ extraEnv: env.map(({ name }) => ({ name, value: "x" })) });
    const { stderr } = await tryHelm(["template", RELEASE, ...CHART_ARGS, "--values", "-"], undefined, values);
    for (const { name } of env) expect(stderr).toContain(`extraEnv: ${name} is set by the chart`);
  });

  it("creates all objects by helm install, and its notes name the next steps", async () => {
    const notes = await helmHere("install", RELEASE, ...CHART_ARGS);
    expect(notes).toContain("kind: VirtualApp");
    expect(notes).toContain(`helm uninstall ${RELEASE} --namespace ${MESH_NAMESPACE}`);
    const expected = await manifests();
    expect(expected.map(({ kind }) => kind).sort()).toEqual([
      "ClusterRole",
      "ClusterRole",
      "ClusterRole",
      "ClusterRoleBinding",
      "CustomResourceDefinition",
      "CustomResourceDefinition",
      "CustomResourceDefinition",
      "CustomResourceDefinition",
      "CustomResourceDefinition",
      "CustomResourceDefinition",
      "Deployment",
      "MutatingWebhookConfiguration",
      "Pod",
      "PodDisruptionBudget",
      "Role",
      "RoleBinding",
      "Service",
      "ServiceAccount",
      ...Array(3).fill("ValidatingAdmissionPolicy"),
      ...Array(3).fill("ValidatingAdmissionPolicyBinding"),
      "ValidatingWebhookConfiguration",
    ]);
    // `helm test` creates the pod.
    for (const { kind, metadata } of expected.filter((each) => each.kind !== "Pod"))
      await run("get", kind, metadata.name ?? "", "-n", MESH_NAMESPACE);
    await run("wait", "--for=condition=Established", "crd", "virtualapps.ctrlmesh.kruise.io", "--timeout=20s");
  });

  it("lets whoever may view or edit a namespace view or edit the mesh's objects in it", async () => {
    const rulesOf = async (role: string) => run("get", "clusterrole", role, "-o", "jsonpath={.rules}");
    // A controller of the cluster copies the rules.
    await eventually(async () => expect(await rulesOf("view")).toContain("shardingconfigs"), 20_000);
    expect(await rulesOf("view")).not.toContain('"ctrlmesh.kruise.io"],"resources":["managerstates"');
    await eventually(async () => expect(await rulesOf("edit")).toContain("shardingconfigs"), 20_000);
  });

  it("has a VirtualApp in its notes that the API server accepts", async () => {
    const notes = await helmHere("get", "notes", RELEASE);
    const yaml = /<<EOF\n([\s\S]*?)\n *EOF/.exec(notes)?.[1] ?? "";
    await apply(yaml.replaceAll("NAMESPACE", "default"), "--dry-run=server");
  });

  it("has pods that pass Pod Security restricted, which the namespace enforces", async () => {
    const template = (await manifests()).find(({ kind }) => kind === "Deployment")?.spec?.template;
    const pod = (spec: object) =>
      stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { ...template?.metadata, name: "one", namespace: MESH_NAMESPACE },
        spec,
      });
    const create = (spec: object) =>
      tryKubectl(kube.kubeconfig, ["create", "--dry-run=server", "-f", "-"], pod({ ...template?.spec, ...spec }));
    expect(await create({})).toMatchObject({ code: 0 });
    expect((await create({ securityContext: {} })).stderr).toContain("violates PodSecurity");
  });

  it.each([
    { how: "Helm 4's server-side apply", flags: [] },
    { how: "the three-way merge of Helm 3", flags: ["--server-side=false"] },
  ])("changes objects by helm upgrade, but not the manager's webhooks: $how", async ({ flags }) => {
    const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/ctrlmesh-injection";
    const object = JSON.parse(await run("get", "--raw", path)) as object;
    const filled = { ...object, webhooks: [WEBHOOK] };
    await kubectl(kube.kubeconfig, ["replace", "--raw", path, "-f", "-"], JSON.stringify(filled));
    const upgrade = (values: string) =>
      helm(["upgrade", RELEASE, ...CHART_ARGS, ...flags, "--values", "-"], kube.kubeconfig, values);
    const replicas = () => run("get", "deployment", "ctrlmesh-manager", "-n", MESH_NAMESPACE, "-o", "jsonpath={.spec.replicas}");

    await upgrade("replicaCount: 3\ncommonLabels: { cost: infra }");
    expect(await replicas()).toBe("3");
    const after = parse(await run("get", "--raw", path)) as { metadata: KubeObject["metadata"]; webhooks: object[] };
    expect(after.metadata.labels).toMatchObject({ cost: "infra" });
    expect(after.webhooks).toMatchObject([{ name: WEBHOOK.name, failurePolicy: "Fail" }]);

    await helmHere("rollback", RELEASE, ...flags);
    expect(await replicas()).toBe("2");
    expect(parse(await run("get", "--raw", path))).toMatchObject({ webhooks: [{ name: WEBHOOK.name }] });

    await upgrade("podDisruptionBudget: { enabled: false }");
    expect(await replicas()).toBe("2");
    expect(await run("get", "pdb", "-n", MESH_NAMESPACE, "-o", "name")).toBe("");
    expect(parse(await run("get", "--raw", path))).toMatchObject({ webhooks: [{ name: WEBHOOK.name }] });
  });

  it("removes everything by helm uninstall except the CRDs and their objects, and removes those with crds.keep=false", async () => {
    await apply(APP);
    await helmHere("uninstall", RELEASE);
    const left = async () => {
      const cluster = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,crds";
      const inNamespace = "all,serviceaccounts,roles,rolebindings,pdb,networkpolicies,resourcequotas,secrets,configmaps,leases";
      const names = `${await run("get", cluster, "-o", "name")}${await run("get", inNamespace, "-n", MESH_NAMESPACE, "-o", "name")}`;
      return names.split("\n").filter((name) => name.includes("ctrlmesh"));
    };
    const crds = [
      "circuitbreakers.ctrlmesh.kusionstack.io",
      "faultinjections.ctrlmesh.kusionstack.io",
      "managerstates.ctrlmesh.kruise.io",
      "ownershipslices.ctrlmesh.kruise.io",
      "shardingconfigs.ctrlmesh.kusionstack.io",
      "trafficpolicies.ctrlmesh.kruise.io",
      "virtualapps.ctrlmesh.kruise.io",
    ].map((name) => `customresourcedefinition.apiextensions.k8s.io/${name}`);
    expect(await left()).toEqual(crds);
    expect(await run("get", "virtualapps", "-n", "default", "-o", "name")).toBe("virtualapp.ctrlmesh.kruise.io/kept\n");

    await helmHere("install", RELEASE, ...CHART_ARGS, "--set", "crds.keep=false");
    // The API server makes the storage of a kind with its first request. If that is the deletion of the CRD, it may fail, and after some failures
    // the API server waits for minutes until it tries again ("could not list instances: storage is (re)initializing").
    for (const crd of crds) await run("get", crd.replace(/^[^/]*\//, ""), "--all-namespaces");
    // By polling: Helm 4's default, a watcher, sometimes waits for ever for what has gone before it watched.
    await helmHere("uninstall", RELEASE, "--wait=legacy");
    expect(await left()).toEqual([]);
  });

  it("takes over plain manifests and their VirtualApps by helm install --take-ownership", async () => {
    const plain = new URL("../../deploy/ctrlmesh.yaml", import.meta.url);
    const yaml = readFileSync(plain, "utf8").replaceAll("registry.example.com", "registry.other");
    await apply(yaml, "--server-side");
    await run("wait", "--for=condition=Established", "crd", "virtualapps.ctrlmesh.kruise.io", "--timeout=20s");
    await apply(APP);
    const uid = () => run("get", "virtualapp", "kept", "-n", "default", "-o", "jsonpath={.metadata.uid}");
    const before = await uid();
    await helmHere("install", RELEASE, ...CHART_ARGS, "--take-ownership", "--force-conflicts");
    expect(await uid()).toBe(before);
    const image = "jsonpath={.spec.template.spec.containers[0].image}";
    expect(await run("get", "deployment", "ctrlmesh-manager", "-n", MESH_NAMESPACE, "-o", image)).toMatch(
      /^kind\.local\/ctrlmesh\/manager:/,
    );
    // kubectl still owns the fields that it applied, so a later upgrade needs --force-conflicts too.
    const upgrade = ["upgrade", RELEASE, ...CHART_ARGS, "--set", "replicaCount=3"];
    expect((await tryHelm(upgrade, kube.kubeconfig)).stderr).toContain('conflict with "kubectl": .spec.replicas');
    await helmHere(...upgrade, "--force-conflicts");
  });
});

const APP = stringify({
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { name: "kept", namespace: "default" },
  spec: { selector: { matchLabels: { app: "kept" } }, configuration: { controller: { leaderElectionName: "kept" } } },
});

const WEBHOOK = {
  name: "app.example.com",
  failurePolicy: "Fail",
  sideEffects: "None",
  admissionReviewVersions: ["v1"],
  clientConfig: { service: { name: "ctrlmesh-manager", namespace: MESH_NAMESPACE, path: "/inject" } },
  namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "no-such-namespace" } },
  rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
};

function otherCrd({ group, version, kind, plural }: (typeof OPTIONAL_KINDS)[number]): string {
  return stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  });
}
