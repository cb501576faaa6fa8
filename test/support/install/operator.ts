// The objects that a user of the mesh applies: a namespace with the strictest pod security, an operator as its authors ship it,
// and a VirtualApp. The operator's own objects do not mention a mesh, unless a test requests an annotation.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { nodeImage, type TestImage } from "../../node/test-image.ts";
import { demoVirtualApp } from "../demo-app.ts";
import { goProgram } from "../go-build.ts";

export const OPERATOR_IMAGE = "test/go-foo:1";
/** Namespace of the operator, and name of its VirtualApp, its lock and its service account. */
export const OPERATOR_NAMESPACE = "foo-system";
export const OPERATOR = "foo-operator";

const PROGRAMS = fileURLToPath(new URL("programs", import.meta.url));
const RBAC = new URL("../../operators/go-foo/rbac.yaml", import.meta.url);
const CRD = new URL("../../operators/go-foo/crd.yaml", import.meta.url);

/**
 * The uid of nobody. This machine, whose files replace the base image, has that user, and Go looks up its user when it reads a
 * kubeconfig.
 */
export async function operatorImage(): Promise<TestImage> {
  return { entrypoint: ["/go-foo"], user: "65534:65534", binds: { "/go-foo": await goProgram("test/operators/go-foo") } };
}

/** The operator's CRD, its rights, and a namespace where only restricted pods may run, or as `security` says. */
export function operatorHome(namespace = OPERATOR_NAMESPACE, security: "restricted" | "privileged" = "restricted"): object[] {
  return [
    parse(readFileSync(CRD, "utf8")) as object,
    parse(readFileSync(RBAC, "utf8")) as object,
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": security } },
    },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: OPERATOR, namespace } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: `foo-operator-${namespace}` },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "foo-operator" },
      subjects: [{ kind: "ServiceAccount", name: OPERATOR, namespace }],
    },
  ];
}

export interface WorkloadOptions {
  readonly name: string;
  readonly replicas: number;
  /** Value of the label `version`; "v2" is the canary subset of `operatorApp`. */
  readonly version: string;
  /** Default Deployment. */
  readonly kind?: "Deployment" | "StatefulSet";
  readonly namespace?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

/** The operator's workload as its authors ship it. */
export function operatorWorkload(options: WorkloadOptions): object {
  const { name, replicas, version, kind = "Deployment", namespace = OPERATOR_NAMESPACE, annotations, args = [] } = options;
  const labels = { component: OPERATOR, version };
  const field = (path: string) => ({ valueFrom: { fieldRef: { fieldPath: path } } });
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      ...(kind === "StatefulSet" ? { serviceName: name, podManagementPolicy: "Parallel" } : {}),
      template: {
        metadata: { labels, ...(annotations === undefined ? {} : { annotations }) },
        spec: {
          serviceAccountName: OPERATOR,
          terminationGracePeriodSeconds: 10,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
          containers: [
            {
              name: "operator",
              image: OPERATOR_IMAGE,
              args: [
                "--health-probe-bind-address=:8081",
                "--lease-duration=6s",
                "--renew-deadline=4s",
                "--retry-period=1s",
                ...args,
              ],
              env: [
                { name: "POD_NAME", ...field("metadata.name") },
                { name: "POD_NAMESPACE", ...field("metadata.namespace") },
              ],
              readinessProbe: { httpGet: { path: "/readyz", port: 8081 }, periodSeconds: 1 },
              securityContext: {
                allowPrivilegeEscalation: false,
                capabilities: { drop: ["ALL"] },
                readOnlyRootFilesystem: true,
              },
            },
          ],
        },
      },
    },
  };
}

/** Image of the client that calls the API server again and again; see programs/caller.ts. */
export const CALLER_IMAGE = { "test/caller:1": nodeImage(["/app/caller.ts"], { "/app": PROGRAMS }) };

/** That client in the operator's place: the Deployment `caller` of one pod in the default subset, which has the label is=caller. */
export function callerWorkload(): object {
  const workload = operatorWorkload({ name: "caller", replicas: 1, version: "v1" }) as {
    spec: { selector: object; template: { metadata: object; spec: { containers: object[] } } };
  };
  const { template } = workload.spec;
  const [container] = template.spec.containers;
  template.spec.containers = [{ ...container, image: "test/caller:1", args: [], readinessProbe: undefined }];
  template.metadata = { labels: { component: OPERATOR, version: "v1", is: "caller" } };
  workload.spec.selector = { matchLabels: { is: "caller" } };
  return workload;
}

/** The client's log so far, a line each second. */
export function callerLines(log: string): { readonly at: number; readonly ok: number; readonly failed: readonly string[] }[] {
  return log
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
}

/** The VirtualApp: subset v2 serves namespaces that are labelled ns-type=canary-1 or whose name begins with "canary". */
export function operatorApp(namespace = OPERATOR_NAMESPACE, annotations: Readonly<Record<string, string>> = {}): object {
  const app = parse(demoVirtualApp({ namespace, name: OPERATOR, onLoss: "Restart" })) as { metadata: object };
  return { ...app, metadata: { ...app.metadata, annotations } };
}
