// The manager's settings. See src/base/settings.ts for how they are read.
import { z } from "zod";
import { ANNOTATION_PREFIX } from "../api/annotations.ts";
import { defaultAnnotationProblems } from "../api/pod-annotations.ts";
import { tryParseJson } from "../base/json.ts";
import { type CommandLine, listenAddress, listenAddresses, logLevel, milliseconds, requiredText } from "../base/settings.ts";
import { isReservedEnv } from "./injection/proxy-container.ts";
import { labelFamilies } from "./labels/label-families.ts";

/**
 * A replica believes for two thirds of a lease that it leads, and a proxy that does not know which leader it
 * followed waits for 15 s until older ones are over (src/proxy/session/stream-ledger.ts): with more than 22.5
 * s it might follow one of those.
 */
const MAX_LEASE_MS = 20_000;
/**
 * `TokenSuccessCacheTTL` of kube-apiserver. No flag changes it; only a kube-apiserver of tests has another
 * one (test/kube).
 */
const KUBERNETES_TOKEN_CACHE_MS = 10_000;
/** A certificate stays valid after its pod has ended, so whoever has copied the key can use it until then. */
const MAX_CERTIFICATE_LIFETIME_MS = 86_400_000;
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/;

/** Or "". */
function isOrigin(text: string): boolean {
  return text === "" || (/^https:\/\/[^/?#@]+\/?$/.test(text) && URL.canParse(text));
}

/** JSON of annotations of pods without their prefix, such as {"proxy-log-level":"debug"}. */
const proxyDefaults = z.string().transform((text, context) => {
  const given = text === "" ? {} : tryParseJson(Buffer.from(text));
  const read = z.record(z.string(), z.string()).safeParse(given);
  if (!read.success) context.addIssue({ code: "custom", message: 'is not a JSON object of texts, such as {"proxy-cpu":"100m"}' });
  const defaults = Object.fromEntries(Object.entries(read.data ?? {}).map(([name, value]) => [ANNOTATION_PREFIX + name, value]));
  for (const message of defaultAnnotationProblems(defaults, isReservedEnv)) context.addIssue({ code: "custom", message });
  return defaults;
});

const fields = z.object({
  kubeconfig: z.string(),
  namespace: requiredText,
  podName: requiredText,
  podIP: z.string(),
  grpcListen: listenAddress,
  healthListen: listenAddress,
  logLevel,
  restartSettleMs: milliseconds(0, 240_000),
  leaseDurationMs: milliseconds(1_000, MAX_LEASE_MS),
  apiServerTokenCacheMs: milliseconds(1_000, 600_000),
  labelsPerSecond: z.coerce.number().int().min(1).max(1_000),
  labelFamilies,
  identity: z.enum(["mesh", "none"]),
  serviceName: requiredText,
  clusterDomain: requiredText,
  serverNames: z.string().transform((text) => text.split(",").filter((name) => name !== "")),
  caSecret: z.string(),
  caSettleMs: milliseconds(0, 86_400_000),
  webhookListen: listenAddresses.refine((all) => all.length <= 1, "must be one host:port").transform(([first]) => first),
  webhookUrl: z.string().refine(isOrigin, "must be https://host:port"),
  webhookTimeoutSeconds: z.coerce.number().int().min(1).max(30),
  webhookClientCa: z.string(),
  warnOfMoves: z.enum(["true", "false"], { error: "must be true or false" }).transform((text) => text === "true"),
  proxyImage: z.string(),
  proxyPullPolicy: z.enum(["Always", "IfNotPresent", "Never"]),
  proxyPullSecrets: z.string().transform((text) => text.split(",").filter((name) => name !== "")),
  proxyDefaults,
  certificateLifetimeMs: milliseconds(10_000, MAX_CERTIFICATE_LIFETIME_MS),
});

const schema = fields.superRefine(
  ({ identity, grpcListen, webhookListen, webhookClientCa, proxyImage, apiServerTokenCacheMs }, context) => {
    const problem = (setting: string, message: string) => context.addIssue({ code: "custom", path: [setting], message });
    if (identity !== "mesh" && !LOOPBACK.test(grpcListen.host)) {
      problem("grpcListen", "must be a loopback address with --identity none: nobody proves who he is then");
    }
    if (identity === "mesh" && apiServerTokenCacheMs < KUBERNETES_TOKEN_CACHE_MS) {
      const message = `must be at least ${KUBERNETES_TOKEN_CACHE_MS} with --identity mesh: kube-apiserver accepts a valid token for that long`;
      problem("apiServerTokenCacheMs", message);
    }
    if (webhookListen === undefined && webhookClientCa !== "") problem("webhookClientCa", "needs --webhook-listen");
    if (webhookListen === undefined) return;
    if (identity !== "mesh") problem("webhookListen", "needs --identity mesh, for its certificate");
    if (proxyImage === "") problem("proxyImage", "is required with --webhook-listen: it is what is injected");
  },
);

/** What the manager runs with. */
export type ManagerConfig = z.output<typeof schema>;

export const managerCommandLine: CommandLine<typeof schema> = {
  title: "ctrlmesh-manager: decides which subset of an operator owns which namespaces",
  prefix: "CTRLMESH",
  schema,
  settings: {
    kubeconfig: { fallback: "", help: "kubeconfig file; empty: KUBECONFIG or in-cluster" },
    namespace: { fallback: "ctrlmesh-system", help: "namespace of the manager and of its lease" },
    podName: { fallback: "ctrlmesh-manager-0", help: "name of this replica" },
    podIP: { fallback: "127.0.0.1", help: "address of this replica, told to proxies" },
    grpcListen: { fallback: "127.0.0.1:5447", help: "host:port for the proxies" },
    healthListen: { fallback: "0.0.0.0:5448", help: "host:port for /healthz, /readyz and /metrics" },
    logLevel: { fallback: "info", help: "trace, debug, info, warn, error, fatal or silent" },
    restartSettleMs: {
      fallback: "20000",
      help: "how long routes stay as they are before pods that lost namespaces are restarted",
    },
    leaseDurationMs: { fallback: "15000", help: "how long a silent leader keeps its lease, at most 20000" },
    apiServerTokenCacheMs: {
      fallback: String(KUBERNETES_TOKEN_CACHE_MS),
      help: "how long kube-apiserver accepts a token that it has found valid; a pod removed by force counts for 2 s more",
    },
    labelsPerSecond: { fallback: "30", help: "how many objects a second are patched for labelObjects, at most 1000" },
    labelFamilies: {
      fallback: "",
      help: 'JSON of the families (namespace/name, or * for every family) whose labelObjects is honoured, by resource: {"configmaps":["foo-system/foo-operator"]}; empty: none',
    },
    identity: {
      fallback: "none",
      help: "mesh: TLS, and proxies prove which pod they are in; none: plain text, for the loopback only",
    },
    serviceName: { fallback: "ctrlmesh-manager", help: "name of the manager's Service" },
    clusterDomain: { fallback: "cluster.local", help: "DNS domain of the cluster, for names in certificates" },
    serverNames: { fallback: "", help: "names and addresses of the manager beside its Service's, with commas between" },
    caSecret: {
      fallback: "",
      help: "Secret with a CA of yours or cert-manager's (tls.crt, tls.key); empty: the mesh makes its own",
    },
    caSettleMs: { fallback: "600000", help: "how long a new CA is trusted before it signs" },
    webhookListen: { fallback: "", help: "host:port for the admission webhooks; empty: none" },
    webhookTimeoutSeconds: { fallback: "10", help: "how long the API server waits for the injection of a pod, from 1 to 30" },
    webhookUrl: { fallback: "", help: "https://host:port by which the API server reaches the webhooks; empty: by the Service" },
    webhookClientCa: {
      fallback: "",
      help: "file with the CAs (PEM) of the API servers' client certificates: only these may call the webhooks; empty: everybody may",
    },
    warnOfMoves: {
      fallback: "false",
      help: "true: who edits a VirtualApp or the labels of a namespace is warned of what moves; needs --webhook-listen",
    },
    proxyImage: { fallback: "", help: "image of the proxy that is injected" },
    proxyPullPolicy: { fallback: "IfNotPresent", help: "imagePullPolicy of the proxy: Always, IfNotPresent or Never" },
    proxyPullSecrets: {
      fallback: "",
      help: "Secrets in the pods' namespaces to pull the proxy's image with, with commas between",
    },
    proxyDefaults: {
      fallback: "",
      help: 'JSON of the annotations that pods without their own have, without their prefix: {"proxy-log-level":"debug"}',
    },
    certificateLifetimeMs: {
      fallback: `${MAX_CERTIFICATE_LIFETIME_MS}`,
      help: "lifetime of the proxies' certificates, at most 24 h, which they renew after a quarter of it",
    },
  },
};
