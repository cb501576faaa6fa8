// One pod's listener for the operator's webhooks, without a session: routes and peers are set by the caller.
import type { KeyCertificate } from "../../src/base/certificates.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { createRegistry, type Registry } from "../../src/base/metrics.ts";
import { readCertificates } from "../../src/base/pem.ts";
import type { PodPeer } from "../../src/mesh/contract/peer-type.ts";
import { createPolicies, type RunningPolicies } from "../../src/proxy/policies/policies.ts";
import { createPolicyMetrics } from "../../src/proxy/policies/policy-metrics.ts";
import { createReviews, type Reviews } from "../../src/proxy/reviews/create-reviews.ts";
import { createEnforcer, type Enforcer } from "../../src/proxy/session/enforcer.ts";
import type { Peers } from "../../src/proxy/session/peers-handler.ts";

export interface ListenerConfig {
  /** Its address is the one to listen on. */
  readonly peer: PodPeer;
  readonly port: number;
  readonly operatorPort: number;
  readonly certDir: string;
  /** The pod's certificate of the mesh, and the CA of the mesh. */
  readonly identity: KeyCertificate;
  readonly meshPem: string;
}

export interface ReviewListener {
  readonly webhooks: Reviews;
  readonly registry: Registry;
  readonly enforcer: Enforcer;
  readonly policies: RunningPolicies;
}

export async function startListener(
  { peer, port, operatorPort, certDir, identity, meshPem }: ListenerConfig,
  peers: Peers,
): Promise<ReviewListener> {
  const registry = createRegistry("proxy", "test");
  const enforcer = createEnforcer();
  const trust = { pem: meshPem, certificates: readCertificates(meshPem, "the mesh") };
  const common = { clock: systemClock, random: Math.random };
  const policies = createPolicies({
    ...common,
    log: silentLogger(),
    managerAwayMs: () => 0,
    metrics: createPolicyMetrics(registry),
  });
  const webhooks = createReviews(
    { webhooks: { listen: { host: peer.address, port }, port: operatorPort, certDir }, accessLog: 0, drainMs: 500 },
    {
      session: enforcer,
      report: () => undefined,
      peers,
      policies,
      registry,
      log: silentLogger(),
      requestMs: 2_000,
      ...common,
      identity: {
        certificate: { current: () => ({ cert: identity.certPem, key: identity.keyPem }) },
        trust: { current: async () => trust },
      },
      accessLog: { onTapped: () => undefined, copy: () => undefined },
    },
  );
  if (webhooks === undefined) throw new Error("no listener");
  await webhooks.server.start(new AbortController().signal);
  return { webhooks, registry, enforcer, policies };
}
