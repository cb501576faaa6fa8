// Puts the webhooks of the manager together: what each path answers, and from what. Called by app.ts.

import { type Clock, sleep } from "../../base/clock.ts";
import type { ListenAddress } from "../../base/listener.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { ClusterFacts, KnownCluster } from "../facts/cluster-facts.ts";
import type { InjectionSettings } from "../injection/injection.ts";
import type { Apps, Source } from "../sources/app.ts";
import { createAdmitWebhook, createInjectWebhook } from "./inject-webhook.ts";
import { createValidateWebhook, NO_SURROUNDINGS } from "./validate-webhook.ts";
import { type AppName, createRoutes } from "./webhook.ts";
import { createWebhookMetrics } from "./webhook-metrics.ts";
import { createWebhookServer, type ServingIdentity, type WebhookServer } from "./webhook-server.ts";

export interface WebhooksOptions {
  readonly listen: ListenAddress;
  readonly identity: ServingIdentity;
  /** What pods are told, for a cluster of which this is known; undefined if it is too little. */
  readonly facts: Pick<ClusterFacts, "known">;
  readonly settings: (cluster: KnownCluster) => InjectionSettings | undefined;
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly sources: readonly Source[];
  readonly apps: Apps;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metricsRegistry: Registry;
}

/** Far less than the API server waits for an answer. */
const READ_TIMEOUT_MS = 3_000;

/** The server of the webhooks. Every replica runs it. */
export function addWebhooks(options: WebhooksOptions): WebhookServer {
  const { client, informers, sources, apps, clock, facts } = options;
  const read = shareReads(async (app: AppName) => {
    for (const source of sources) {
      try {
        return source.appOf(await client.get(source.resource, app, { timeoutMs: READ_TIMEOUT_MS, maxRetries: 0 }));
      } catch (error) {
        if (!isStatus(error, "NotFound")) throw error;
      }
    }
    return undefined;
  }, clock);
  const settings = () => (facts.known === undefined ? undefined : options.settings(facts.known));
  const inject = createInjectWebhook({ apps, read, settings, clock });
  return createWebhookServer({
    ...options,
    routes: createRoutes({
      inject,
      admit: createAdmitWebhook(inject),
      validateEarly: createValidateWebhook({ ...NO_SURROUNDINGS, sources }),
      validate: createValidateWebhook({ sources, apps, namespaces: informers.store(metadataOnly(NAMESPACES)) }),
    }),
    metrics: createWebhookMetrics(options.metricsRegistry),
  });
}

/** Nothing beside what the API server waits for; a pod that is let through as it is has to be made sure of once in a while only. */
const GATHER_MS = 100;

/**
 * Requests for the same app within a moment share one read, which begins after all of them. Any client can reach the port, and too many reads
 * would delay the renewal of the manager's lease.
 */
export function shareReads<T>(read: (app: AppName) => Promise<T>, clock: Clock): (app: AppName) => Promise<T> {
  const gathering = new Map<string, Promise<T>>();
  return (app) => {
    const key = `${app.namespace}/${app.name}`;
    const known = gathering.get(key);
    if (known !== undefined) return known;
    const next = sleep(clock, GATHER_MS).then(() => {
      gathering.delete(key); // who asks from now on has to be told of what changes from now on
      return read(app);
    });
    gathering.set(key, next);
    return next;
  };
}
