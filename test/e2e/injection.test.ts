// Injected pods on the real API server, with its defaults, its service-account admission, and Pod Security "restricted" on their namespace.
// Every create is a dry run, since only admission is under test.

import { afterAll, beforeAll, expect, it } from "vitest";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { injectPod } from "../../src/manager/injection/inject-pod.ts";
import type { InjectionSettings } from "../../src/manager/injection/injection.ts";
import type { Container, PodManifest } from "../../src/manager/injection/pod-manifest.ts";
import { eventually } from "../support/eventually.ts";
import { SETTINGS } from "../support/injection.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { describeWithKube } from "../support/requirements.ts";
import { appOf } from "../support/source-apps.ts";

const NAMESPACE = "ops";
const ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";
const SECURITY = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
};
const app = (configuration: object = {}) => ({
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { name: "shop", namespace: NAMESPACE },
  spec: { selector: { matchLabels: { app: "shop-operator" } }, configuration },
});

function operatorPod(annotations: Readonly<Record<string, string>> = {}) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      generateName: "shop-operator-",
      namespace: NAMESPACE,
      labels: { app: "shop-operator" },
      annotations: Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`ctrlmesh.kruise.io/${name}`, value])),
    },
    spec: {
      initContainers: [{ name: "migrate", image: "shop/migrate:1", securityContext: SECURITY }],
      containers: [
        { name: "manager", image: "shop/operator:1", securityContext: SECURITY, ports: [{ containerPort: 9443 }] },
        { name: "helper", image: "shop/helper:1", securityContext: SECURITY, env: [{ name: "A", value: "1" }] },
      ],
    },
  };
}

describeWithKube("an injected pod", () => {
  let kube: Kube;
  let client: KubeClient;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "injection-test" });
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await client.create(NAMESPACES, { metadata: { name: NAMESPACE, labels } });
    const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`;
    await eventually(() => client.request({ method: "GET", path }), 30_000);
  });
  afterAll(async () => {
    await client?.close();
    await kube?.stop();
  });

  /** The pod as the API server would store it, without the fields that it adds after admission. */
  async function admitted(pod: unknown): Promise<PodManifest> {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`;
    const stored = (await client.request({ method: "POST", path, body: pod })) as PodManifest & { status?: unknown };
    const { status: _, ...rest } = stored;
    const { uid: _uid, creationTimestamp: _time, name: _name, managedFields: _fields, ...metadata } = rest.metadata;
    return { ...rest, metadata };
  }

  /** Injects as the webhook does. The service-account admission changes the pod before and after. */
  async function inject(pod: unknown, settings: Partial<InjectionSettings> = {}, configuration: object = {}) {
    const request = { namespace: NAMESPACE, apps: [appOf(app(configuration))], settings: { ...SETTINGS, ...settings } };
    const first = injectPod({ ...request, pod: await admitted(pod) });
    if (first.kind !== "changed") throw new Error(JSON.stringify(first));
    const stored = await admitted(first.pod);
    return { injected: first.pod, stored, again: injectPod({ ...request, pod: stored }) };
  }

  const containersOf = ({ spec }: PodManifest): Container[] => [...(spec.initContainers ?? []), ...spec.containers];
  const accountOf = (pod: PodManifest) =>
    Object.fromEntries(
      containersOf(pod).map(({ name, volumeMounts = [] }) => {
        const volumes = volumeMounts.filter(({ mountPath }) => mountPath === ACCOUNT_DIR).map((mount) => mount.name);
        return [name, volumes.map((volume) => volume.replace(/^kube-api-access-.*/, "kube-api-access"))];
      }),
    );

  it.each([
    ["env", {}, {}],
    ["env with host aliases", { "host-aliases": "true" }, {}],
    ["kubeconfig", { intercept: "kubeconfig" }, {}],
    ["env in an IPv6 cluster", {}, { kubernetesService: { ips: ["fd00:10:96::1"], port: 443 } }],
    [
      "env with everything set",
      { "proxy-cpu-limit": "1", "proxy-memory": "1Gi", "proxy-env.A": "b", "proxy-log-level": "debug" },
      {},
    ],
    ["env with a plain container", {}, { nativeSidecars: false }],
    ["env with calls to other servers", { egress: "true", "egress-private-addresses": "10.0.0.0/8" }, {}],
  ])("passes Pod Security restricted, and a second injection does not change the pod: %s", async (_, annotations, settings) => {
    const { injected, stored, again } = await inject(operatorPod(annotations), settings);
    expect(again).toMatchObject({ kind: "unchanged", app: "shop" });
    expect(containersOf(stored).map(({ name }) => name)).toEqual(containersOf(injected).map(({ name }) => name));
    expect(stored.spec.volumes?.map(({ name }) => name)).toEqual(injected.spec.volumes?.map(({ name }) => name));
  });

  it.each([true, false])("of an operator with webhooks is admitted too (native sidecar: %s)", async (nativeSidecars) => {
    const pod = operatorPod();
    const [manager, ...others] = pod.spec.containers;
    const serving = {
      ...manager,
      ports: [{ name: "webhook", containerPort: 9443 }],
      readinessProbe: { httpGet: { path: "/readyz", port: "webhook", scheme: "HTTPS" } },
      volumeMounts: [{ name: "cert", mountPath: "/certs", readOnly: true }],
    };
    const volumes = [{ name: "cert", secret: { secretName: "cert", defaultMode: 0o400 } }];
    const spec = { ...pod.spec, containers: [serving, ...others], volumes, securityContext: { fsGroup: 65532 } };
    const webhook = { certDir: "/certs", port: 9443 };
    const { stored, again } = await inject({ ...pod, spec }, { nativeSidecars }, { webhook });
    expect(again).toMatchObject({ kind: "unchanged" });
    expect(stored.spec.containers.find(({ name }) => name === "manager")).toMatchObject({
      ports: [{ name: "webhook", containerPort: 5445, protocol: "TCP" }],
      readinessProbe: { httpGet: { port: 9443 } },
    });
  });

  it("has a bound token and the mesh's CA bundle in the operator's containers, and no token in the proxy's", async () => {
    const { stored } = await inject(operatorPod());
    expect(accountOf(stored)).toEqual({
      "ctrlmesh-proxy": ["ctrlmesh-cluster-ca"],
      migrate: ["kube-api-access"],
      manager: ["kube-api-access"],
      helper: ["kube-api-access"],
    });
    const access = stored.spec.volumes?.find(({ name }) => name.startsWith("kube-api-access-"));
    expect(access?.projected?.sources).toEqual([
      { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
      { downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] } },
      { configMap: { name: "ctrlmesh-ca", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    ]);
  });

  it("intercepts a container that another webhook adds between two calls, and that container gets its token", async () => {
    const { stored } = await inject(operatorPod());
    const late = { name: "late", image: "late:1", securityContext: SECURITY };
    const spec = { ...stored.spec, containers: [...stored.spec.containers, late] };
    const { stored: again } = await inject({ ...stored, spec });
    expect(accountOf(again)).toMatchObject({ late: ["kube-api-access"], "ctrlmesh-proxy": ["ctrlmesh-cluster-ca"] });
    expect(again.spec.containers.at(-1)).toMatchObject({
      name: "late",
      env: [{ name: "KUBERNETES_SERVICE_HOST", value: "127.0.0.1" }, {}, {}],
    });
  });

  it("leaves a container alone that wants no HTTP proxy: the API server stores an empty variable without its value", async () => {
    const pod = operatorPod({ egress: "true" });
    const containers = pod.spec.containers.map((each) => ({ ...each, env: [{ name: "HTTPS_PROXY", value: "" }] }));
    const { stored, again } = await inject({ ...pod, spec: { ...pod.spec, containers } });
    expect(stored.spec.containers[0]?.env?.slice(3)).toEqual([{ name: "HTTPS_PROXY" }]);
    expect(again).toMatchObject({
      kind: "unchanged",
      warnings: expect.arrayContaining([expect.stringContaining("HTTPS_PROXY")]),
    });
  });

  it("is refused by Pod Security in iptables mode, only for the capabilities of its init container", async () => {
    const message = await inject(operatorPod({ intercept: "iptables" })).then(() => "", String);
    expect(message).toMatch(/violates PodSecurity "restricted/);
    expect(message).toMatch(/container "ctrlmesh-iptables" must not include "NET_ADMIN", "NET_RAW"/);
    expect(message).not.toMatch(/ctrlmesh-proxy|manager"|migrate/);
  });
});
