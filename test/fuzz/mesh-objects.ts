// The Kubernetes objects of the mesh tests, from few words: VirtualApps by who owns what, pods by their labels and state. Pure.
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import { INJECTED_LABEL } from "../../src/manager/translate/app-pods.ts";

export const SUBSETS = ["", "canary", "beta"];

/** Who is to own what. */
export interface Rules {
  /** Namespace -> subset; those that are left out belong to the default subset. */
  readonly owners: Readonly<Record<string, string>>;
  /** The rules name config maps: everything else stays with the default subset. */
  readonly onlyConfigMaps?: boolean;
}

export interface PodLabels {
  /** "" is the default subset, and is the default. */
  readonly subset?: string;
  /** The VirtualApp by which it was injected; null if its label is missing. Default "shop". */
  readonly injected?: string | null;
  /** It carries the label that the app selects; default true. */
  readonly selected?: boolean;
}

export function appSpec({ owners, onlyConfigMaps = false }: Rules): VirtualApp["spec"] {
  const used = SUBSETS.filter((subset) => subset !== "" && Object.values(owners).includes(subset));
  const resources = onlyConfigMaps ? { resources: [{ apiGroups: [""], resources: ["configmaps"] }] } : {};
  const namespacesOf = (subset: string) => Object.keys(owners).filter((namespace) => owners[namespace] === subset);
  return {
    selector: { matchLabels: { app: "op" } },
    route: {
      subRules: used.map((name) => ({ name, match: [{ namespaceRegex: `^(${namespacesOf(name).join("|")})$`, ...resources }] })),
    },
    subsets: used.map((name) => ({ name, labels: { sub: name }, routeRules: [name] })),
  };
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
  return injected === null ? {} : { initContainers: [{ name: "ctrlmesh-proxy" }] };
}

/** What a kubelet says. @param serves the proxy has a snapshot, so its startup probe passes and the operator runs */
export function podStatus(serves: boolean, restarts: number): NonNullable<Pod["status"]> {
  const lastState = restarts === 0 ? {} : { lastState: { terminated: {} } };
  const proxy = { name: "ctrlmesh-proxy", ready: serves, started: serves, restartCount: restarts, ...lastState };
  return {
    phase: serves || restarts > 0 ? "Running" : "Pending",
    conditions: [{ type: "Ready", status: serves ? "True" : "False" }],
    initContainerStatuses: [proxy],
  };
}
