// Tells the proxies of an app which other pods take reviews of the operator's webhooks. Level-based, without
// memory. Invariant: a proxy keeps its list when the app is gone, since it then owns everything and forwards
// nothing.
import type { Clock } from "../../base/clock.ts";
import type { Reconciler } from "../../runtime/reconciler.ts";
import { PEERS, type PeersResource, peersDigest } from "../../wire/peer-type.ts";
import { acceptsType } from "../../wire/resource-type.ts";
import type { Apps } from "../apps/app.ts";
import { podKey } from "../facts/pod-key.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { appPeers } from "./app-peers.ts";

export interface PeersReconcilerOptions {
  readonly apps: Pick<Apps, "get">;
  readonly pods: Pick<PodLists, "list">;
  readonly registry: Pick<ProxyRegistry, "publish" | "facts">;
  readonly clock: Clock;
}

/** The request names an app. */
export function createPeersReconciler({ apps, pods, registry, clock }: PeersReconcilerOptions): Reconciler {
  return {
    async reconcile({ namespace, name }) {
      const app = apps.get(name, namespace);
      const listed = pods.list(namespace); // the list of the pods queues the app again
      if (app?.spec?.webhook === undefined || listed === undefined) return {};
      const peers = appPeers(app, listed, registry.facts);
      // One object for all proxies, so that it is encoded once.
      const resource: PeersResource = { version: Math.max(1, clock.now()), digest: peersDigest(peers), peers };
      for (const peer of peers) {
        const key = podKey(peer);
        if (registry.facts(key)?.capabilities.has(acceptsType(PEERS.name))) registry.publish(key, PEERS, resource);
      }
      return {};
    },
  };
}
