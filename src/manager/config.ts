// The manager's settings. See src/base/settings.ts for how they are read.
import { z } from "zod";
import { ANNOTATION_PREFIX } from "../api/annotations.ts";
import { defaultAnnotationProblems } from "../api/pod-annotations.ts";
import { tryParseJson } from "../base/json.ts";
import {
  type CommandLine,
  listenAddress,
  listenAddresses,
  logLevel,
  milliseconds,
  requiredText,
  type Settings,
  schemaOf,
} from "../base/settings.ts";
import { isReservedEnv } from "./injection/mesh-containers.ts";
import { labelFamilies } from "./labels/label-families.ts";

/**
 * A replica believes for two thirds of a lease that it leads. A proxy that does not know its last leader
 * waits 15 s until the older leaders have ended (src/proxy/session/stream-ledger.ts), so a lease must be
 * shorter than 22.5 s.
 */
const MAX_LEASE_MS = 20_000;
/**
 * `TokenSuccessCacheTTL` of kube-apiserver. No flag changes it. Only the API server of tests differs
 * (test/kube).
 */
const KUBERNETES_TOKEN_CACHE_MS = 10_000;
/** A certificate stays valid after its pod has ended, so whoever has copied the key can use it until then. */
const MAX_CERTIFICATE_LIFETIME_MS = 86_400_000;
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/;

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

const nameList = z.string().transform((text) => text.split(",").filter((name) => name !== ""));

const settings = {
  kubeconfig: { type: z.string(), fallback: "", help: "kubeconfig file; empty: KUBECONFIG or in-cluster" },
  namespace: { type: requiredText, fallback: "ctrlmesh-system", help: "namespace of the manager and of its lease" },
  podName: { type: requiredText, fallback: "ctrlmesh-manager-0", help: "name of this replica" },
  podIP: { type: z.string(), fallback: "127.0.0.1", help: "address of this replica, which it sends to proxies" },
  grpcListen: { type: listenAddress, fallback: "127.0.0.1:5447", help: "host:port for the proxies" },
  healthListen: { type: listenAddress, fallback: "0.0.0.0:5448", help: "host:port for /healthz, /readyz and /metrics" },
  logLevel: { type: logLevel, fallback: "info", help: "trace, debug, info, warn, error, fatal or silent" },
  restartSettleMs: {
    type: milliseconds(0, 240_000),
    fallback: "20000",
    help: "how long routes stay as they are before pods that lost namespaces are restarted",
  },
  leaseDurationMs: {
    type: milliseconds(1_000, MAX_LEASE_MS),
    fallback: "15000",
    help: "how long a silent leader keeps its lease, at most 20000",
  },
  apiServerTokenCacheMs: {
    type: milliseconds(1_000, 600_000),
    fallback: String(KUBERNETES_TOKEN_CACHE_MS),
    help: "how long kube-apiserver accepts a token that it has found valid; a pod removed by force counts for 2 s more",
  },
  labelsPerSecond: {
    type: z.coerce.number().int().min(1).max(1_000),
    fallback: "30",
    help: "how many objects a second are patched for labelObjects, at most 1000",
  },
  labelFamilies: {
    type: labelFamilies,
    fallback: "",
    help: 'JSON of the families (namespace/name, or * for every family) whose labelObjects is honoured, by resource: {"configmaps":["foo-system/foo-operator"]}; empty: none',
  },
  ownershipSlices: {
    type: z.enum(["true", "false"], { error: "must be true or false" }).transform((text) => text === "true"),
    fallback: "true",
    help: "true: publish who owns what as OwnershipSlices; false: delete these",
  },
  identity: {
    type: z.enum(["mesh", "none"]),
    fallback: "none",
    help: "mesh: TLS, and proxies prove which pod they are in; none: plain text, for the loopback only",
  },
  serviceName: { type: requiredText, fallback: "ctrlmesh-manager", help: "name of the manager's Service" },
  clusterDomain: { type: requiredText, fallback: "cluster.local", help: "DNS domain of the cluster, for names in certificates" },
  serverNames: {
    type: nameList,
    fallback: "",
    help: "names and addresses of the manager in addition to its Service's, divided by commas",
  },
  caSecret: {
    type: z.string(),
    fallback: "",
    help: "Secret with your own or cert-manager's CA (tls.crt, tls.key); empty: the mesh makes its own",
  },
  caSettleMs: { type: milliseconds(0, 86_400_000), fallback: "600000", help: "how long a new CA is trusted before it signs" },
  webhookListen: {
    type: listenAddresses.refine((all) => all.length <= 1, "must be one host:port").transform(([first]) => first),
    fallback: "",
    help: "host:port for the admission webhooks; empty: none",
  },
  webhookTimeoutSeconds: {
    type: z.coerce.number().int().min(1).max(30),
    fallback: "10",
    help: "how long the API server waits for the injection of a pod, from 1 to 30",
  },
  webhookUrl: {
    type: z.string().refine(isOrigin, "must be https://host:port"),
    fallback: "",
    help: "https://host:port by which the API server reaches the webhooks; empty: by the Service",
  },
  webhookClientCa: {
    type: z.string(),
    fallback: "",
    help: "file with the CAs (PEM) of the API servers' client certificates: only these may call the webhooks; empty: everybody may",
  },
  warnOfMoves: {
    type: z.enum(["true", "false"], { error: "must be true or false" }).transform((text) => text === "true"),
    fallback: "false",
    help: "true: warn clients that edit a VirtualApp or the labels of a namespace of what moves; needs --webhook-listen",
  },
  proxyImage: { type: z.string(), fallback: "", help: "image of the injected proxy" },
  proxyPullPolicy: {
    type: z.enum(["Always", "IfNotPresent", "Never"]),
    fallback: "IfNotPresent",
    help: "imagePullPolicy of the proxy: Always, IfNotPresent or Never",
  },
  proxyPullSecrets: {
    type: nameList,
    fallback: "",
    help: "Secrets in the pods' namespaces to pull the proxy's image with, divided by commas",
  },
  proxyDefaults: {
    type: proxyDefaults,
    fallback: "",
    help: 'JSON of the annotations, without their prefix, for pods that have none of their own: {"proxy-log-level":"debug"}',
  },
  certificateLifetimeMs: {
    type: milliseconds(10_000, MAX_CERTIFICATE_LIFETIME_MS),
    fallback: `${MAX_CERTIFICATE_LIFETIME_MS}`,
    help: "lifetime of the proxies' certificates, at most 24 h, renewed after a quarter of it",
  },
} satisfies Settings;

const schema = schemaOf(settings).superRefine(
  ({ identity, grpcListen, webhookListen, webhookClientCa, proxyImage, apiServerTokenCacheMs }, context) => {
    const problem = (setting: string, message: string) => context.addIssue({ code: "custom", path: [setting], message });
    if (identity !== "mesh" && !LOOPBACK.test(grpcListen.host)) {
      problem("grpcListen", "must be a loopback address with --identity none: without identity no client proves who it is");
    }
    if (identity === "mesh" && apiServerTokenCacheMs < KUBERNETES_TOKEN_CACHE_MS) {
      const message = `must be at least ${KUBERNETES_TOKEN_CACHE_MS} with --identity mesh: kube-apiserver accepts a valid token for that long`;
      problem("apiServerTokenCacheMs", message);
    }
    if (webhookListen === undefined && webhookClientCa !== "") problem("webhookClientCa", "needs --webhook-listen");
    if (webhookListen === undefined) return;
    if (identity !== "mesh") problem("webhookListen", "needs --identity mesh, for its certificate");
    if (proxyImage === "") problem("proxyImage", "is required with --webhook-listen: it is the image that pods get");
  },
);

export type ManagerConfig = z.output<typeof schema>;

export const managerCommandLine: CommandLine<typeof schema> = {
  title: "ctrlmesh-manager: decides which subset of an operator owns which namespaces",
  prefix: "CTRLMESH",
  schema,
  settings,
};
