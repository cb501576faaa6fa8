// Whether the kinds are served, and a manager runs and leads.
import { z } from "zod";
import { KINDS } from "../../api/crd.ts";
import { MANAGER_STATE_NAME } from "../../api/manager-state.ts";
import { MANAGER_STATES } from "../../api/resources.ts";
import { LEASES, PODS } from "../../kube/client/resources.ts";
import { age } from "../apps/ages.ts";
import type { Cluster } from "../frame/cluster.ts";
import { shellLine } from "../frame/output.ts";
import { orNothing, readAnswer } from "../frame/read-answer.ts";
import { type Check, foundError, foundWarning } from "./check.ts";

/** Of the managers. */
const LEASE = "ctrlmesh-manager";

/** What is read of answers and objects, which another version may have written. */
const SERVED = z.object({ resources: z.array(z.object({ name: z.string() })) });
const STATE = z.object({ namespace: z.string().optional(), endpoints: z.array(z.object({ name: z.string() })).optional() });

const INSTALL = "tasks/install.md#install";
const NO_LEADER = "troubleshooting.md#ctrlmeshnoleader";

/** Clocks of machines differ. */
const CLOCKS_MS = 60_000;

export const KINDS_SERVED: Check = {
  name: "kinds",
  holds: "the API server serves all kinds of Controller Mesh",
  async run({ cluster }) {
    const groups = Map.groupBy(Object.values(KINDS), ({ group }) => group);
    const missing = await Promise.all([...groups].map(([group, kinds]) => missingKinds(cluster, group, kinds)));
    const next = "helm upgrade --install ctrlmesh ...";
    return missing.flat().map((name) => foundError(`the API server does not serve ${name}`, INSTALL, { next }));
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
    const everywhere = "kubectl get pods -A -l app.kubernetes.io/name=ctrlmesh";
    if (state === undefined) return [foundError("no manager has reported to this cluster", NO_LEADER, { next: everywhere })];
    const { namespace = "" } = state;
    const of = { object: `Lease ${namespace}/${LEASE}`, next: shellLine(["kubectl", "get", "pods,lease", "-n", namespace]) };
    const lease = await orNothing(cluster.get(LEASES, { namespace, name: LEASE }));
    const { holderIdentity = "", renewTime, leaseDurationSeconds = 15 } = lease?.spec ?? {};
    if (holderIdentity === "") return [foundError("no manager holds the Lease", NO_LEADER, of)];
    const silentMs = nowMs - Date.parse(renewTime ?? "");
    if (silentMs < -CLOCKS_MS) {
      const message = `the leader ${holderIdentity} has renewed its Lease in the future, at ${renewTime}: its clock or that of this machine is wrong`;
      return [foundWarning(message, NO_LEADER, of)];
    }
    if (silentMs <= leaseDurationSeconds * 1_000) return [];
    return [foundError(`the leader ${holderIdentity} has not renewed its Lease for ${age(renewTime, nowMs)}`, NO_LEADER, of)];
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
    const next = shellLine(["kubectl", "get", "pods", "-n", namespace || "ctrlmesh-system"]);
    if (ready.length === 0) return [foundError("no manager is ready", NO_LEADER, { next })];
    return [
      foundWarning("one manager is ready: while it is replaced, no pod is injected and nothing moves", NO_LEADER, { next }),
    ];
  },
};

async function managerState(cluster: Cluster): Promise<z.output<typeof STATE> | undefined> {
  const state = await orNothing(cluster.get(MANAGER_STATES, { name: MANAGER_STATE_NAME }));
  if (state?.status === undefined) return undefined;
  return readAnswer(STATE, state.status, `status of ManagerState ${MANAGER_STATE_NAME}`);
}
