// The Kubernetes objects of the mesh tests, from few words: VirtualApps by who owns what, pods by their labels and state. Pure.

import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import { BUCKET, familyAnnotations } from "./mesh-family.ts";

export const SUBSETS = ["", "canary", "beta"];

/** Label of namespaces by which they are given to subsets. A namespace is born with its own name as the value. */
export const TEAM = "team";

/** Who is to own what. */
export interface Rules {
  /** Team of a namespace -> subset; those that are left out belong to the default subset. Of a family, "" is the team of the cluster scope. */
  readonly owners: Readonly<Record<string, string>>;
  /** The rules name config maps: everything else stays with the default subset. */
  readonly onlyConfigMaps?: boolean;
  /** Config maps are divided by their label `tier` instead: its value -> subset. The rules on namespaces name pods then. */
  readonly tiers?: Readonly<Record<string, string>>;
  /** These resources are public, but for config maps with tiers or that the rules name. */
  readonly publics?: readonly string[];
  /** The app is a sharded family, in which subsets divide these resources. What the default subset would own belongs to nobody. */
  readonly sharded?: readonly string[];
  /** The shard of the family that owns BUCKET; absent: it is as the cluster scope. */
  readonly bucket?: string | undefined;
  readonly onLoss?: "Restart" | "InPlace";
  readonly paused?: boolean;
  /** The operator elects leaders under this lock. */
  readonly lockName?: string;
}

/** Labels of the objects that are asked about. */
export const LABELS: readonly Readonly<Record<string, string>>[] = [{}, { tier: "gold" }, { tier: "silver" }];

/** Those that may matter for a resource. */
export function labelsFor(resource: string): typeof LABELS {
  return resource === "configmaps" ? LABELS : LABELS.slice(0, 1);
}

/** No subset has this name. */
const NOBODY = "nobody";

/** Who is to own an object of a team's namespace, by the wish alone; "*" is everybody. */
export function ownerOf(
  { owners, onlyConfigMaps = false, tiers, publics = [], sharded, bucket }: Rules,
  team: string,
  resource: string,
  labels: Readonly<Record<string, string>>,
): string {
  if (sharded !== undefined) {
    const owner = team === BUCKET ? (bucket ?? owners[""]) : owners[team];
    return sharded.includes(resource) ? owner || NOBODY : "*";
  }
  const isDivided = tiers !== undefined && resource === "configmaps" && Object.keys(tiers).some((tier) => tiers[tier] !== "");
  const named = tiers !== undefined ? "pods" : onlyConfigMaps ? "configmaps" : "";
  if (publics.includes(resource) && !isDivided) return (named === resource && owners[team]) || "*";
  if (tiers !== undefined && resource === "configmaps") return tiers[labels.tier ?? ""] ?? "";
  return !onlyConfigMaps || tiers !== undefined || resource === "configmaps" ? (owners[team] ?? "") : "";
}

/** The subsets that the rules give something to. */
export function usedSubsets({ owners, tiers = {} }: Rules): string[] {
  return SUBSETS.filter((subset) => subset !== "" && [...Object.values(owners), ...Object.values(tiers)].includes(subset));
}

export interface PodLabels {
  /** "" is the default subset, and is the default. */
  readonly subset?: string;
  /** The VirtualApp by which it was injected; null if its label is missing. Default "shop". */
  readonly injected?: string | null;
  /** It carries the label that the app selects; default true. */
  readonly selected?: boolean;
  /** Somebody makes it anew when it is gone; default false. Kept from its birth. */
  readonly controlled?: boolean;
}

export function appSpec(rules: Rules): VirtualApp["spec"] {
  const { owners, onlyConfigMaps = false, tiers, publics = [], onLoss, paused, lockName } = rules;
  const used = usedSubsets(rules);
  const only = (resource: string) => ({ resources: [{ apiGroups: [""], resources: [resource] }] });
  const resources = tiers !== undefined ? only("pods") : onlyConfigMaps ? only("configmaps") : {};
  const keysOf = (of: Readonly<Record<string, string>>, subset: string) => Object.keys(of).filter((key) => of[key] === subset);
  const matchesOf = (subset: string) => {
    const teams = keysOf(owners, subset);
    const namespaceSelector = { matchExpressions: [{ key: TEAM, operator: "In" as const, values: teams }] };
    const values = keysOf(tiers ?? {}, subset);
    const objectSelector = { matchExpressions: [{ key: "tier", operator: "In" as const, values }] };
    return [
      ...(teams.length === 0 ? [] : [{ namespaceSelector, ...resources }]),
      ...(values.length === 0 ? [] : [{ objectSelector, ...only("configmaps") }]),
    ];
  };
  return {
    selector: { matchLabels: { app: "op" } },
    ...(lockName === undefined ? {} : { configuration: { controller: { leaderElectionName: lockName } } }),
    route: {
      ...(onLoss === undefined ? {} : { onLoss }),
      ...(paused === undefined ? {} : { paused }),
      subRules: used.map((name) => ({ name, match: matchesOf(name) })),
      ...(publics.length === 0 ? {} : { subsetPublicResources: [{ apiGroups: [""], resources: [...publics] }] }),
    },
    subsets: used.map((name) => ({ name, labels: { sub: name }, routeRules: [name] })),
  };
}

/** Of a family. */
export function appAnnotations({ sharded, bucket, owners }: Rules): Readonly<Record<string, string>> {
  return familyAnnotations(sharded && { named: sharded, home: owners[""] ?? "", bucket });
}

export function podLabels({ subset = "", injected = "shop", selected = true }: PodLabels): Record<string, string> {
  return {
    ...(selected ? { app: "op" } : {}),
    ...(subset === "" ? {} : { sub: subset }),
    ...(injected === null ? {} : { [INJECTED_LABEL]: injected }),
  };
}

/** Labels come and go; the containers are those that the pod was made with. */
export function podSpec({ injected }: PodLabels): NonNullable<Pod["spec"]> {
  return injected === null ? {} : { nodeName: "node", initContainers: [{ name: "ctrlmesh-proxy" }] };
}

/**
 * What a kubelet says.
 *
 * @param serves the proxy has a snapshot, so its startup probe passes and the operator is started
 * @param hasRun the operator was started, and runs on when the proxy is restarted
 */
export function podStatus(serves: boolean, restarts: number, hasRun = serves): NonNullable<Pod["status"]> {
  const lastState = restarts === 0 ? {} : { lastState: { terminated: {} } };
  const proxy = { name: "ctrlmesh-proxy", ready: serves, started: serves, restartCount: restarts, ...lastState };
  return {
    phase: serves || restarts > 0 ? "Running" : "Pending",
    conditions: [{ type: "Ready", status: serves ? "True" : "False" }],
    initContainerStatuses: [proxy],
    containerStatuses: [{ name: "manager", ready: serves, restartCount: 0, state: hasRun ? { running: {} } : {} }],
  };
}

/** The controller that makes pods of a subset. */
export function ownerReferences(subset: string) {
  const name = subset === "" ? "op" : `op-${subset}`;
  return [{ apiVersion: "apps/v1", kind: "ReplicaSet", name, uid: name, controller: true }];
}
