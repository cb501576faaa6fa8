// Whether the manager runs, leads, and can be called by the API server.
import { X509Certificate } from "node:crypto";
import { z } from "zod";
import { KINDS } from "../../api/crd.ts";
import { MANAGER_STATE_NAME } from "../../api/manager-state.ts";
import { MANAGER_STATES } from "../../api/resources.ts";
import { isMeshError } from "../../base/errors.ts";
import { splitPem } from "../../base/pem.ts";
import type { Resource } from "../../kube/client/resource.ts";
import { LEASES, MUTATING_WEBHOOK_CONFIGURATIONS, PODS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { age } from "../apps/ages.ts";
import type { Cluster } from "../frame/cluster.ts";
import { shellLine } from "../frame/output.ts";
import { readAnswer } from "../frame/read-answer.ts";
import type { Check, Finding } from "./check.ts";

/** The Lease of the managers, and the name of the chart's webhook configurations (charts/ctrlmesh). */
const LEASE = "ctrlmesh-manager";
const CONFIGURATIONS = [
  [MUTATING_WEBHOOK_CONFIGURATIONS, "ctrlmesh-injection"],
  [VALIDATING_WEBHOOK_CONFIGURATIONS, "ctrlmesh-validation"],
] as const;

/** What is read of answers and objects, which another version may have written. */
const SERVED = z.object({ resources: z.array(z.object({ name: z.string() })) });
const STATE = z.object({ namespace: z.string().optional(), endpoints: z.array(z.object({ name: z.string() })).optional() });
const CONFIGURATION = z.object({
  webhooks: z.array(z.object({ clientConfig: z.object({ caBundle: z.string().catch("") }).catch({ caBundle: "" }) })).nullish(),
});

const INSTALL = "tasks/install.md#install";
const NO_LEADER = "troubleshooting.md#ctrlmeshnoleader";
const WEBHOOKS = "reference/webhooks.md#troubleshooting";

/** Clocks of machines differ. */
const CLOCKS_MS = 60_000;
const HOUR_MS = 3_600_000;
const CA_WARNING_MS = 72 * HOUR_MS;
const CA_ERROR_MS = 24 * HOUR_MS;

export const KINDS_SERVED: Check = {
  name: "kinds",
  holds: "the API server serves all kinds of Controller Mesh",
  async run({ cluster }) {
    const groups = Map.groupBy(Object.values(KINDS), ({ group }) => group);
    const missing = await Promise.all([...groups].map(([group, kinds]) => missingKinds(cluster, group, kinds)));
    const next = "helm upgrade --install ctrlmesh ...";
    return missing
      .flat()
      .map((name) => ({ severity: "error", message: `the API server does not serve ${name}`, next, docs: INSTALL }));
  },
};

async function missingKinds(cluster: Cluster, group: string, kinds: readonly { readonly plural: string }[]): Promise<string[]> {
  const path = `/apis/${group}/v1alpha1`;
  const served = await orNothing(cluster.read(path));
  const { resources } = served === undefined ? { resources: [] } : readAnswer(SERVED, served, path);
  const names = new Set(resources.map(({ name }) => name));
  return kinds.filter(({ plural }) => !names.has(plural)).map(({ plural }) => `${plural}.${group}`);
}

export const LEADER: Check = {
  name: "leader",
  holds: "a manager leads",
  async run({ cluster, nowMs }) {
    const state = await managerState(cluster);
    if (state === undefined)
      return [
        {
          severity: "error",
          message: "no manager has reported to this cluster",
          next: "kubectl get pods -A -l app.kubernetes.io/name=ctrlmesh",
          docs: NO_LEADER,
        },
      ];
    const { namespace = "" } = state;
    const next = shellLine(["kubectl", "get", "pods,lease", "-n", namespace]);
    const lease = await orNothing(cluster.get(LEASES, { namespace, name: LEASE }));
    const { holderIdentity = "", renewTime, leaseDurationSeconds = 15 } = lease?.spec ?? {};
    if (holderIdentity === "")
      return [
        {
          severity: "error",
          message: "no manager holds the Lease",
          object: `Lease ${namespace}/${LEASE}`,
          next,
          docs: NO_LEADER,
        },
      ];
    const silentMs = nowMs - Date.parse(renewTime ?? "");
    const isEarly = silentMs < -CLOCKS_MS;
    if (!isEarly && silentMs <= leaseDurationSeconds * 1_000) return [];
    const message = isEarly
      ? `the leader ${holderIdentity} has renewed its Lease in the future, at ${renewTime}: its clock or that of this machine is wrong`
      : `the leader ${holderIdentity} has not renewed its Lease for ${age(renewTime, nowMs)}`;
    return [{ severity: isEarly ? "warning" : "error", message, object: `Lease ${namespace}/${LEASE}`, next, docs: NO_LEADER }];
  },
};

export const REPLICAS: Check = {
  name: "replicas",
  holds: "two or more managers are ready",
  async run({ cluster }) {
    const { namespace = "", endpoints = [] } = (await managerState(cluster)) ?? {};
    const pods = await Promise.all(endpoints.map(({ name }) => orNothing(cluster.get(PODS, { namespace, name }))));
    const ready = pods.filter((pod) =>
      pod?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
    );
    if (ready.length >= 2) return [];
    const message =
      ready.length === 0
        ? "no manager is ready"
        : "one manager is ready: while it is replaced, no pod is injected and nothing moves";
    const severity = ready.length === 0 ? "error" : "warning";
    const next = shellLine(["kubectl", "get", "pods", "-n", namespace || "ctrlmesh-system"]);
    return [{ severity, message, next, docs: NO_LEADER }];
  },
};

export const WEBHOOK_CONFIGURATIONS: Check = {
  name: "webhooks",
  holds: "the webhook configurations are there and filled",
  async run({ cluster }) {
    const found = await Promise.all(
      CONFIGURATIONS.map(async ([resource, name]): Promise<Finding[]> => {
        const webhooks = await bundlesOf(cluster, resource, name);
        const object = `${resource.kind} ${name}`;
        if (webhooks === undefined)
          return [
            {
              severity: "error",
              object,
              message: "is missing: pods start without a sidecar",
              next: "helm upgrade ctrlmesh ...",
              docs: INSTALL,
            },
          ];
        if (webhooks.length > 0) return [];
        return [
          {
            severity: "error",
            object,
            message: "has no entry: no manager has filled it",
            next: "kubectl logs -n ctrlmesh-system deployment/ctrlmesh-manager",
            docs: WEBHOOKS,
          },
        ];
      }),
    );
    return found.flat();
  },
};

export const WEBHOOK_CA: Check = {
  name: "webhook-ca",
  holds: "the CA that the API server trusts for the webhooks does not end soon",
  async run({ cluster, nowMs }) {
    const found = await Promise.all(
      CONFIGURATIONS.map(async ([resource, name]): Promise<Finding[]> => {
        const webhooks = (await bundlesOf(cluster, resource, name)) ?? [];
        const object = `${resource.kind} ${name}`;
        // The API server trusts each certificate of a bundle. The webhook whose bundle ends first fails first.
        const lastMs = Math.min(...webhooks.map((caBundle) => Math.max(...endsOf(caBundle))));
        const leftMs = lastMs - nowMs;
        if (webhooks.length === 0 || leftMs > CA_WARNING_MS) return [];
        const when = Number.isFinite(lastMs) ? `ends at ${new Date(lastMs).toISOString()}` : "cannot be read";
        const severity = leftMs > CA_ERROR_MS ? "warning" : "error";
        return [{ severity, object, message: `its caBundle ${when}`, docs: "reference/webhooks.md#certificates" }];
      }),
    );
    return found.flat();
  },
};

/** The caBundle of each webhook; "" for none. */
async function bundlesOf(cluster: Cluster, resource: Resource<KubeObject>, name: string): Promise<readonly string[] | undefined> {
  const object = await orNothing(cluster.get(resource, { name }));
  if (object === undefined) return undefined;
  const { webhooks } = readAnswer(CONFIGURATION, object, `${resource.kind} ${name}`);
  return (webhooks ?? []).map(({ clientConfig }) => clientConfig.caBundle);
}

/** When the certificates in a bundle end. */
function endsOf(bundle: string): number[] {
  return splitPem(Buffer.from(bundle, "base64").toString()).flatMap((each) => {
    try {
      return [Date.parse(new X509Certificate(each).validTo)];
    } catch {
      return [];
    }
  });
}

async function managerState(cluster: Cluster): Promise<z.output<typeof STATE> | undefined> {
  const state = await orNothing(cluster.get(MANAGER_STATES, { name: MANAGER_STATE_NAME }));
  if (state?.status === undefined) return undefined;
  return readAnswer(STATE, state.status, `status of ManagerState ${MANAGER_STATE_NAME}`);
}

/** Undefined if there is no such object. */
function orNothing<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: unknown) => {
    if (isMeshError(error, "NOT_FOUND")) return undefined;
    throw error;
  });
}
