// The kubeconfig by which an operator uses another cluster through its proxy, derived from one that leads there directly. Pure.
// Invariants: the credentials stay as they are; what the proxy cannot pass on is refused, with the field.
import { parse } from "yaml";
import { z } from "zod";
import { API_PORT } from "../../api/injected-pod.ts";
import { serverPathOf } from "../../api/mesh-cluster.ts";
import { validate } from "../../api/problems.ts";
import { SERVICE_ACCOUNT_DIR } from "../../kube/client/connection.ts";
import { CLUSTERS_PATH } from "../../mesh/ownership/clusters.ts";
import { failure } from "../frame/command.ts";

const NAMED = { name: z.string() };
const KUBECONFIG = z.looseObject({
  "current-context": z.string().default(""),
  clusters: z.array(z.looseObject({ ...NAMED, cluster: z.looseObject({ server: z.string() }) })).default([]),
  users: z.array(z.looseObject({ ...NAMED, user: z.looseObject({}).nullish() })).default([]),
  contexts: z
    .array(z.looseObject({ ...NAMED, context: z.looseObject({ cluster: z.string(), user: z.string().optional() }) }))
    .default([]),
});

/** They are proved by the TLS connection, which ends at the proxy. */
const BOUND_TO_TLS = ["client-certificate", "client-certificate-data", "client-key", "client-key-data"];
/** The proxy passes a bearer token on, and nothing else. */
const TOKENS = ["token", "tokenFile", "exec"];
const NOT_A_TOKEN = ["username", "password", "auth-provider"];
/** What a header may carry. */
const TOKEN = /^[\x21-\x7e]+$/;
/** How to connect to the cluster, which the MeshCluster decides. Nobody expects to keep the CA, but somebody may need these. */
const OF_THE_CONNECTION = ["proxy-url", "insecure-skip-tls-verify"];

interface Target {
  /** Name of the MeshCluster. */
  readonly cluster: string;
  /** Its `spec.servers`. */
  readonly servers: readonly string[];
  /** Default: the current context. */
  readonly context?: string | undefined;
}

interface Derived {
  readonly kubeconfig: object;
  /** Paths of the fields about the connection that were left out. */
  readonly leftOut: readonly string[];
}

/** @throws MeshError for a kubeconfig that cannot be used */
export function deriveKubeconfig(text: string, { cluster: name, servers, context: wanted }: Target): Derived {
  const config = readKubeconfig(text);
  const contextName = wanted ?? config["current-context"];
  const contexts = namesOf(config.contexts);
  if (config.contexts.length === 0) throw failure("the file is no kubeconfig: it has no contexts");
  if (contextName === "") throw failure(`current-context: not set: name one of ${contexts} with --file-context`);
  const context = config.contexts.find((each) => each.name === contextName)?.context;
  if (context === undefined) throw failure(`the file has no context ${JSON.stringify(contextName)}; it has: ${contexts}`);
  const absent = (list: string, item: string) =>
    failure(`context ${JSON.stringify(contextName)}: ${list}: ${JSON.stringify(item)} is missing or empty`);
  const cluster = config.clusters.find((each) => each.name === context.cluster)?.cluster;
  const user = config.users.find((each) => each.name === context.user)?.user;
  if (cluster === undefined) throw absent("clusters", context.cluster);
  const { server, extensions } = cluster;
  if (server.includes("@")) throw failure("clusters.cluster.server: must be a URL without a user");
  const listed = servers.map(serverPathOf);
  if (!listed.includes(serverPathOf(server) ?? ""))
    throw failure(`clusters.cluster.server: ${server} is not a server of meshcluster ${name}, which has ${servers.join(", ")}`);
  if (user == null) throw absent("users", context.user ?? "");
  checkUser(user);
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [
      {
        name,
        cluster: {
          server: `https://127.0.0.1:${API_PORT}${CLUSTERS_PATH}${name}`,
          "certificate-authority": `${SERVICE_ACCOUNT_DIR}/ca.crt`,
          // Settings of exec plugins.
          ...(isSet(extensions) && { extensions }),
        },
      },
    ],
    users: [{ name, user }],
    contexts: [{ name, context: { ...context, cluster: name, user: name } }],
  };
  const leftOut = OF_THE_CONNECTION.filter((field) => isSet(cluster[field]) && cluster[field] !== false);
  return { kubeconfig, leftOut: leftOut.map((field) => `clusters.cluster.${field}`) };
}

/** @throws MeshError for credentials that the proxy cannot pass on */
function checkUser(user: Readonly<Record<string, unknown>>): void {
  const fieldIn = (fields: readonly string[]) => fields.find((field) => isSet(user[field]));
  const certificate = fieldIn(BOUND_TO_TLS);
  if (certificate !== undefined)
    throw failure(
      `users.user.${certificate}: the proxy cannot pass on a client certificate; use a token, or interception Tunnel`,
    );
  const other = fieldIn(NOT_A_TOKEN);
  if (other !== undefined) throw failure(`users.user.${other}: only bearer tokens pass the proxy: token, tokenFile or exec`);
  if (fieldIn(TOKENS) === undefined) throw failure("users.user: it has none of token, tokenFile and exec");
  const { token } = user;
  if (isSet(token) && !(typeof token === "string" && TOKEN.test(token)))
    throw failure("users.user.token: must be a text of one line, without spaces");
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

function readKubeconfig(text: string): z.output<typeof KUBECONFIG> {
  // The error of the parser shows the line, which may have a token.
  const read = validate(KUBECONFIG, parsed(text));
  if (read.ok) return read.value;
  // Without the value, which may be a token.
  const [{ path, message } = { path: "", message: "not valid" }] = read.problems;
  throw failure(`the file is no kubeconfig: ${path || "its content"}: ${message}`);
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    throw failure("the file is no valid YAML");
  }
}

function namesOf(list: readonly { readonly name: string }[]): string {
  return list.map(({ name }) => name).join(", ") || "none";
}
