// The world of the mesh tests: a cluster, one manager that leads, perhaps an older one that is still alive, and model proxies. Nothing
// happens by itself: a script says when a manager looks, when messages arrive and what is lost. Invariant: at every step at most one
// subset holds an object of a resource in a namespace, whatever the script does.

import type { AppStatus } from "../../src/api/app-status.ts";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import { isInClusterScope } from "../../src/kube/place.ts";
import { createChecks, NAMESPACES, type Rights } from "./mesh-checks.ts";
import { createModelClock } from "./mesh-clock.ts";
import { createCluster, HOME } from "./mesh-cluster.ts";
import { createModelManager, type ModelManager } from "./mesh-manager.ts";
import { appAnnotations, appSpec, type PodLabels, type Rules } from "./mesh-objects.ts";
import type { ModelProxy } from "./mesh-proxy.ts";

export { NAMESPACES, RESOURCES } from "./mesh-checks.ts";
export const SHOP = "shop";
/** Names of pods; where a pod is made before the old one has gone, it has another one of them. */
export const PODS = ["p0", "p1", "p2", "p3", "q0", "q1"];

/** What becomes of a manager when another one leads. */
export type Fate =
  /** The process is gone, and its connections with it. */
  | "gone"
  /** It knows that it leads no more; what it has sent may still arrive. */
  | "deposed"
  /** It was asleep, its clock too: it believes that it leads, and goes on. */
  | "deluded";

export type MeshWorld = ReturnType<typeof createMeshWorld>;

/** @param born the namespaces that there are at first */
export function createMeshWorld(born: readonly string[] = NAMESPACES.slice(0, 3)) {
  const clock = createModelClock();
  const managers: ModelManager[] = [];
  const events: string[] = [];
  const checks = createChecks();
  const see = () => {
    for (const each of managers) each.see();
    if (dissolving !== undefined && cluster.app(SHOP) === undefined) {
      if (!isTorn) expectWhole();
      dissolving = undefined;
    }
    if (cluster.app(SHOP)?.metadata.deletionTimestamp !== undefined) dissolving = true;
  };
  let dissolving: true | undefined;
  let isTorn = false;
  let looks = 0;
  let epochs = 0;
  const cluster = createCluster(born, clock, () => see());
  const { proxies } = cluster;
  const startManager = () => {
    const onEvent = (reason: string) => void events.push(reason);
    managers.push(createModelManager({ epoch: ++epochs, cluster: cluster.view, client: cluster.client, clock, onEvent }));
  };
  const leader = () => {
    const last = managers.at(-1);
    if (last === undefined) throw new Error("there is no manager");
    return last;
  };
  startManager();

  // The cluster scope is always there.
  const hasNamespace = (name: string) => isInClusterScope(name) || cluster.namespace(name) !== undefined;
  const isWhole = ({ current }: ModelProxy): boolean => {
    if (current === undefined) return true;
    const { subset, table } = current;
    return subset === "" && table.rules.length === 0 && table.fenced.size === 0 && table.retained === undefined;
  };
  // When the finalizer is off, every pod that was told something is told that everything is its own; but one that has lost the label
  // that says whose it is cannot be told.
  function expectWhole(): void {
    const ofApp = [...proxies.values()].filter(({ name }) => cluster.pod(name)?.metadata.labels?.[INJECTED_LABEL] === SHOP);
    for (const proxy of ofApp) if (!isWhole(proxy)) throw new Error(`the app is gone, and ${proxy.name} has not the whole view`);
  }

  return {
    clock,
    cluster,
    proxies,
    checks,
    /** The reasons of the Kubernetes Events so far. */
    events,
    /** The API server takes no writes of the managers. */
    set statusIsLost(is: boolean) {
      cluster.isWriteLost = is;
    },
    get leader() {
      return leader();
    },
    /** The one that led before, if it is still alive. */
    get older() {
      return managers.length > 1 ? managers[0] : undefined;
    },
    setApp: (rules: Rules, name = SHOP) => cluster.setRules(name, rules),
    /** The spec becomes one that the manager refuses. */
    breakApp(name = SHOP) {
      const spec = cluster.app(name)?.spec;
      if (spec !== undefined)
        cluster.putApp(name, { ...spec, subsets: [{ name: "odd", labels: { odd: "yes" }, routeRules: ["missing"] }] });
    },
    hasApp: (name = SHOP) => cluster.app(name) !== undefined,
    /** Gone at once, as when somebody takes the finalizer off by hand. */
    deleteApp(name = SHOP) {
      isTorn = true;
      cluster.tearApp(name);
      isTorn = false;
    },
    hasPod: (name: string) => cluster.pod(name) !== undefined,
    setPod: (name: string, labels: PodLabels = {}) => cluster.setPod(name, labels),
    setPodStatus: (name: string, status: NonNullable<Pod["status"]>) => cluster.setPodStatus(name, status),
    deletePod: (name: string) => cluster.removePod(name),
    evictPod: (name: string) => cluster.failPod(name),
    hasNamespace,
    /** Another manager leads from now on. */
    restartManager(fate: Fate = "gone") {
      const before = leader();
      managers.splice(0, managers.length);
      for (const proxy of proxies.values()) {
        if (proxy.manager !== before || fate === "gone") proxy.cut();
      }
      before.believesToLead = fate === "deluded";
      if (fate !== "gone") managers.push(before);
      startManager();
    },
    /**
     * Of a proxy without a snapshot nobody waits for ever for what it may still be told, since it has no operator yet: what is on its
     * way from an older manager is lost by then. See mesh.test.ts.
     */
    pass(ms: number) {
      const isLong = ms >= 10_000;
      for (const proxy of proxies.values()) if (isLong && proxy.current === undefined && proxy.manager !== leader()) proxy.cut();
      clock.pass(ms);
    },
    async reconcile(name = SHOP, manager = leader()) {
      await manager.reconcile(HOME, name);
      see();
    },
    status: (name = SHOP): AppStatus | undefined => cluster.app(name)?.status,
    proxy(name: string): ModelProxy {
      const proxy = proxies.get(name);
      if (proxy === undefined) throw new Error(`there is no proxy ${name}`);
      return proxy;
    },
    /** To the one that leads, or to the older one: there only if it has promised something to somebody. */
    async connect(name: string, isToOlder = false) {
      const proxy = proxies.get(name);
      const to = isToOlder && proxy?.hasPromised ? (this.older ?? leader()) : leader();
      await proxy?.connect(to);
    },
    /** Which subsets may act on objects with these labels in the namespace, with the pods by which they do. */
    holders(namespace: string, resource = "configmaps", labels: Readonly<Record<string, string>> = {}): Map<string, string[]> {
      const found = new Map<string, string[]>();
      for (const proxy of proxies.values()) {
        for (const subset of proxy.holds(namespace, resource, labels).keys())
          found.set(subset, [...(found.get(subset) ?? []), proxy.name]);
      }
      return found;
    },
    rightsOf: (proxy: ModelProxy): Rights => checks.rightsOf(proxy),
    /** How often that was looked at. */
    get looks() {
      return looks;
    },
    expectOneOwner(where: string) {
      looks++;
      checks.oneOwner(proxies.values(), cluster.bare(), hasNamespace, where);
    },
    /** All messages of the proxy arrive, in both directions. */
    async exchange(name: string) {
      for (let proxy = proxies.get(name); proxy?.isBusy; ) {
        proxy.answer();
        await proxy.deliver();
      }
    },
    /** Nothing goes wrong for a while: writes end, streams open, everything arrives, the manager looks at every app. */
    async settle(rounds = 12, isQuiet = () => false) {
      for (let round = 0; round < rounds; round++) {
        this.pass(10_000);
        for (const proxy of proxies.values()) {
          await proxy.endWrites();
          if (proxy.manager !== undefined && proxy.manager !== leader()) proxy.hangUp();
          await proxy.connect(leader());
          await this.exchange(proxy.name);
        }
        for (const name of cluster.appNames()) await this.reconcile(name);
        for (const proxy of proxies.values()) await this.exchange(proxy.name);
        this.expectOneOwner("a quiet round");
        if (isQuiet()) return;
        this.tidy();
      }
    },
    /** Kubelets end what was asked to end, and workloads make what is missing. */
    tidy() {
      for (const { metadata } of cluster.view.pods())
        if (metadata.deletionTimestamp !== undefined) cluster.removePod(metadata.name ?? "");
      const failed = cluster.view.pods().filter(({ status }) => status?.phase === "Failed");
      if (cluster.vacancies.length > 0) for (const { metadata } of failed) cluster.removePod(metadata.name ?? "");
      cluster.fillVacancies(PODS);
    },
    /** Every proxy that has something has everything. */
    isWhole: () => [...proxies.values()].every(isWhole),
    /** A message is on its way, to or from any proxy. */
    hasMessages: () => [...proxies.values()].some((proxy) => proxy.isBusy),
    setAppIfOther(rules: Rules) {
      const app = cluster.app(SHOP);
      const is = [app?.spec, app?.metadata.annotations];
      if (JSON.stringify(is) !== JSON.stringify([appSpec(rules), appAnnotations(rules)])) cluster.setRules(SHOP, rules);
    },
    /** The one that led before has noticed by now. */
    endOlder() {
      const older = managers.length > 1 ? managers.shift() : undefined;
      for (const proxy of proxies.values()) if (older !== undefined && proxy.manager === older) proxy.cut();
    },
    /** The manager says that everything is as the spec says, and no pod comes or goes; or there is no app. */
    isAtRest(): boolean {
      const app = cluster.app(SHOP);
      if (app === undefined) return true;
      const converged = app.status?.conditions?.find(({ type }) => type === "Converged");
      const isSaid = converged?.status === "True" && converged.observedGeneration === app.metadata.generation;
      const isLeaving = cluster.view.pods().some(({ metadata }) => metadata.deletionTimestamp !== undefined);
      return isSaid && app.metadata.deletionTimestamp === undefined && !isLeaving && cluster.vacancies.length === 0;
    },
  };
}
