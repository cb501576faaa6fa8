// The pods of an app, which its proxies forward reviews to. Pure. Invariant: nothing here depends on the
// streams of the proxies but the subset of a pod whose labels were changed, so a failover of the manager
// makes no pod unready. Called by the peers controller.
import type { Pod } from "../../kube/client/resources.ts";
import type { PodPeer } from "../../wire/peer-type.ts";
import type { App } from "../apps/app.ts";
import { hasEnded, isReadyToStay } from "../facts/app-pods.ts";
import { carriesProxy, INJECTED_LABEL, takesReviews } from "../facts/injected-pod.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf } from "../facts/proxy-facts.ts";

/** By name. */
export function appPeers({ ref, pods: selection }: Pick<App, "ref" | "pods">, pods: readonly Pod[], factsOf: FactsOf): PodPeer[] {
  // Who may label pods must not add peers: a pod without a proxy would be a subset's pod that answers past
  // the proxies.
  const own = pods.filter((pod) => pod.metadata.labels?.[INJECTED_LABEL] === ref.name && carriesProxy(pod) && !hasEnded(pod));
  return own
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
