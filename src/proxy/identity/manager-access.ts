// How the proxy trusts the manager and proves itself. Invariant: the token goes only to a server that proves by TLS 1.3 and a CA of the
// mesh that it has the manager's configured name, also after a redirect to an address, since other pods have certificates of the same
// CA. The session's stream and certify.ts use it.
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext } from "node:tls";
import { type ChannelCredentials, type ChannelOptions, credentials as grpcCredentials, Metadata } from "@grpc/grpc-js";
import { MeshError } from "../../base/errors.ts";
import { parseAddress } from "../../base/settings.ts";
import type { MeshTrust, MeshTrustStore } from "./mesh-trust.ts";
import { readToken } from "./token-file.ts";

/** The credentials of one connection, and the metadata of the first call on it. */
export interface ManagerPass {
  readonly credentials: ChannelCredentials;
  readonly channelOptions: ChannelOptions;
  readonly metadata: Metadata;
}

export interface ManagerAccess {
  /**
   * To be asked before each call, since token and CAs are rotated.
   * @throws MeshError `TOKEN_UNREADABLE`, `MANAGER_CA_UNREADABLE`; try again
   */
  pass(): Promise<ManagerPass>;
}

/** Plain text and no token, for the loopback and for tests. */
export function createPlainAccess(): ManagerAccess {
  const pass: ManagerPass = {
    credentials: grpcCredentials.createInsecure(),
    channelOptions: {},
    metadata: new Metadata(),
  };
  return { pass: async () => pass };
}

export interface MeshAccessOptions {
  /** host:port of the manager's service. */
  readonly manager: string;
  readonly trust: MeshTrustStore;
  readonly tokenFile: string;
}

export function createMeshAccess({ manager, trust, tokenFile }: MeshAccessOptions): ManagerAccess {
  const name = parseAddress(manager)?.host;
  if (name === undefined) throw new MeshError("CONFIG_INVALID", `reading the manager's address: ${manager} is not host:port`);
  // An address is no server name in TLS. Then any name will do, since the certificate is checked against the address.
  const channelOptions = { "grpc.ssl_target_name_override": isIP(name) === 0 ? name : "ctrlmesh-manager" };
  let made: { readonly by: MeshTrust; readonly credentials: ChannelCredentials } | undefined;

  const credentialsBy = (by: MeshTrust): ChannelCredentials => {
    if (made?.by !== by) made = { by, credentials: trustOnly(by, name) };
    return made.credentials;
  };
  return {
    async pass() {
      const credentials = credentialsBy(await trust.current());
      const metadata = new Metadata();
      metadata.set("authorization", `Bearer ${await readToken(tokenFile)}`);
      return { credentials, channelOptions, metadata };
    },
  };
}

function trustOnly({ pem }: MeshTrust, name: string): ChannelCredentials {
  const context = createSecureContext({ ca: pem, minVersion: "TLSv1.3" });
  return grpcCredentials.createFromSecureContext(context, {
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
  });
}
