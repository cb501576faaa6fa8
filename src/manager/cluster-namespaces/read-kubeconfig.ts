// A kubeconfig that a tenant wrote, for a client of the manager. Pure. Invariants: it can name nothing but one of the MeshCluster's
// own servers and credentials that are in its text; a problem names the field and shows nothing of the text.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { clusterServerSchema, serverPathOf } from "../../api/mesh-cluster.ts";
import { fieldAt, fieldsOf, isObject, itemsOf } from "../../api/rule.ts";
import { isMeshError, MeshError } from "../../base/errors.ts";
import { readCertificates } from "../../base/pem.ts";
import type { KubeConnection } from "../../kube/client/connection.ts";
import { readPlainYaml } from "./plain-yaml.ts";

/** A kubeconfig with certificates has a few KB. */
export const MAX_KUBECONFIG_BYTES = 64 * 1024;

export type TenantConnection = Pick<KubeConnection, "server" | "caPem" | "tlsServerName" | "clientCert" | "clientKey"> & {
  readonly token: () => string;
};

export type TenantKubeconfig =
  | { readonly ok: true; readonly connection: TenantConnection }
  | { readonly ok: false; readonly problem: string };

/** Fields that name a program, a file, another server or another user, or that check less. */
const KNOWN_REFUSED: ReadonlySet<string> = new Set([
  "exec",
  "auth-provider",
  "tokenFile",
  "token-file",
  "client-certificate",
  "client-key",
  "certificate-authority",
  "proxy-url",
  "insecure-skip-tls-verify",
  "username",
  "password",
  "as",
  "as-uid",
  "as-groups",
  "as-user-extra",
]);
const CLUSTER_FIELDS = ["server", "certificate-authority-data", "tls-server-name", "disable-compression", "extensions"];
const USER_FIELDS = ["token", "client-certificate-data", "client-key-data", "extensions"];
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
/** What a header may carry. */
const TOKEN = /^[\x21-\x7e]+$/;

/** @param servers host:port and path of each server that the kubeconfig may name */
export function readTenantKubeconfig(text: string, servers: readonly string[]): TenantKubeconfig {
  try {
    return { ok: true, connection: connectionIn(text, servers) };
  } catch (error) {
    return { ok: false, problem: isMeshError(error, "KUBECONFIG_INVALID") ? error.message : "it cannot be used" };
  }
}

/** Its message has no text of the kubeconfig. */
class Refusal extends MeshError {
  constructor(message: string) {
    super("KUBECONFIG_INVALID", message);
  }
}

function connectionIn(text: string, servers: readonly string[]): TenantConnection {
  if (Buffer.byteLength(text) > MAX_KUBECONFIG_BYTES) throw new Refusal(`it is longer than ${MAX_KUBECONFIG_BYTES} bytes`);
  const config = readPlainYaml(text);
  if (!isObject(config)) throw new Refusal("it is no kubeconfig; `data` of a Secret has it in base64 once");
  const current = textAt(config, "", "current-context");
  if (current === undefined) throw new Refusal("current-context: must be set, to the name of an item of contexts");
  const context = named(config, "contexts", "context", current, "current-context");
  const cluster = named(config, "clusters", "cluster", fieldAt(context, "cluster"), "the current context's cluster");
  const user = named(config, "users", "user", fieldAt(context, "user"), "the current context's user");
  checkFields("cluster", cluster, CLUSTER_FIELDS);
  checkFields("user", user, USER_FIELDS);
  const server = textAt(cluster, "cluster", "server") ?? "";
  const path = clusterServerSchema.safeParse(server).success ? serverPathOf(server) : undefined;
  if (path === undefined) throw new Refusal("cluster.server: must be an https URL without a user");
  if (!servers.includes(path))
    throw new Refusal("cluster.server: must be one of spec.servers, with the same host, port and path");
  const tlsServerName = textAt(cluster, "cluster", "tls-server-name");
  if (tlsServerName !== undefined && !HOST_NAME.test(tlsServerName)) {
    throw new Refusal("cluster.tls-server-name: must be a host name");
  }
  return {
    server,
    tlsServerName,
    caPem: certificatesAt(cluster, "cluster", "certificate-authority-data"),
    ...credentialsOf(user),
  };
}

function credentialsOf(user: object): Pick<TenantConnection, "token" | "clientCert" | "clientKey"> {
  const token = textAt(user, "user", "token")?.trim() ?? "";
  if (token !== "" && !TOKEN.test(token)) throw new Refusal("user.token: has characters that no token has");
  const clientCert = certificatesAt(user, "user", "client-certificate-data");
  const clientKey = keyAt(user, "user", "client-key-data");
  if ((clientCert === undefined) !== (clientKey === undefined)) {
    throw new Refusal("user: client-certificate-data and client-key-data need each other");
  }
  if (clientCert !== undefined && clientKey !== undefined && !isKeyOf(clientKey, clientCert)) {
    throw new Refusal("user.client-key-data: must be the key of the first certificate in client-certificate-data");
  }
  if (token === "" && clientCert === undefined) throw new Refusal("user: has neither token nor client-certificate-data");
  return { token: () => token, clientCert, clientKey };
}

/** Such a pair makes each connection fail, and the error names no field. */
function isKeyOf(keyPem: string, certificatesPem: string): boolean {
  return new X509Certificate(certificatesPem).checkPrivateKey(createPrivateKey(keyPem));
}

/** The content of the item with this name. */
function named(config: unknown, list: string, field: string, name: unknown, from: string): object {
  const [item, second] = itemsOf(fieldAt(config, list)).filter(
    (each) => typeof name === "string" && fieldAt(each, "name") === name,
  );
  if (second !== undefined) throw new Refusal(`${list}: has two items that ${from} names`);
  const content = fieldAt(item, field);
  if (!isObject(content)) throw new Refusal(`${list}: has no item that ${from} names`);
  return content;
}

function checkFields(where: string, content: object, allowed: readonly string[]): void {
  for (const [name, value] of Object.entries(fieldsOf(content))) {
    const isOff = name === "insecure-skip-tls-verify" && value === false;
    if (allowed.includes(name) || isOff || value === "" || value === null) continue;
    const field = KNOWN_REFUSED.has(name)
      ? `${where}.${name}: not allowed here`
      : `${where}: has a field that is not allowed here`;
    throw new Refusal(`${field}; allowed are ${allowed.join(", ")}`);
  }
}

/** Undefined if the field is missing or empty. */
function textAt(content: object, where: string, field: string): string | undefined {
  const value = fieldAt(content, field) ?? "";
  if (typeof value !== "string") throw new Refusal(`${where === "" ? "" : `${where}.`}${field}: must be a text`);
  return value === "" ? undefined : value;
}

function certificatesAt(content: object, where: string, field: string): string | undefined {
  const data = textAt(content, where, field);
  if (data === undefined) return undefined;
  try {
    return readCertificates(Buffer.from(data, "base64").toString("latin1"), field)
      .map((certificate) => certificate.toString())
      .join("");
  } catch {
    throw new Refusal(`${where}.${field}: must be the base64 text of PEM certificates`);
  }
}

function keyAt(content: object, where: string, field: string): string | undefined {
  const data = textAt(content, where, field);
  if (data === undefined) return undefined;
  try {
    const pem = Buffer.from(data, "base64").toString("latin1");
    createPrivateKey(pem);
    return pem;
  } catch {
    throw new Refusal(`${where}.${field}: must be the base64 text of a private key in PEM`);
  }
}
