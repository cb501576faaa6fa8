// Whether the manager runs, leads, and can be called by the API server.
import { X509Certificate } from "node:crypto";
import { KINDS } from "../../api/crd.ts";
import { MANAGER_STATE_NAME, type ManagerStateStatus } from "../../api/manager-state.ts";
import { MANAGER_STATES } from "../../api/resources.ts";
import { isMeshError } from "../../base/errors.ts";
import { splitPem } from "../../base/pem.ts";
import type { Resource } from "../../kube/client/resource.ts";
import {
  LEASES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  type ValidatingWebhook,
} from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { age } from "../apps/ages.ts";
import type { Cluster } from "../frame/cluster.ts";
import type { Check, Finding } from "./check.ts";

/** The Lease of the managers, and the name of the chart's webhook configurations (charts/ctrlmesh). */
const LEASE = "ctrlmesh-manager";
const CONFIGURATIONS = [
  [MUTATING_WEBHOOK_CONFIGURATIONS, "ctrlmesh-injection"],
  [VALIDATING_WEBHOOK_CONFIGURATIONS, "ctrlmesh-validation"],
] as const;

const INSTALL = "tasks/install.md#install";
const NO_LEADER = "troubleshooting.md#ctrlmeshnoleader";
const WEBHOOKS = "reference/webhooks.md#troubleshooting";

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
  const served = await orNothing(cluster.read(`/apis/${group}/v1alpha1`));
  const { resources = [] } = (served ?? {}) as { readonly resources?: readonly { readonly name: string }[] };
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
    const next = `kubectl get pods,lease -n ${namespace}`;
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
    if (silentMs <= leaseDurationSeconds * 1_000) return [];
    const message = `the leader ${holderIdentity} has not renewed its Lease for ${age(renewTime, nowMs)}`;
    return [{ severity: "error", message, object: `Lease ${namespace}/${LEASE}`, next, docs: NO_LEADER }];
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
    return [{ severity, message, next: `kubectl get pods -n ${namespace || "ctrlmesh-system"}`, docs: NO_LEADER }];
  },
};

export const WEBHOOK_CONFIGURATIONS: Check = {
  name: "webhooks",
  holds: "the webhook configurations are there and filled",
  async run({ cluster }) {
    const found = await Promise.all(
      CONFIGURATIONS.map(async ([resource, name]): Promise<Finding[]> => {
        const webhooks = await entriesOf(cluster, resource, name);
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
        const webhooks = (await entriesOf(cluster, resource, name)) ?? [];
        const object = `${resource.kind} ${name}`;
        const lastMs = Math.max(...webhooks.flatMap(({ clientConfig: { caBundle = "" } }) => endsOf(caBundle)));
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

async function entriesOf(
  cluster: Cluster,
  resource: Resource<KubeObject>,
  name: string,
): Promise<readonly ValidatingWebhook[] | undefined> {
  const object = await orNothing(cluster.get(resource, { name }));
  return object && ((object as { readonly webhooks?: readonly ValidatingWebhook[] }).webhooks ?? []);
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

async function managerState(cluster: Cluster): Promise<ManagerStateStatus | undefined> {
  return (await orNothing(cluster.get(MANAGER_STATES, { name: MANAGER_STATE_NAME })))?.status;
}

/** Undefined if there is no such object. */
function orNothing<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: unknown) => {
    if (isMeshError(error, "NOT_FOUND")) return undefined;
    throw error;
  });
}
