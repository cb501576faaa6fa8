// The proxy's settings.
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
  type Settings,
  schemaOf,
} from "../base/settings.ts";
import { SERVICE_ACCOUNT_DIR } from "../kube/client/connection.ts";
import { parseCidr } from "./egress/address-check.ts";

/** 1 for "true", 0 for "false". */
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

const oneAddress = listenAddresses.pipe(z.array(z.custom<ListenAddress>()).max(1, "takes one host:port"));

const settings = {
  apiServer: {
    type: z.string({ error: "is required outside of a cluster" }).transform((text, context) => {
      const url = URL.parse(text);
      if (url?.protocol === "https:" && url.pathname === "/" && url.search === "" && url.username === "") return url.origin;
      context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not https://host:port` });
      return z.NEVER;
    }),
    help: "URL of the API server (default: from KUBERNETES_SERVICE_HOST and _PORT)",
  },
  apiServerCa: { type: requiredText, fallback: `${SERVICE_ACCOUNT_DIR}/ca.crt`, help: "PEM file with the API server's CA" },
  manager: {
    type: requiredText.refine((text) => parseAddress(text) !== undefined, "must be host:port"),
    help: "host:port of ctrlmesh-manager",
  },
  identity: {
    type: z.enum(["mesh", "none"], { error: "must be mesh or none" }),
    fallback: "none",
    help: "mesh: TLS and a token to the manager, a certificate from it; none: plain text, a CA of the proxy's own",
  },
  managerCa: {
    type: z.string(),
    fallback: "",
    help: "PEM file with the mesh's CAs, which sign the manager's certificate and the proxy's",
  },
  token: { type: z.string(), fallback: "", help: "file with this pod's service account token for the manager" },
  podName: { type: requiredText, help: "name of this pod" },
  podNamespace: { type: requiredText, help: "namespace of this pod" },
  podUid: { type: z.string(), fallback: "", help: "uid of this pod" },
  dataDir: {
    type: requiredText,
    fallback: "/var/lib/ctrlmesh",
    help: "folder for the last snapshot and the proxy's certificate or CA; in memory, if no key may be on a disk",
  },
  listen: { type: listenAddress, fallback: "127.0.0.1:5443", help: "host:port for the operator; port 0 takes a free one" },
  alsoListen: { type: listenAddresses, fallback: "", help: "further host:port for the operator, divided by commas" },
  tlsCert: { type: z.string(), fallback: "", help: "PEM file to serve with (default: by --identity)" },
  tlsKey: { type: z.string(), fallback: "", help: "PEM file with the key of --tls-cert" },
  egressListen: {
    type: oneAddress.refine((all) => all.every(isLoopback), "must be a loopback address such as 127.0.0.1:15002"),
    fallback: "",
    help: "host:port on loopback of the forward proxy for other servers (HTTPS_PROXY); off without it",
  },
  egressPrivateAddresses: {
    type: egressPrivateAddresses,
    fallback: "",
    help: "private ranges, divided by commas, that the forward proxy may connect to: 10.0.0.0/8",
  },
  webhookListen: {
    type: oneAddress,
    fallback: "",
    help: "host:port for calls of the operator's webhooks; off without it",
  },
  webhookPort: {
    type: z
      .string()
      .regex(/^([1-9]\d{0,4})?$/, "is not a port")
      .transform(Number)
      .refine((port) => port <= 65_535, "is not a port"),
    fallback: "",
    help: "port of the operator's own webhook server in this pod",
  },
  webhookCertDir: { type: z.string(), fallback: "", help: "folder with tls.crt and tls.key of the operator's webhook server" },
  healthListen: {
    type: listenAddress,
    fallback: "0.0.0.0:5441",
    help: "host:port for /healthz, /readyz, /metrics, and, from inside the pod, /debug",
  },
  logLevel: { type: logLevel, fallback: "info", help: "trace, debug, info, warn, error, fatal or silent" },
  accessLog: { type: accessLog, fallback: "false", help: "true logs every request, sample=0.01 one in a hundred" },
  warmUpMs: {
    type: milliseconds(0, 60_000),
    fallback: "1000",
    help: "longest time in milliseconds in which a new proxy sends requests to itself, to speed up the operator's first ones; 0: none",
  },
  drainMs: { type: milliseconds(0, 3_600_000), fallback: "8000", help: "milliseconds for running requests at shutdown" },
} satisfies Settings;

const schema = schemaOf(settings)
  .refine(({ tlsCert, tlsKey }) => (tlsCert === "") === (tlsKey === ""), {
    path: ["tlsCert"],
    message: "must be set together with --tls-key",
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
    webhooks: listen && { listen, port, certDir },
  }))
  .transform(({ tlsCert, tlsKey, identity, managerCa, token, egressListen, ...config }) => ({
    ...config,
    egressListen: egressListen[0],
    /** Undefined: plain text to the manager, without proof of who the proxy is. */
    identity: identity === "none" ? undefined : { managerCa, token },
    /** Undefined: a certificate from the manager, or, without identity, by the proxy's own CA. */
    tls: tlsCert === "" ? undefined : { cert: tlsCert, key: tlsKey },
  }));

export type ProxyConfig = z.output<typeof schema>;

export const proxyCommandLine: CommandLine<typeof schema> = {
  title: "ctrlmesh-proxy: stands between an operator and the API server",
  prefix: "CTRLMESH",
  schema,
  derive: (env) => ({ apiServer: inClusterUrl(env) }),
  settings,
};

function inClusterUrl(env: Env): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  if (host === undefined || host === "") return undefined;
  return `https://${host.includes(":") ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT || "443"}`;
}
