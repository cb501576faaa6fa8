// The proxy's settings. See src/base/settings.ts for how they are read.
import { z } from "zod";
import type { Env } from "../base/env.ts";
import type { ListenAddress } from "../base/listener.ts";
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
import { parseCidr } from "./egress/address-check.ts";

// As a share of the requests: 1 for "true", 0 for "false".
const accessLog = z.string().transform((text, context) => {
  if (text === "true" || text === "false") return text === "true" ? 1 : 0;
  const [, share] = /^(?:sample=)?(\d*\.?\d+)$/.exec(text) ?? [];
  if (share !== undefined && Number(share) <= 1) return Number(share);
  const allowed = "true, false, or a share of the requests from 0 to 1, as in sample=0.01";
  context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not ${allowed}` });
  return z.NEVER;
});

const egressPrivateAddresses = z.string().transform((text, context) => {
  const texts = text === "" ? [] : text.split(",").map((each) => each.trim());
  return texts.flatMap((each) => {
    const range = parseCidr(each);
    if (range !== undefined) return [range];
    context.addIssue({ code: "custom", message: `${JSON.stringify(each)} is not a range of addresses such as 10.0.0.0/8` });
    return [];
  });
});

/** On any other address the forward proxy would be an open relay. */
function isLoopback({ host }: ListenAddress): boolean {
  return host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

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
    egressListen: listenAddresses.pipe(
      z
        .array(z.custom<ListenAddress>())
        .max(1, "takes one host:port")
        .refine((all) => all.every(isLoopback), "must be a loopback address such as 127.0.0.1:15002"),
    ),
    egressPrivateAddresses,
    webhookListen: listenAddresses.pipe(z.array(z.custom<ListenAddress>()).max(1, "takes one host:port")),
    webhookPort: z
      .string()
      .regex(/^([1-9]\d{0,4})?$/, "is not a port")
      .transform(Number)
      .refine((port) => port <= 65_535, "is not a port"),
    webhookCertDir: z.string(),
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
  .superRefine(({ webhookListen: [listen], webhookPort, webhookCertDir }, context) => {
    const missing = {
      webhookListen: listen === undefined,
      webhookPort: webhookPort === 0,
      webhookCertDir: webhookCertDir === "",
    };
    if (new Set(Object.values(missing)).size === 1) return;
    for (const [name, isMissing] of Object.entries(missing)) {
      const message = "is required: --webhook-listen, --webhook-port and --webhook-cert-dir belong together";
      if (isMissing) context.addIssue({ code: "custom", path: [name], message });
    }
  })
  .transform(({ webhookListen: [listen], webhookPort: port, webhookCertDir: certDir, ...config }) => ({
    ...config,
    /** Undefined: no listener for the operator's webhooks. */
    webhooks: listen && { listen, port, certDir },
  }))
  .transform(({ tlsCert, tlsKey, identity, managerCa, token, egressListen, ...config }) => ({
    ...config,
    /** Undefined: no forward proxy. */
    egressListen: egressListen[0],
    /** Undefined: plain text to the manager, and nothing that says who we are. */
    identity: identity === "none" ? undefined : { managerCa, token },
    /** Undefined: serve with a certificate from the manager, or without identity with one of our own CA. */
    tls: tlsCert === "" ? undefined : { cert: tlsCert, key: tlsKey },
  }));

/** What the proxy runs with. */
export type ProxyConfig = z.output<typeof schema>;

export const proxyCommandLine: CommandLine<typeof schema> = {
  title: "ctrlmesh-proxy: stands between an operator and the API server",
  prefix: "CTRLMESH",
  schema,
  derive: (env) => ({ apiServer: inClusterUrl(env) }),
  settings: {
    apiServer: { help: "URL of the API server (default: from KUBERNETES_SERVICE_HOST and _PORT)" },
    apiServerCa: { fallback: `${SERVICE_ACCOUNT_DIR}/ca.crt`, help: "PEM file with the API server's CA" },
    manager: { help: "host:port of ctrlmesh-manager" },
    identity: {
      fallback: "none",
      help: "mesh: TLS and a token to the manager, a certificate from it; none: plain text, our own CA",
    },
    managerCa: { fallback: "", help: "PEM file with the mesh's CAs, which sign the manager's certificate and ours" },
    token: { fallback: "", help: "file with this pod's service account token for the manager" },
    podName: { help: "name of this pod" },
    podNamespace: { help: "namespace of this pod" },
    podUid: { fallback: "", help: "uid of this pod" },
    dataDir: {
      fallback: "/var/lib/ctrlmesh",
      help: "folder for the last snapshot and our certificate or CA; in memory, if no key may be on a disk",
    },
    listen: { fallback: "127.0.0.1:5443", help: "host:port for the operator; port 0 takes a free one" },
    alsoListen: { fallback: "", help: "further host:port for the operator, divided by commas" },
    tlsCert: { fallback: "", help: "PEM file to serve with (default: by --identity)" },
    tlsKey: { fallback: "", help: "PEM file with the key of --tls-cert" },
    egressListen: {
      fallback: "",
      help: "host:port on loopback of the forward proxy for other servers (HTTPS_PROXY); off without it",
    },
    egressPrivateAddresses: {
      fallback: "",
      help: "private ranges, divided by commas, that the forward proxy may connect to: 10.0.0.0/8",
    },
    webhookListen: { fallback: "", help: "host:port for calls of the operator's webhooks; off without it" },
    webhookPort: { fallback: "", help: "port of the operator's own webhook server in this pod" },
    webhookCertDir: { fallback: "", help: "folder with tls.crt and tls.key of the operator's webhook server" },
    healthListen: {
      fallback: "0.0.0.0:5441",
      help: "host:port for /healthz, /readyz, /metrics, and, from inside the pod, /debug",
    },
    logLevel: { fallback: "info", help: "trace, debug, info, warn, error, fatal or silent" },
    accessLog: { fallback: "false", help: "true logs every request, sample=0.01 one in a hundred" },
    drainMs: { fallback: "8000", help: "milliseconds for running requests at shutdown" },
  },
};

function inClusterUrl(env: Env): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  if (host === undefined || host === "") return undefined;
  return `https://${host.includes(":") ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT || "443"}`;
}
