// Connects the manager's webhooks with their paths and their facts. Called by app.ts.

import { type Clock, sleep } from "../../base/clock.ts";
import type { ListenAddress } from "../../base/listener.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { ClusterFacts, KnownCluster } from "../facts/cluster-facts.ts";
import type { InjectionSettings } from "../injection/injection.ts";
import { POLICY_KINDS } from "../policies/policy-kinds.ts";
import type { Apps, Source } from "../sources/app.ts";
import { checkedNamespaces } from "./checked-namespaces.ts";
import { checkedPolicies } from "./checked-policies.ts";
import { checkedSources, NO_SURROUNDINGS } from "./checked-sources.ts";
import { createAdmitWebhook, createInjectWebhook } from "./inject-webhook.ts";
import { createRevisionKeeper } from "./keep-revision.ts";
import { createValidateWebhook } from "./validate-webhook.ts";
import { type AppName, createRoutes } from "./webhook.ts";
import { createWebhookMetrics } from "./webhook-metrics.ts";
import { createWebhookServer, type ServingIdentity, type WebhookServer } from "./webhook-server.ts";

export interface WebhooksOptions {
  readonly listen: ListenAddress;
  readonly identity: ServingIdentity;
  /** The settings for injected pods; undefined until the required facts about the cluster are known. */
  readonly facts: Pick<ClusterFacts, "known">;
  readonly settings: (cluster: KnownCluster) => InjectionSettings | undefined;
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly sources: readonly Source[];
  readonly apps: Apps;
  /** Edits of namespaces are looked at too. */
  readonly warnsOfMoves: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metricsRegistry: Registry;
}

/** Much shorter than the API server's timeout. */
const READ_TIMEOUT_MS = 3_000;

/** The server of the webhooks. Every replica runs it. */
export function addWebhooks(options: WebhooksOptions): WebhookServer {
  const { client, informers, sources, apps, clock, facts } = options;
  const read = shareReads(async (app: AppName) => {
    for (const source of sources) {
      const { items } = await client.list(source.resource, {
        namespace: app.namespace,
        timeoutMs: READ_TIMEOUT_MS,
        maxRetries: 0,
      });
      const found = source.appsOf(items).find(({ ref }) => ref.name === app.name);
      if (found !== undefined) return found;
    }
    return undefined;
  }, clock);
  const settings = () => (facts.known === undefined ? undefined : options.settings(facts.known));
  const policies = checkedPolicies(POLICY_KINDS);
  const namespaces = informers.store(metadataOnly(NAMESPACES));
  const inject = createInjectWebhook({ apps, read, keepRevision: createRevisionKeeper(client), settings, clock });
  return createWebhookServer({
    ...options,
    routes: createRoutes({
      inject,
      admit: createAdmitWebhook(inject),
      validateEarly: createValidateWebhook([...checkedSources({ ...NO_SURROUNDINGS, sources }), ...policies]),
      validate: createValidateWebhook([
        ...checkedSources({ sources, apps, namespaces }),
        ...policies,
        ...(options.warnsOfMoves ? [checkedNamespaces(apps)] : []),
      ]),
    }),
    metrics: createWebhookMetrics(options.metricsRegistry),
  });
}

/** Short compared with the API server's timeout. Only a pod that would pass unchanged needs such a read, and that is rare. */
const GATHER_MS = 100;

/**
 * Requests for the same app within this time share one read, which begins after all of them. Any client can reach the port, and
 * too many reads would delay the renewal of the manager's lease.
 */
export function shareReads<T>(read: (app: AppName) => Promise<T>, clock: Clock): (app: AppName) => Promise<T> {
  const gathering = new Map<string, Promise<T>>();
  return (app) => {
    const key = `${app.namespace}/${app.name}`;
    const known = gathering.get(key);
    if (known !== undefined) return known;
    const next = sleep(clock, GATHER_MS).then(() => {
      gathering.delete(key); // a later request needs a later read
      return read(app);
    });
    gathering.set(key, next);
    return next;
  };
}
