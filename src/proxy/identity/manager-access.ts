// How the proxy trusts the manager and proves itself. Invariant: the token goes only to a server that proves
// by TLS 1.3 and a CA of the mesh that it has the manager's configured name, also after a redirect to an
// address. Other pods have certificates of the same CA.
import type { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext } from "node:tls";
import { type ChannelCredentials, type ChannelOptions, credentials as grpcCredentials, Metadata } from "@grpc/grpc-js";
import { isMissing } from "../../base/durable-file.ts";
import { errorMessage, MeshError } from "../../base/errors.ts";
import { createLastGoodFile, type LastGoodFile } from "../../base/last-good-file.ts";
import type { Logger } from "../../base/log.ts";
import { readCertificates } from "../../base/pem.ts";
import { parseAddress } from "../../base/settings.ts";

export interface ManagerPass {
  readonly credentials: ChannelCredentials;
  readonly channelOptions: ChannelOptions;
  readonly metadata: Metadata;
}

export interface ManagerAccess {
  /**
   * Asked before each call, since token and CAs are rotated.
   * @throws MeshError `TOKEN_UNREADABLE`, `MANAGER_CA_UNREADABLE`
   */
  pass(): Promise<ManagerPass>;
}

/** For the loopback and for tests. */
export function createPlainAccess(): ManagerAccess {
  const pass: ManagerPass = {
    credentials: grpcCredentials.createInsecure(),
    channelOptions: {},
    metadata: new Metadata(),
  };
  return { pass: async () => pass };
}

/** @param manager host:port */
export function createMeshAccess(manager: string, trust: MeshTrustStore, tokenFile: string): ManagerAccess {
  const name = parseAddress(manager)?.host;
  if (name === undefined) throw new MeshError("CONFIG_INVALID", `reading the manager's address: ${manager} is not host:port`);
  // TLS has no server name for an address, so any name will do: the certificate is checked for the address.
  const channelOptions = { "grpc.ssl_target_name_override": isIP(name) === 0 ? name : "ctrlmesh-manager" };
  let made: { readonly by: MeshTrust; readonly credentials: ChannelCredentials } | undefined;

  return {
    async pass() {
      const by = await trust.current();
      if (made?.by !== by) made = { by, credentials: trustOnly(by, name) };
      const { credentials } = made;
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

/** Tokens of the API server have about 1 KB. */
const MAX_TOKEN_CHARS = 16 * 1024;

/**
 * Read for each call, since the kubelet rotates it; no error, log or variable keeps the token.
 * @throws MeshError `TOKEN_UNREADABLE` that names the file
 */
export async function readToken(file: string): Promise<string> {
  const token = (await readText(file)).trim();
  if (token === "") throw unreadable(file, "it is empty");
  // gRPC would refuse such a header with the token in its error.
  if (token.length > MAX_TOKEN_CHARS || !/^[\x21-\x7e]+$/.test(token)) throw unreadable(file, "there is no token in it");
  return token;
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw unreadable(file, isMissing(error) ? "there is no such file" : errorMessage(error));
  }
}

function unreadable(file: string, why: string): MeshError {
  return new MeshError("TOKEN_UNREADABLE", `reading this pod's token from ${file}: ${why}`);
}

/** The CAs of the mesh, from the ConfigMap `ctrlmesh-ca`. */
export interface MeshTrust {
  readonly pem: string;
  readonly certificates: readonly X509Certificate[];
}

/** @throws MeshError `MANAGER_CA_UNREADABLE` if there has never been a good one */
export type MeshTrustStore = LastGoodFile<MeshTrust>;

export function createMeshTrustStore(file: string, log: Logger): MeshTrustStore {
  const parse = (pem: string): MeshTrust => ({ pem, certificates: readCertificates(pem, "the bundle") });
  return createLastGoodFile({ file, name: "the mesh's CA", code: "MANAGER_CA_UNREADABLE", parse, log });
}
