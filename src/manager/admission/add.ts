// Connects the manager's webhooks with their paths and their facts. Called by app.ts.
import { type Clock, sleep } from "../../base/clock.ts";
import type { ListenAddress } from "../../base/listener.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { NAMESPACES, STATEFUL_SETS } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { Apps, Source } from "../apps/app.ts";
import type { Compile } from "../apps/compile/compiler.ts";
import { namespaceFacts } from "../apps/compile/route-spec.ts";
import type { ClusterFacts, KnownCluster } from "../facts/cluster-facts.ts";
import type { InjectionSettings } from "../injection/injection.ts";
import { POLICY_KINDS } from "../policies/policy-kinds.ts";
import { createAppWait } from "./await-app.ts";
import { checkedNamespaces } from "./checked-namespaces.ts";
import { checkedPolicies } from "./checked-policies.ts";
import { checkedSources } from "./checked-sources.ts";
import { createClientCa } from "./client-ca.ts";
import { createMoveCounter } from "./count-moves.ts";
import { createAdmitWebhook, createInjectWebhook } from "./inject-webhook.ts";
import { createRevisionKeeper } from "./keep-revision.ts";
import { createMoveLimit } from "./move-limit.ts";
import { createReadLimit } from "./read-limit.ts";
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
  readonly compile: Compile;
  /** Edits are answered with what they move; edits of namespaces are looked at too. */
  readonly warnsOfMoves: boolean;
  /** File with the CAs of those who may call; "": everybody may. */
  readonly clientCaFile?: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metricsRegistry: Registry;
}

/** Much shorter than the API server's timeout. */
const READ_TIMEOUT_MS = 3_000;

/** The server of the webhooks. Every replica runs it. */
export function addWebhooks(options: WebhooksOptions): WebhookServer {
  const { client, informers, sources, apps, compile, warnsOfMoves, clock, log, facts, clientCaFile: file = "" } = options;
  const limit = createReadLimit(clock);
  const read = shareReads(async (app, address) => {
    for (const source of sources) {
      const { items } = await limit(address, () =>
        client.list(source.resource, { namespace: app.namespace, timeoutMs: READ_TIMEOUT_MS, maxRetries: 0 }),
      );
      const found = source.appsOf(items).find(({ ref }) => ref.name === app.name);
      if (found !== undefined) return found;
    }
    return undefined;
  }, clock);
  const settings = () => (facts.known === undefined ? undefined : options.settings(facts.known));
  const policies = checkedPolicies(POLICY_KINDS);
  const namespaces = informers.store(metadataOnly(NAMESPACES));
  const moveLimit = createMoveLimit();
  const countMoves = createMoveCounter({
    ...{ compile, limit: moveLimit },
    namespaces: () => (namespaces.hasSynced ? namespaces.list().map(namespaceFacts) : undefined),
  });
  const statefulSets = informers.store(metadataOnly(STATEFUL_SETS));
  const keepRevision = createRevisionKeeper({ client, statefulSets, limit });
  const inject = createInjectWebhook({ apps, read, keepRevision, settings });
  /** Callers are API servers then, and nobody else. */
  const provesCallers = file !== "";
  return createWebhookServer({
    ...options,
    ...(provesCallers && { clientCa: createClientCa({ file, clock, log }) }),
    routes: createRoutes({
      inject,
      awaitApp: createAppWait({ apps, clock }),
      admit: createAdmitWebhook(inject),
      validateEarly: createValidateWebhook([...checkedSources({ sources, apps: NO_APPS }), ...policies]),
      validate: createValidateWebhook([
        ...checkedSources({ sources, apps, countMoves: warnsOfMoves || provesCallers ? countMoves : undefined }),
        ...policies,
        ...(warnsOfMoves ? [checkedNamespaces({ apps, compile, limit: moveLimit, clock })] : []),
      ]),
    }),
    metrics: createWebhookMetrics(options.metricsRegistry),
  });
}

const NO_APPS: Pick<Apps, "list"> = { list: () => [] };

/**
 * Short compared with the API server's timeout. Only a pod that would pass unchanged needs such a read, and
 * that is rare.
 */
const GATHER_MS = 100;

type ReadApp<T> = (app: AppName, address: string) => Promise<T>;

/**
 * Requests of one address for the same app within this time share one read, which begins after all of them.
 * Any client can reach the port, and too many reads would delay the renewal of the manager's lease. Addresses
 * share none, since each waits for its own turn (read-limit.ts).
 */
export function shareReads<T>(read: ReadApp<T>, clock: Clock): ReadApp<T> {
  const gathering = new Map<string, Promise<T>>();
  return (app, address) => {
    const key = `${address} ${app.namespace}/${app.name}`;
    const known = gathering.get(key);
    if (known !== undefined) return known;
    const next = sleep(clock, GATHER_MS).then(() => {
      gathering.delete(key); // a later request needs a later read
      return read(app, address);
    });
    gathering.set(key, next);
    return next;
  };
}
