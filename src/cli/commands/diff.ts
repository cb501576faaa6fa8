// `ctrlmesh diff`: what the sidecar of a pod enforces, against what the manager has published. Invariant: the sidecar says
// what it holds, and the objects of the manager say what it should hold.
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { CIRCUIT_BREAKERS, FAULT_INJECTIONS, TRAFFIC_POLICIES } from "../../api/resources.ts";
import type { ObjectRef, Resource } from "../../kube/client/resource.ts";
import { PODS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { findApp } from "../apps/apps.ts";
import { differingPlaces, differingPolicies } from "../apps/compare-held.ts";
import { readHeld } from "../apps/held-places.ts";
import { listSlices, placesOf } from "../apps/owned-places.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, type Command, failure, nameOf, POD_WORDS, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { columns, counted } from "../frame/output.ts";

const POLICY_KINDS = [TRAFFIC_POLICIES, CIRCUIT_BREAKERS, FAULT_INJECTIONS] as readonly Resource<KubeObject>[];

export const DIFF: Command = {
  name: "diff",
  args: "POD",
  maxArgs: 1,
  summary: "where the sidecar of a pod differs from what the manager has published",
  flags: {},
  async run({ args: [target], flags, output, cluster }: Call) {
    if (target === undefined) throw usageError("name a pod");
    const connected = await cluster();
    const pod = { namespace: namespaceOf(flags, connected.namespace), name: nameOf(target, POD_WORDS) };
    const app = await appOfPod(connected, pod);
    // The sidecar is asked last: what the manager has published may be older, not newer.
    const [slices, policies] = await Promise.all([
      listSlices(connected, pod.namespace, `${SLICE_APP_LABEL}=${app.name}`),
      listPolicies(connected, pod.namespace),
    ]);
    const held = await readHeld(connected, pod);
    if (held.version === undefined) throw failure(`the sidecar of pod ${pod.name} has no routes yet`);
    const published = slices.flatMap(placesOf);
    const unread = slices.reduce((sum, slice) => sum + slice.places, 0) - published.length;
    const places = slices.length === 0 ? [] : differingPlaces(published, held, unread > 0);
    const items = [...places, ...differingPolicies(policies, held, pod.name)];
    const newest = app.status?.routeVersion;
    const head = `pod ${pod.name} (subset ${held.subset}) enforces route ${held.version}; the newest of ${app.name} is ${newest ?? "not known"}`;
    const rows = items.map(({ of, published, held: text }) => [of, published, text]);
    const same = `nothing differs in ${counted(held.places.length, "place")} and ${counted(held.policies.size, "policy object")}`;
    const fields = { pod, app: app.name, subset: held.subset, version: held.version, newest, places: held.places.length };
    const lines = items.length === 0 ? [same] : columns([["DIFFERS", "PUBLISHED", "SIDECAR"], ...rows]);
    output.data("SidecarDiff", { ...fields, items }, [head, ...lines]);
    if (slices.length === 0) output.hint(`the owners are not compared: there is no OwnershipSlice of ${app.name}`);
    if (unread > 0) output.hint(`${counted(unread, "place")} not compared: another version has written them`);
    output.hint("compared with the OwnershipSlices and statuses that the manager publishes, which may be some seconds old");
    return items.length === 0 ? EXIT.ok : EXIT.findings;
  },
};

async function appOfPod(cluster: Cluster, { namespace, name }: ObjectRef) {
  const { metadata } = await cluster.get(PODS, { namespace, name });
  const app = metadata.labels?.[INJECTED_LABEL];
  if (app === undefined) throw failure(`pod ${name} has no sidecar; why is said by: ctrlmesh explain inject ${name}`);
  return findApp(cluster, app, namespace);
}

async function listPolicies(cluster: Cluster, namespace: string): Promise<ReadonlyMap<string, readonly KubeObject[]>> {
  const lists = POLICY_KINDS.map(async (kind) => [kind.kind, await cluster.list(kind, namespace)] as const);
  return new Map(await Promise.all(lists));
}
