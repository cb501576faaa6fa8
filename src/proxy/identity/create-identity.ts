// Creates, by the settings, the proxy's access to the manager and its serving certificate.
import type { ProcessContext } from "../../base/process-context.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { createCertify } from "./certify.ts";
import { createMeshAccess, createMeshTrustStore, createPlainAccess } from "./manager-access.ts";
import type { openManagerChannel } from "./manager-channel.ts";
import { createMeshCertificate } from "./mesh-certificate.ts";
import { createCertificateHolder } from "./serving-certificate.ts";
import { readPair } from "./tls-pair.ts";
import { createOwnCertificate, createWatchedCertificate } from "./watched-certificate.ts";

export interface IdentityConfig {
  readonly manager: string;
  readonly identity: { readonly managerCa: string; readonly token: string } | undefined;
  /** Files to serve with, whatever the identity is. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly dataDir: string;
}

export interface IdentityDeps extends ProcessContext {
  readonly config: IdentityConfig;
  readonly state: Pick<StateFolder, "certificate">;
  /** The URI of this pod, if peers have to know it. */
  readonly clientName?: string | undefined;
  readonly connect?: typeof openManagerChannel;
}

/** `peerTrust`: the CAs by which proxies know each other; undefined if the certificate is not of the mesh. */
export function createIdentity(deps: IdentityDeps) {
  const { config, registry, clock, log } = deps;
  const { manager, identity, tls, dataDir } = config;
  const holder = createCertificateHolder(registry);
  const mesh = identity && { ...identity, trust: createMeshTrustStore(identity.managerCa, log) };
  const access = mesh ? createMeshAccess(manager, mesh.trust, mesh.token) : createPlainAccess();
  const watched = { holder, clock, log };
  if (tls !== undefined)
    return {
      access,
      certificate: createWatchedCertificate({ ...watched, next: () => readPair(tls.cert, tls.key) }),
      peerTrust: undefined,
    };
  if (mesh === undefined) return { access, certificate: createOwnCertificate({ ...watched, dataDir }), peerTrust: undefined };
  const certify = createCertify({ ...deps, manager, access });
  const { trust, managerCa: caFile } = mesh;
  const certificate = createMeshCertificate({ ...deps, manager, trust, certify, slot: deps.state.certificate, holder, caFile });
  return { access, certificate, peerTrust: trust };
}
