// Connects the manager's webhooks with their paths and their facts.
import { metadataOnly } from "../../kube/client/resource.ts";
import { NAMESPACES, STATEFUL_SETS } from "../../kube/client/resources.ts";
import type { Apps } from "../apps/app.ts";
import type { Compile } from "../apps/compile/compiler.ts";
import { namespaceFacts } from "../apps/compile/route-spec.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import type { ClusterFacts, KnownCluster } from "../facts/cluster-facts.ts";
import type { InjectionSettings } from "../injection/injection.ts";
import { POLICY_KINDS } from "../policies/add.ts";
import { createAskedProxyWebhook } from "./inject/asked-proxy.ts";
import { createAdmitWebhook, createAppWait, createInjectWebhook } from "./inject/inject-webhook.ts";
import { createRevisionKeeper } from "./inject/keep-revision.ts";
import { createAppReader, createReadLimit } from "./inject/review-reads.ts";
import { createClientCa } from "./server/client-ca.ts";
import { createRoutes } from "./server/webhook.ts";
import { createWebhookServer, type WebhookServer, type WebhookServerOptions } from "./server/webhook-server.ts";
import { checkedNamespaces, createMoveCounter, createMoveLimit } from "./validate/edit-moves.ts";
import { checkedMeshClusters } from "./validate/mesh-clusters.ts";
import { checkedPolicies, checkedSources, createValidateWebhook } from "./validate/validate-webhook.ts";

interface WebhooksOptions
  extends Pick<ManagerContext, "client" | "informers" | "sources" | "apps" | "clock" | "log">,
    Pick<WebhookServerOptions, "listen" | "identity" | "metricsRegistry"> {
  /** Undefined until the required facts about the cluster are known. */
  readonly facts: Pick<ClusterFacts, "known">;
  readonly settings: (cluster: KnownCluster) => InjectionSettings | undefined;
  readonly compile: Compile;
  /** Answers to edits of apps and of the labels of namespaces warn of what they move. */
  readonly warnsOfMoves: boolean;
  /** File with the CAs of the clients that may call; "": every client may. */
  readonly clientCaFile?: string;
}

/** Every replica runs the server. */
export function addWebhooks(options: WebhooksOptions): WebhookServer {
  const { client, informers, sources, apps, compile, warnsOfMoves, clock, log, facts, clientCaFile: file = "" } = options;
  const limit = createReadLimit(clock);
  const settings = () => (facts.known === undefined ? undefined : options.settings(facts.known));
  const others = [checkedMeshClusters, ...checkedPolicies(POLICY_KINDS)];
  const namespaces = informers.store(metadataOnly(NAMESPACES));
  const moveLimit = createMoveLimit();
  const countMoves = createMoveCounter({
    compile,
    limit: moveLimit,
    namespaces: () => (namespaces.hasSynced ? namespaces.list().map(namespaceFacts) : undefined),
  });
  const statefulSets = informers.store(metadataOnly(STATEFUL_SETS));
  const keepRevision = createRevisionKeeper({ client, statefulSets, limit });
  const inject = createInjectWebhook({ apps, read: createAppReader({ client, sources, limit, clock }), keepRevision, settings });
  /** True if only API servers can call. */
  const provesCallers = file !== "";
  return createWebhookServer({
    ...options,
    ...(provesCallers && { clientCa: createClientCa({ file, clock, log }) }),
    routes: createRoutes({
      inject,
      awaitApp: createAppWait({ apps, clock }),
      admit: createAdmitWebhook(inject),
      asked: createAskedProxyWebhook({ apps, sources }),
      validateEarly: createValidateWebhook([...checkedSources({ sources, apps: NO_APPS }), ...others]),
      validate: createValidateWebhook([
        ...checkedSources({ sources, apps, countMoves: warnsOfMoves || provesCallers ? countMoves : undefined }),
        ...others,
        ...(warnsOfMoves ? [checkedNamespaces({ apps, compile, limit: moveLimit, clock })] : []),
      ]),
    }),
  });
}

const NO_APPS: Pick<Apps, "list"> = { list: () => [] };
