// Sends the proxies of an app the list of pods that take reviews of the operator's webhooks. A request names
// an app. Level-based, without memory, so a failover makes no pod unready. A proxy keeps its list when the
// app is gone, because it then owns everything and forwards nothing.

import { carriesProxy, INJECTED_LABEL, takesReviews } from "../../api/injected-pod.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { PEERS, type PeersResource, type PodPeer } from "../../mesh/contract/peer-type.ts";
import { acceptsType } from "../../mesh/contract/resource-type.ts";
import { type FactsOf, podKey } from "../../mesh/handover/proxy-facts.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import { parseRequest, type Reconciler } from "../../runtime/reconciler.ts";
import type { App } from "../apps/app.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { hasEnded, isReadyToStay } from "../facts/app-pods.ts";

/** So an app's proxies get at most ten lists in a second, however many of its pods start together. */
const DEBOUNCE_MS = 100;

export type PeersControllerOptions = ControllerBase & Pick<ManagerContext, "apps" | "pods" | "registry" | "clock">;

export function addPeersController(options: PeersControllerOptions): Controller {
  const { apps, pods, registry } = options;
  const appsIn = (namespace = "") => apps.list(namespace).flatMap(({ ref, spec }) => (spec?.webhook === undefined ? [] : [ref]));
  return controllerOf({ name: "peers", debounceMs: DEBOUNCE_MS, ...options })
    .on(pods.onListed, appsIn)
    .on(pods.onChange, ({ object }) => appsIn(object.metadata.namespace))
    .on(registry.onChange, (pod) => appsIn(parseRequest(pod).namespace))
    .on(apps.onChange, ({ object }) => appsIn(object.metadata.namespace))
    .withReconciler(createPeersReconciler(options));
}

function createPeersReconciler({ apps, pods, registry, clock }: PeersControllerOptions): Reconciler {
  return {
    async reconcile({ namespace, name }) {
      const app = apps.get(name, namespace);
      const podList = pods.list(namespace); // the list of the pods queues the app again
      if (app?.spec?.webhook === undefined || podList === undefined) return {};
      const peers = appPeers(app, podList, registry.facts);
      // One object for all proxies, so that it is encoded once.
      const resource: PeersResource = { version: Math.max(1, clock.now()), digest: PEERS.digest({ peers }), peers };
      for (const peer of peers) {
        const key = podKey(peer);
        if (registry.facts(key)?.capabilities.has(acceptsType(PEERS.name))) registry.publish(key, PEERS, resource);
      }
      return {};
    },
  };
}

function appPeers({ ref, pods: selection }: Pick<App, "ref" | "pods">, pods: readonly Pod[], factsOf: FactsOf): PodPeer[] {
  // A pod without a proxy is not a peer, whatever its labels: it would answer past the proxies.
  const appPods = pods.filter((pod) => pod.metadata.labels?.[INJECTED_LABEL] === ref.name && carriesProxy(pod) && !hasEnded(pod));
  return appPods
    .flatMap((pod): PodPeer[] => {
      const { namespace = "", name = "", uid = "", labels = {} } = pod.metadata;
      const address = pod.status?.podIP ?? "";
      if (address === "" || uid === "") return [];
      // A pod whose labels have changed still acts as the subset of its routes.
      const enforced = factsOf(podKey({ namespace, name }))?.acknowledged;
      const isOwn = enforced?.app.namespace === ref.namespace && enforced.app.name === ref.name;
      const subset = isOwn ? enforced.subset : selection.subsetOf(labels);
      const direct = takesReviews(pod) ? {} : { isDirect: true as const };
      return [{ namespace, name, uid, address, subset, isReady: isReadyToStay(pod), ...direct }];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
