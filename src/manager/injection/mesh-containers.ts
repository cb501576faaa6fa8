// The containers of the mesh: the proxy's, as a native sidecar or as an ordinary container, and the init
// container of iptables mode. Invariants: the proxy conforms to the Pod Security level "restricted", and has
// no token for the API server, because operators send their own.
import {
  API_PORT,
  EGRESS_LISTEN_ENV,
  HEALTH_PORT,
  IPTABLES_CONTAINER,
  PROXY_CONTAINER,
  WEBHOOK_LISTEN_ENV,
} from "../../api/injected-pod.ts";
import {
  ALIAS_PORT,
  CLUSTER_CA_VOLUME,
  DATA_DIR,
  DATA_VOLUME,
  EGRESS_PORT,
  IDENTITY_DIR,
  IDENTITY_VOLUME,
  PROXY_UID,
  SERVICE_ACCOUNT_DIR,
  WEBHOOK_CERT_DIR_ENV,
  WEBHOOK_PORT,
  WEBHOOK_PORT_ENV,
} from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container, EnvVar, Lifecycle, VolumeMount } from "./pod-manifest.ts";
import type { Intercepted } from "./webhook-port.ts";

/**
 * The proxy answers the start-up probe as soon as it has started, or with a failure after this time. So the kubelet
 * knows of a start at once, and no pod that starts in time has a Warning Event of a failed probe.
 */
const START_SECONDS = 20;
// In the first second the process does not listen yet.
const STARTUP_PROBE_TIMES = {
  initialDelaySeconds: 1,
  periodSeconds: 1,
  timeoutSeconds: START_SECONDS + 5,
  failureThreshold: 3600,
};

/** The duration of the proxy's drain, with a margin (src/proxy/config.ts, drainMs). */
const DRAIN_SECONDS = 10;

export function proxyContainer(plan: Plan): Container {
  const [started, ready, healthy] = [`/startupz?seconds=${START_SECONDS}`, "/readyz", "/healthz"].map((path) => ({
    httpGet: { path, port: HEALTH_PORT, scheme: "HTTP" },
  }));
  return {
    name: PROXY_CONTAINER,
    image: plan.image,
    imagePullPolicy: plan.settings.imagePullPolicy ?? "IfNotPresent",
    ...plan.annotated.fields,
    ...(plan.native ? { restartPolicy: "Always" } : { lifecycle: plainLifecycle(plan) }),
    env: proxyEnv(plan),
    ports: [{ name: "ctrlmesh-health", containerPort: HEALTH_PORT, protocol: "TCP" }],
    resources: plan.resources,
    // The operator waits until the proxy has a snapshot and a certificate, which a restart would not bring
    // earlier. It does not wait for the certificate of its own webhooks, which it may write itself.
    ...(plan.native ? { startupProbe: { ...started, ...STARTUP_PROBE_TIMES } } : {}),
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
    volumeMounts: proxyMounts(plan),
  };
}

export function isProxyContainer(container: Container): boolean {
  return container.volumeMounts?.some(({ name, mountPath }) => name === IDENTITY_VOLUME && mountPath === IDENTITY_DIR) ?? false;
}

/** The proxy's settings that users may choose (src/proxy/config.ts). Only the mesh sets all others. */
const FREE_SETTINGS: readonly string[] = ["CTRLMESH_ACCESS_LOG", "CTRLMESH_DRAIN_MS"];

/** Through these variables the proxy finds the API server, and Node.js and OpenSSL find CAs and code. */
const RUNTIME_ENV = /^(?:KUBERNETES_|NODE_|LD_|SSL_CERT_|OPENSSL_)/;

export function isMeshSetting(variable: string): boolean {
  return variable.startsWith("CTRLMESH_") && !FREE_SETTINGS.includes(variable);
}

export function isReservedEnv(variable: string): boolean {
  return isMeshSetting(variable) || RUNTIME_ENV.test(variable);
}

function proxyEnv(plan: Plan): EnvVar[] {
  const { settings } = plan;
  const hasIPv6 = settings.kubernetesService.ips.some((ip) => ip.includes(":"));
  // A pod of an IPv6 cluster may have no IPv4 address. Node listens on both families for "::".
  const anyAddress = hasIPv6 ? "[::]" : "0.0.0.0";
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
    ...(plan.egress ? [{ name: EGRESS_LISTEN_ENV, value: `127.0.0.1:${EGRESS_PORT}` }] : []),
    ...(plan.webhook?.kind === "intercepted" ? webhookEnv(plan.webhook, anyAddress) : []),
    { name: "CTRLMESH_HEALTH_LISTEN", value: `${anyAddress}:${HEALTH_PORT}` },
    ...plan.annotated.env,
  ];
}

function webhookEnv({ port, certDir }: Intercepted, anyAddress: string): EnvVar[] {
  return [
    { name: WEBHOOK_LISTEN_ENV, value: `${anyAddress}:${WEBHOOK_PORT}` },
    { name: WEBHOOK_PORT_ENV, value: `${port}` },
    { name: WEBHOOK_CERT_DIR_ENV, value: certDir },
  ];
}

function fromField(name: string, fieldPath: string): EnvVar {
  return { name, valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } };
}

function proxyMounts({ webhook }: Plan): VolumeMount[] {
  return [
    { name: IDENTITY_VOLUME, mountPath: IDENTITY_DIR, readOnly: true },
    { name: DATA_VOLUME, mountPath: DATA_DIR },
    clusterCaMount(),
    ...(webhook?.kind === "intercepted" ? [webhook.mount] : []),
  ];
}

/** The API server's CA at the usual path, where admission therefore mounts no token. */
function clusterCaMount(): VolumeMount {
  return { name: CLUSTER_CA_VOLUME, mountPath: SERVICE_ACCOUNT_DIR, readOnly: true };
}

// The kubelet starts the next ordinary container after the `postStart` hook of this one, and stops all
// containers at once. The `preStop` hook lets the operator release its lease through the proxy first.
function plainLifecycle({ graceSeconds, hostAliases, egress }: Plan): Lifecycle {
  const hook = (...args: readonly string[]) => ({ exec: { command: ["node", "dist/proxy/hooks/main.js", ...args] } });
  const ports = [API_PORT, ...(hostAliases ? [ALIAS_PORT] : []), ...(egress ? [EGRESS_PORT] : [])].join(",");
  const atMost = Math.max(0, graceSeconds - DRAIN_SECONDS);
  return {
    postStart: hook("wait-ready", `--port=${HEALTH_PORT}`),
    preStop: hook("wait-idle", `--ports=${ports}`, `--at-most=${atMost}`),
  };
}

const PROGRAM = "dist/proxy/iptables/main.js";

/**
 * The only container with a capability. Its program (src/proxy/iptables) redirects connections to the proxy,
 * and ends before any other container starts. The image cannot be chosen by annotation, because policies
 * allow root and these capabilities by the container's name.
 */
export function iptablesContainer({ settings, webhook }: Plan): Container {
  const { ips, port } = settings.kubernetesService;
  const redirects = ips.map((ip) => `--redirect=${ip.includes(":") ? `[${ip}]` : ip}:${port}`);
  const inbound = webhook?.kind === "intercepted" ? [`--inbound=${webhook.port}:${WEBHOOK_PORT}`] : [];
  return {
    name: IPTABLES_CONTAINER,
    image: settings.proxyImage,
    imagePullPolicy: settings.imagePullPolicy ?? "IfNotPresent",
    command: ["node", PROGRAM, ...redirects, `--to=${API_PORT}`, `--except-uid=${PROXY_UID}`, ...inbound],
    resources: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "128Mi" } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { add: ["NET_ADMIN", "NET_RAW"], drop: ["ALL"] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsGroup: 0,
      runAsNonRoot: false,
      runAsUser: 0,
      seccompProfile: { type: "RuntimeDefault" },
    },
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [clusterCaMount()],
  };
}

/**
 * The existing container keeps only defaults of the API server: it runs as root, so the mesh sets the rest.
 */
export function refreshedIptables(existing: Container, ours: Container): Container {
  const defaulted = ["imagePullPolicy", "resources", "terminationMessagePath", "terminationMessagePolicy"];
  return { ...ours, ...Object.fromEntries(Object.entries(existing).filter(([field]) => defaulted.includes(field))) };
}

export const isIptablesContainer = (container: Container) => container.command?.[1] === PROGRAM;
