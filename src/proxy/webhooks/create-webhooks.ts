// Puts the listener for the operator's webhooks together, if the settings have one. Invariant: the start waits for nothing that the operator provides.
// Called by assemble.ts.
import type { Clock, Random } from "../../base/clock.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { ListenAddress } from "../../base/listener.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import type { PodPeer } from "../../wire/peer-type.ts";
import { stack } from "../http/stack.ts";
import type { AccessLog } from "../observe/access-log.ts";
import type { Policies } from "../policies/policies.ts";
import { createTrafficServer, type TrafficServer } from "../server/traffic-server.ts";
import type { Session } from "../session/session.ts";
import { MAX_TIMEOUT_MS } from "./choose-peer.ts";
import { createOperatorCertificate } from "./operator-certificate.ts";
import { createOperatorClient } from "./operator-client.ts";
import { createPeerClients } from "./peer-clients.ts";
import { peerNamesOf } from "./peer-names.ts";
import { createPlacesBefore } from "./places-before.ts";
import { type PeerIdentity, reviewsTls } from "./reviews-tls.ts";
import { webhookLayers } from "./stack.ts";
import { createWebhookMetrics } from "./webhook-metrics.ts";

/** An API server keeps some connections, and has some hundreds of reviews at once. Every pod of the cluster can connect. */
export const MAX_CONNECTIONS = 2_000;

export interface WebhooksConfig {
  readonly listen: ListenAddress;
  /** Of the operator's webhook server, on 127.0.0.1. */
  readonly port: number;
  /** The folder with tls.crt and tls.key of the operator's webhook server. */
  readonly certDir: string;
}

export interface WebhooksDeps {
  readonly session: Pick<Session, "current" | "onChange">;
  /** See OperatorCertificateOptions. */
  readonly report: (problem: string) => void;
  readonly peers: { readonly current: readonly PodPeer[] };
  readonly identity: PeerIdentity | undefined;
  readonly accessLog: AccessLog;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly policies: Pick<Policies, "hasLimits" | "admit">;
  readonly drainMs: number;
  /** How long a client may take to send a whole request; default: the most that an API server waits for a webhook. */
  readonly requestMs?: number;
}

/** After the end of a pod began, API servers and peers may still take it for ready for a moment. */
const OPEN_MS = 3_000;

export interface Webhooks {
  /** What the server uses: starts before it, and stops after it. */
  readonly clients: readonly Runnable[];
  readonly server: TrafficServer;
  readonly listen: ListenAddress;
  /** Why no API server can be answered, with the remedy; undefined if it can. */
  readonly notReady: string | undefined;
}

export function createWebhooks(config: WebhooksConfig | undefined, deps: WebhooksDeps): Webhooks | undefined {
  if (config === undefined) return undefined;
  const { session, report, identity, registry, clock, log, drainMs, requestMs = MAX_TIMEOUT_MS } = deps;
  const { listen, port, certDir } = config;
  const certificate = createOperatorCertificate({ certDir, report, clock, log });
  const operator = createOperatorClient({ port, certificate, clock });
  const clients = createPeerClients({ identity, port: listen.port, clock });
  const before = createPlacesBefore();
  session.onChange(before.follow);
  const metrics = createWebhookMetrics(registry, () => certificate.pair !== undefined);
  const server = createTrafficServer({
    listen,
    tls: reviewsTls(certificate, identity),
    stack: stack(webhookLayers({ ...deps, operator, clients, before, metrics }), clock),
    createRecord: (client) => ({ peerNames: peerNamesOf(client) }),
    clock,
    log,
    drainMs,
    openMs: OPEN_MS,
    requestMs,
    maxConnections: MAX_CONNECTIONS,
  });
  return {
    clients: [certificate, operator, clients],
    server,
    listen,
    get notReady() {
      return certificate.pair === undefined ? `the operator's webhooks: ${certificate.problem}` : undefined;
    },
  };
}
