// The proxy's container, as a native sidecar or as a plain container. Invariant: it fits the Pod Security level "restricted", holds no
// token for the API server (operators bring their own), and nothing of it depends on what another webhook may change.
import { PROXY_CONTAINER } from "../facts/injected-pod.ts";
import {
  ALIAS_PORT,
  API_PORT,
  CLUSTER_CA_VOLUME,
  DATA_DIR,
  DATA_VOLUME,
  HEALTH_PORT,
  IDENTITY_DIR,
  IDENTITY_VOLUME,
  PROXY_UID,
  SERVICE_ACCOUNT_DIR,
} from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container, EnvVar, VolumeMount } from "./pod-manifest.ts";

/** What the drain of the proxy takes, with its margin (src/proxy/config.ts, drainMs). */
const DRAIN_SECONDS = 10;

/** The container that the plan asks for. */
export function proxyContainer(plan: Plan): Container {
  const ready = { httpGet: { path: "/readyz", port: HEALTH_PORT, scheme: "HTTP" } };
  const healthy = { httpGet: { path: "/healthz", port: HEALTH_PORT, scheme: "HTTP" } };
  return {
    name: PROXY_CONTAINER,
    image: plan.image,
    imagePullPolicy: plan.settings.imagePullPolicy ?? "IfNotPresent",
    ...(plan.native ? { restartPolicy: "Always" } : { lifecycle: plainLifecycle(plan) }),
    env: proxyEnv(plan),
    ports: [{ name: "ctrlmesh-health", containerPort: HEALTH_PORT, protocol: "TCP" }],
    resources: plan.resources,
    // The operator waits for it: until the manager has given a snapshot and a certificate. A restart would not bring them sooner.
    ...(plan.native ? { startupProbe: { ...ready, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 3600 } } : {}),
    readinessProbe: { ...ready, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 3 },
    livenessProbe: { ...healthy, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsGroup: PROXY_UID,
      runAsNonRoot: true,
      runAsUser: PROXY_UID,
      seccompProfile: { type: "RuntimeDefault" },
    },
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: proxyMounts(),
  };
}

/** True for a container of that name that an earlier call has made: it holds what only the mesh gives. */
export function isProxyContainer(container: Container): boolean {
  return container.volumeMounts?.some(({ name, mountPath }) => name === IDENTITY_VOLUME && mountPath === IDENTITY_DIR) ?? false;
}

/** The proxy's own settings that are the user's to choose (src/proxy/config.ts); all others say where and who it is. */
const FREE_SETTINGS: readonly string[] = ["CTRLMESH_ACCESS_LOG", "CTRLMESH_DRAIN_MS"];

/** By which the proxy finds the API server, and Node.js and OpenSSL whom to trust and what to load. */
const RUNTIME_ENV = /^(?:KUBERNETES_|NODE_|LD_|SSL_CERT_|OPENSSL_)/;

/** True for a setting of the proxy that nobody but the mesh may give it. */
export function isMeshSetting(variable: string): boolean {
  return variable.startsWith("CTRLMESH_") && !FREE_SETTINGS.includes(variable);
}

/** True for a variable of the proxy that no annotation may set. */
export function isReservedEnv(variable: string): boolean {
  return isMeshSetting(variable) || RUNTIME_ENV.test(variable);
}

function proxyEnv(plan: Plan): EnvVar[] {
  const { settings } = plan;
  const hasIPv6 = settings.kubernetesService.ips.some((ip) => ip.includes(":"));
  const also = [
    ...(hasIPv6 && plan.mode === "iptables" ? [`[::1]:${API_PORT}`] : []), // ip6tables redirects there
    ...(plan.hostAliases ? [`127.0.0.1:${ALIAS_PORT}`] : []),
  ];
  return [
    { name: "CTRLMESH_IDENTITY", value: "mesh" },
    { name: "CTRLMESH_MANAGER", value: settings.managerAddress },
    { name: "CTRLMESH_MANAGER_CA", value: `${IDENTITY_DIR}/mesh.crt` },
    { name: "CTRLMESH_TOKEN", value: `${IDENTITY_DIR}/token` },
    fromField("CTRLMESH_POD_NAME", "metadata.name"),
    fromField("CTRLMESH_POD_NAMESPACE", "metadata.namespace"),
    fromField("CTRLMESH_POD_UID", "metadata.uid"),
    { name: "CTRLMESH_DATA_DIR", value: DATA_DIR },
    { name: "CTRLMESH_LISTEN", value: `127.0.0.1:${API_PORT}` },
    ...(also.length === 0 ? [] : [{ name: "CTRLMESH_ALSO_LISTEN", value: also.join(",") }]),
    // A pod of an IPv6 cluster may have no IPv4 address; Node's "::" takes both families.
    { name: "CTRLMESH_HEALTH_LISTEN", value: `${hasIPv6 ? "[::]" : "0.0.0.0"}:${HEALTH_PORT}` },
    { name: "CTRLMESH_LOG_LEVEL", value: plan.logLevel },
    ...plan.env,
  ];
}

function fromField(name: string, fieldPath: string): EnvVar {
  return { name, valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } };
}

function proxyMounts(): VolumeMount[] {
  return [
    { name: IDENTITY_VOLUME, mountPath: IDENTITY_DIR, readOnly: true },
    { name: DATA_VOLUME, mountPath: DATA_DIR },
    clusterCaMount(),
  ];
}

/** The API server's CA at the usual place. With something mounted there, the service-account admission adds no token. */
export function clusterCaMount(): VolumeMount {
  return { name: CLUSTER_CA_VOLUME, mountPath: SERVICE_ACCOUNT_DIR, readOnly: true };
}

// The kubelet starts plain containers one after the other, and waits for the hook of one before it starts the next. At the end it asks
// all of them to stop at once: the hook gives the operator time to give its lease back through the proxy.
function plainLifecycle({ graceSeconds, hostAliases }: Plan): object {
  const hook = (...args: readonly string[]) => ({ exec: { command: ["node", "dist/proxy/hooks/main.js", ...args] } });
  const ports = [API_PORT, ...(hostAliases ? [ALIAS_PORT] : [])].join(",");
  const atMost = Math.max(0, graceSeconds - DRAIN_SECONDS);
  return {
    postStart: hook("wait-ready", `--port=${HEALTH_PORT}`),
    preStop: hook("wait-idle", `--ports=${ports}`, `--at-most=${atMost}`),
  };
}
