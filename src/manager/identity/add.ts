// Makes the mesh's identity: the CA, this replica's certificate, and the check and certification of proxies.
import { createClientPace } from "../../base/client-pace.ts";
import { Gauge, type Registry } from "../../base/metrics.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { SECRETS } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { Apps } from "../apps/app.ts";
import { createClusterFacts } from "../facts/cluster-facts.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import { type Certifier, createCertifier } from "./certifier.ts";
import { createIdentify, type Identify, REFUSED_TOKENS } from "./identify.ts";
import { createIsLed, createManagedCa } from "./managed-ca.ts";
import { createMeshIdentity, type ManagerNames, type MeshIdentity, managerNames, type SigningIdentity } from "./mesh-identity.ts";
import { createMeshNamespaces } from "./mesh-namespaces.ts";
import { createProvidedCa } from "./provided-ca.ts";
import { createRejections, type Rejections } from "./rejections.ts";
import { createTokenReviewer } from "./token-reviewer.ts";

interface IdentityOptions extends ManagerNames, Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly client: KubeClient;
  readonly informers: Pick<Informers, "store">;
  readonly leaseName: string;
  /** The Secret of a CA that the user provides; "" if the mesh has its own. */
  readonly caSecret: string;
  readonly caSettleMs: number;
  readonly certificateLifetimeMs: number;
  /** How long kube-apiserver accepts a token that it has found valid. */
  readonly apiServerTokenCacheMs: number;
  readonly pods: readonly PodLists[];
  readonly apps: Pick<Apps, "hasSynced" | "list">;
  readonly isLeader: () => boolean;
  readonly metricsRegistry: Registry;
}

const OWN_SECRET = "ctrlmesh-ca";

/** The runnables must start before the servers. Their start waits for a CA. */
export function addIdentity(options: IdentityOptions) {
  const { client, namespace, clusterDomain, clock, random, log, metricsRegistry, isLeader, caSecret } = options;
  const ref = { namespace, name: caSecret === "" ? OWN_SECRET : caSecret };
  const place = { client, ...ref, settleMs: options.caSettleMs, clock, log };
  const isLed = createIsLed({ client, namespace, name: options.leaseName, clock });
  const identity = createMeshIdentity({
    source: caSecret === "" ? createManagedCa({ ...place, isLeader, isLed }) : createProvidedCa(place),
    names: managerNames(options),
    clock,
    random,
    log,
  });
  // The watch reads no keys: it only tells of changes.
  const secrets = options.informers.store(metadataOnly(SECRETS), { namespace, fieldSelector: `metadata.name=${ref.name}` });
  secrets.onChange(() => void identity.refresh());
  const facts = createClusterFacts({ client, service: { namespace, name: options.serviceName }, clock, log });
  const rejections = createRejections({ registry: metricsRegistry, clock, log });
  const certify = createCertifier({
    identity,
    pods: options.pods,
    client,
    isOfMesh: createMeshNamespaces(options.apps, options.informers),
    clusterIPs: () => facts.known?.kubernetesService.ips,
    clusterDomain,
    lifetimeMs: options.certificateLifetimeMs,
    clock,
  });
  addExpiryMetric(metricsRegistry, identity);
  const identify = createIdentify({
    reviewer: createTokenReviewer({ client, clock, goodMs: options.apiServerTokenCacheMs }),
    rejections,
    limit: createClientPace({ ...REFUSED_TOKENS, clock }),
  });
  const security: ServerSecurity = { identity, identify, certify, rejections };
  return { identity, runnables: [identity, facts], facts, security };
}

function addExpiryMetric(registry: Registry, identity: SigningIdentity): void {
  new Gauge({
    name: "ctrlmesh_certificate_expiry_timestamp_seconds",
    help: "When a certificate expires, in seconds since the epoch, by name: ca, next-ca or serving.",
    labelNames: ["name"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [name, atMs] of Object.entries(identity.expiries)) this.set({ name }, atMs / 1000);
    },
  });
}

export interface ServerSecurity {
  readonly identity: Pick<MeshIdentity, "serving" | "onChange">;
  readonly identify: Identify;
  readonly certify: Certifier;
  readonly rejections: Rejections;
}
