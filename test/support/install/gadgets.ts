// An operator with webhooks as its authors ship it (test/operators/go-webhooks): its CRD, Service, certificate and webhook configurations. None of
// these objects mentions a mesh.
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../../src/base/certificates.ts";
import type { Resource } from "../../../src/kube/client/resource.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import type { TestImage } from "../../node/test-image.ts";
import { goProgram } from "../go-build.ts";

export const GADGET_IMAGE = "test/go-webhooks:1";
/** Name of the operator's lock, service account and VirtualApp. */
export const GADGET_OPERATOR = "gadget-operator";
export const GADGET_NAMESPACE = "gadget-system";
/** Of each review. A create takes two: defaulting, then validation. */
export const TIMEOUT_SECONDS = 3;
/** The name in the certificates, by which the API server calls the Service. */
export const GADGET_HOST = `gadget-webhook.${GADGET_NAMESPACE}.svc`;
export const DEFAULTED_BY = "demo.ctrlmesh.io/defaulted-by";
export const RECONCILED_BY = "demo.ctrlmesh.io/reconciled-by";

const GROUP = "demo.ctrlmesh.io";
const SERVICE = "gadget-webhook";
const SECRET = "gadget-webhook-cert";
const PORT = 9443;
const FOLDER = new URL("../../operators/go-webhooks/", import.meta.url);

export interface Gadget extends KubeObject {
  readonly spec?: { readonly message?: string };
}
export const GADGETS: Resource<Gadget> = { group: GROUP, version: "v1", resource: "gadgets", kind: "Gadget", namespaced: true };

export async function gadgetImage(): Promise<TestImage> {
  const binds = { "/go-webhooks": await goProgram("test/operators/go-webhooks") };
  return { entrypoint: ["/go-webhooks"], user: "65534:65534", binds };
}

/** The CAs of the operator's certificates, one for each rotation. */
export function createGadgetCas(count: number): readonly KeyCertificate[] {
  return Array.from({ length: count }, (_, index) => createCa({ commonName: `gadgets-${index}`, now: Date.now() }));
}

export function gadgetCertificate(ca: KeyCertificate): KeyCertificate {
  return issueServerCertificate(ca, { dnsNames: [GADGET_HOST], now: Date.now() });
}

/** The certificate as a Secret. The pods' files follow it. */
export function gadgetSecret({ certPem, keyPem }: KeyCertificate): object {
  const data = { "tls.crt": certPem, "tls.key": keyPem };
  return { apiVersion: "v1", kind: "Secret", metadata: inHome(SECRET), type: "kubernetes.io/tls", stringData: data };
}

/** The CRD with its conversion, the rights, a namespace of the given pod security, and the Service. `targetPort` is the container port's name by default. */
export function gadgetHome(
  caPem: string,
  { targetPort = "webhook" as string | number, security = "restricted" as "restricted" | "privileged" } = {},
): object[] {
  const crd = parse(readFileSync(new URL("crd.yaml", FOLDER), "utf8")) as { spec: object };
  const webhook = { clientConfig: clientConfig(caPem, "/convert"), conversionReviewVersions: ["v1"] };
  const rbac = { apiVersion: "rbac.authorization.k8s.io/v1" };
  return [
    { ...crd, spec: { ...crd.spec, conversion: { strategy: "Webhook", webhook } } },
    parse(readFileSync(new URL("rbac.yaml", FOLDER), "utf8")) as object,
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: GADGET_NAMESPACE, labels: { "pod-security.kubernetes.io/enforce": security } },
    },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: inHome(GADGET_OPERATOR) },
    {
      ...rbac,
      kind: "ClusterRoleBinding",
      metadata: { name: GADGET_OPERATOR },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: GADGET_OPERATOR },
      subjects: [{ kind: "ServiceAccount", name: GADGET_OPERATOR, namespace: GADGET_NAMESPACE }],
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: inHome(SERVICE),
      spec: { selector: { component: GADGET_OPERATOR }, ports: [{ port: 443, targetPort }] },
    },
  ];
}

/** The webhook configurations for Gadgets. */
export function gadgetWebhooks(caPem: string, failurePolicy: "Fail" | "Ignore" = "Fail"): object[] {
  const entry = (path: string, operations: readonly string[]) => ({
    name: `${path}.${GROUP}`,
    clientConfig: clientConfig(caPem, `/${path}-demo-ctrlmesh-io-v1-gadget`),
    rules: [{ apiGroups: [GROUP], apiVersions: ["v1"], resources: ["gadgets"], operations }],
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    failurePolicy,
    timeoutSeconds: TIMEOUT_SECONDS,
  });
  const configuration = (kind: string, webhook: object) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: { name: "gadgets" },
    webhooks: [webhook],
  });
  return [
    configuration("MutatingWebhookConfiguration", entry("mutate", ["CREATE", "UPDATE"])),
    configuration("ValidatingWebhookConfiguration", entry("validate", ["CREATE", "UPDATE", "DELETE"])),
  ];
}

export interface GadgetWorkloadOptions {
  readonly name: string;
  readonly replicas: number;
  /** Value of the label `version`; "v2" is the canary subset of {@link gadgetApp}. */
  readonly version: string;
  /** Default Deployment. */
  readonly kind?: "Deployment" | "StatefulSet";
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The operator's workload. Its container names the port of the webhooks "webhook". */
export function gadgetWorkload({
  name,
  replicas,
  version,
  kind = "Deployment",
  annotations = {},
}: GadgetWorkloadOptions): object {
  const labels = { component: GADGET_OPERATOR, version };
  const field = (path: string) => ({ valueFrom: { fieldRef: { fieldPath: path } } });
  const container = {
    name: "operator",
    image: GADGET_IMAGE,
    args: ["--health-probe-bind-address=:8081", "--lease-duration=6s", "--renew-deadline=4s", "--retry-period=1s"],
    env: [
      { name: "POD_NAME", ...field("metadata.name") },
      { name: "POD_NAMESPACE", ...field("metadata.namespace") },
    ],
    ports: [{ name: "webhook", containerPort: PORT }],
    volumeMounts: [{ name: "cert", mountPath: "/certs", readOnly: true }],
    readinessProbe: { httpGet: { path: "/readyz", port: 8081 }, periodSeconds: 1 },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, readOnlyRootFilesystem: true },
  };
  const pod = {
    serviceAccountName: GADGET_OPERATOR,
    terminationGracePeriodSeconds: 10,
    containers: [container],
    securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    volumes: [{ name: "cert", secret: { secretName: SECRET } }],
  };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: inHome(name),
    spec: {
      replicas,
      selector: { matchLabels: labels },
      ...(kind === "StatefulSet" ? { serviceName: name, podManagementPolicy: "Parallel" } : {}),
      template: { metadata: { labels, annotations }, spec: pod },
    },
  };
}

const CANARY_NAMESPACES = [{ namespaceSelector: { matchLabels: { lane: "canary" } } }];

/** The VirtualApp. By default, subset v2 serves namespaces with the label lane=canary. */
export function gadgetApp(match: readonly object[] = CANARY_NAMESPACES): object {
  return {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: inHome(GADGET_OPERATOR),
    spec: {
      selector: { matchLabels: { component: GADGET_OPERATOR } },
      configuration: {
        controller: { leaderElectionName: GADGET_OPERATOR },
        webhook: { certDir: "/certs", port: PORT },
      },
      route: { onLoss: "InPlace", subRules: [{ name: "canary", match }] },
      subsets: [{ name: "v2", labels: { version: "v2" }, routeRules: ["canary"] }],
    },
  };
}

function clientConfig(caPem: string, path: string): object {
  const service = { namespace: GADGET_NAMESPACE, name: SERVICE, path };
  return { caBundle: Buffer.from(caPem).toString("base64"), service };
}

function inHome(name: string) {
  return { name, namespace: GADGET_NAMESPACE };
}
