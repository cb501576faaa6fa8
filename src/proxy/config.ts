// The proxy's settings. See src/base/settings.ts for how they are read.
import { z } from "zod";
import type { Env } from "../base/env.ts";
import {
  type CommandLine,
  listenAddress,
  listenAddresses,
  logLevel,
  milliseconds,
  parseAddress,
  requiredText,
} from "../base/settings.ts";
import { SERVICE_ACCOUNT_DIR } from "../kube/client/connection.ts";

// As a share of the requests: 1 for "true", 0 for "false".
const accessLog = z.string().transform((text, context) => {
  if (text === "true" || text === "false") return text === "true" ? 1 : 0;
  const [, share] = /^(?:sample=)?(\d*\.?\d+)$/.exec(text) ?? [];
  if (share !== undefined && Number(share) <= 1) return Number(share);
  const allowed = "true, false, or a share of the requests from 0 to 1, as in sample=0.01";
  context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not ${allowed}` });
  return z.NEVER;
});

const schema = z
  .object({
    apiServer: z.string({ error: "is required outside of a cluster" }).transform((text, context) => {
      const url = URL.parse(text);
      if (url?.protocol === "https:" && url.pathname === "/" && url.search === "" && url.username === "") return url.origin;
      context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not https://host:port` });
      return z.NEVER;
    }),
    apiServerCa: requiredText,
    manager: requiredText.refine((text) => parseAddress(text) !== undefined, "must be host:port"),
    identity: z.enum(["mesh", "none"], { error: "must be mesh or none" }),
    managerCa: z.string(),
    token: z.string(),
    podName: requiredText,
    podNamespace: requiredText,
    podUid: z.string(),
    dataDir: requiredText,
    listen: listenAddress,
    alsoListen: listenAddresses,
    tlsCert: z.string(),
    tlsKey: z.string(),
    healthListen: listenAddress,
    logLevel,
    accessLog,
    drainMs: milliseconds(0, 3_600_000),
  })
  .refine(({ tlsCert, tlsKey }) => (tlsCert === "") === (tlsKey === ""), {
    path: ["tlsCert"],
    message: "needs --tls-key, and that needs it",
  })
  .superRefine(({ identity, managerCa, token }, context) => {
    for (const [name, value] of Object.entries({ managerCa, token })) {
      const message = identity === "mesh" ? "is required with --identity=mesh" : "needs --identity=mesh";
      if ((value === "") === (identity === "mesh")) context.addIssue({ code: "custom", path: [name], message });
    }
  })
  .transform(({ tlsCert, tlsKey, identity, managerCa, token, ...config }) => ({
    ...config,
    /** Undefined: plain text to the manager, and nothing that says who we are. */
    identity: identity === "none" ? undefined : { managerCa, token },
    /** Undefined: serve with a certificate from the manager, or without identity with one of our own CA. */
    tls: tlsCert === "" ? undefined : { cert: tlsCert, key: tlsKey },
  }));

/** What the proxy runs with. */
export type ProxyConfig = z.output<typeof schema>;

export const proxyCommandLine: CommandLine<typeof schema> = {
  title: "ctrlmesh-proxy: stands between an operator and the API server",
  schema,
  derive: (env) => ({ apiServer: inClusterUrl(env) }),
  settings: {
    apiServer: {
      flag: "api-server",
      env: "CTRLMESH_API_SERVER",
      help: "URL of the API server (default: from KUBERNETES_SERVICE_HOST and _PORT)",
    },
    apiServerCa: {
      flag: "api-server-ca",
      env: "CTRLMESH_API_SERVER_CA",
      fallback: `${SERVICE_ACCOUNT_DIR}/ca.crt`,
      help: "PEM file with the API server's CA",
    },
    manager: { flag: "manager", env: "CTRLMESH_MANAGER", help: "host:port of ctrlmesh-manager" },
    identity: {
      flag: "identity",
      env: "CTRLMESH_IDENTITY",
      fallback: "none",
      help: "mesh: TLS and a token to the manager, a certificate from it; none: plain text, our own CA",
    },
    managerCa: {
      flag: "manager-ca",
      env: "CTRLMESH_MANAGER_CA",
      fallback: "",
      help: "PEM file with the mesh's CAs, which sign the manager's certificate and ours",
    },
    token: {
      flag: "token",
      env: "CTRLMESH_TOKEN",
      fallback: "",
      help: "file with this pod's service account token for the manager",
    },
    podName: { flag: "pod-name", env: "CTRLMESH_POD_NAME", help: "name of this pod" },
    podNamespace: { flag: "pod-namespace", env: "CTRLMESH_POD_NAMESPACE", help: "namespace of this pod" },
    podUid: { flag: "pod-uid", env: "CTRLMESH_POD_UID", fallback: "", help: "uid of this pod" },
    dataDir: {
      flag: "data-dir",
      env: "CTRLMESH_DATA_DIR",
      fallback: "/var/lib/ctrlmesh",
      help: "folder for the last snapshot and our certificate or CA; in memory, if no key may be on a disk",
    },
    listen: {
      flag: "listen",
      env: "CTRLMESH_LISTEN",
      fallback: "127.0.0.1:5443",
      help: "host:port for the operator; port 0 takes a free one",
    },
    alsoListen: {
      flag: "also-listen",
      env: "CTRLMESH_ALSO_LISTEN",
      fallback: "",
      help: "further host:port for the operator, divided by commas",
    },
    tlsCert: {
      flag: "tls-cert",
      env: "CTRLMESH_TLS_CERT",
      fallback: "",
      help: "PEM file to serve with (default: by --identity)",
    },
    tlsKey: { flag: "tls-key", env: "CTRLMESH_TLS_KEY", fallback: "", help: "PEM file with the key of --tls-cert" },
    healthListen: {
      flag: "health-listen",
      env: "CTRLMESH_HEALTH_LISTEN",
      fallback: "0.0.0.0:5441",
      help: "host:port for /healthz, /readyz, /metrics, and, from inside the pod, /debug",
    },
    logLevel: {
      flag: "log-level",
      env: "CTRLMESH_LOG_LEVEL",
      fallback: "info",
      help: "trace, debug, info, warn, error, fatal or silent",
    },
    accessLog: {
      flag: "access-log",
      env: "CTRLMESH_ACCESS_LOG",
      fallback: "false",
      help: "true logs every request, sample=0.01 one in a hundred",
    },
    drainMs: {
      flag: "drain-ms",
      env: "CTRLMESH_DRAIN_MS",
      fallback: "8000",
      help: "milliseconds for running requests at shutdown",
    },
  },
};

function inClusterUrl(env: Env): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  if (host === undefined || host === "") return undefined;
  return `https://${host.includes(":") ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT || "443"}`;
}
