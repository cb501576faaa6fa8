// The init container of iptables mode, the only one with a capability. Its program (src/proxy/iptables)
// redirects connections to the proxy, and ends before any other container starts. Its image is always the
// manager's own: who allows this container root and these capabilities by its name, as policies do, allows no
// other program.
import { IPTABLES_CONTAINER } from "../facts/injected-pod.ts";
import { API_PORT, PROXY_UID, WEBHOOK_PORT } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container } from "./pod-manifest.ts";
import { clusterCaMount } from "./proxy-container.ts";

const PROGRAM = "dist/proxy/iptables/main.js";

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

/** The existing container keeps only defaults of the API server: all that it runs, as root, is the mesh's. */
export function refreshedIptables(existing: Container, ours: Container): Container {
  const defaulted = ["imagePullPolicy", "resources", "terminationMessagePath", "terminationMessagePolicy"];
  return { ...ours, ...Object.fromEntries(Object.entries(existing).filter(([field]) => defaulted.includes(field))) };
}

/** True for a container of that name from an earlier injection. */
export function isIptablesContainer(container: Container): boolean {
  return container.command?.[1] === PROGRAM;
}
