// Which identity the proxy has, by its settings: how the manager is trusted and told who we are, and what is served with. Called by
// app.ts for the one and by assemble.ts for the other.
import type { ServiceDefinition } from "@grpc/grpc-js";
import type { Clock, Random } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import { createCertificateFromFiles } from "./certificate-files.ts";
import { createCertificateHolder } from "./certificate-holder.ts";
import { createCertify } from "./certify.ts";
import { createIdentityMetrics } from "./identity-metrics.ts";
import { createMeshAccess, createPlainAccess, type ManagerAccess } from "./manager-access.ts";
import type { openManagerChannel } from "./manager-channel.ts";
import { createMeshCertificate } from "./mesh-certificate.ts";
import { createMeshTrustStore } from "./mesh-trust.ts";
import { createOwnCertificate } from "./own-certificate.ts";
import type { ServingCertificate } from "./serving-certificate.ts";

export interface IdentityConfig {
  /** host:port of the manager's service. */
  readonly manager: string;
  /** The files of the mesh's identity; undefined: none. */
  readonly identity: { readonly managerCa: string; readonly token: string } | undefined;
  /** Files to serve with, whatever the identity is. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly dataDir: string;
}

export interface IdentityDeps {
  readonly config: IdentityConfig;
  readonly service: ServiceDefinition;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Default: gRPC. */
  readonly connect?: typeof openManagerChannel;
}

export interface Identity {
  readonly access: ManagerAccess;
  readonly certificate: ServingCertificate;
}

export function createIdentity(deps: IdentityDeps): Identity {
  const { config, registry, clock, log } = deps;
  const { manager, identity, tls, dataDir } = config;
  const holder = createCertificateHolder(registry);
  if (identity === undefined) {
    const certificate =
      tls === undefined
        ? createOwnCertificate({ dataDir, holder, clock, log })
        : createCertificateFromFiles({ files: tls, holder, clock, log });
    return { access: createPlainAccess(), certificate };
  }
  const trust = createMeshTrustStore(identity.managerCa, log);
  const access = createMeshAccess({ manager, trust, tokenFile: identity.token });
  if (tls !== undefined) return { access, certificate: createCertificateFromFiles({ files: tls, holder, clock, log }) };
  const certify = createCertify({ ...deps, manager, access });
  const metrics = createIdentityMetrics(registry);
  const certificate = createMeshCertificate({
    ...deps,
    ...{ manager, trust, certify, metrics, dataDir, holder },
    caFile: identity.managerCa,
  });
  return { access, certificate };
}
