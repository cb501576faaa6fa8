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

interface Target {
  /** Name of the MeshCluster. */
  readonly cluster: string;
  /** Its `spec.servers`. */
  readonly servers: readonly string[];
  /** Default: the current context. */
  readonly context?: string | undefined;
}

/** @throws MeshError for a kubeconfig that cannot be used */
export function deriveKubeconfig(text: string, { cluster: name, servers, context: wanted }: Target): object {
  const config = readKubeconfig(text);
  const contextName = wanted ?? config["current-context"];
  const contexts = namesOf(config.contexts);
  if (contextName === "") throw failure(`current-context: not set: name one of ${contexts} with --file-context`);
  const context = config.contexts.find((each) => each.name === contextName)?.context;
  if (context === undefined) throw failure(`the file has no context ${JSON.stringify(contextName)}; it has: ${contexts}`);
  const absent = (list: string, item: string) =>
    failure(`context ${JSON.stringify(contextName)}: ${list}: ${JSON.stringify(item)} is missing or empty`);
  const server = config.clusters.find((each) => each.name === context.cluster)?.cluster.server;
  const user = config.users.find((each) => each.name === context.user)?.user;
  if (server === undefined) throw absent("clusters", context.cluster);
  const listed = servers.map(serverPathOf);
  if (!listed.includes(serverPathOf(server) ?? ""))
    throw failure(`clusters.cluster.server: ${server} is not a server of meshcluster ${name}, which has ${servers.join(", ")}`);
  if (user == null) throw absent("users", context.user ?? "");
  const certificate = BOUND_TO_TLS.find((field) => field in user);
  if (certificate !== undefined)
    throw failure(
      `users.user.${certificate}: the proxy cannot pass on a client certificate; use a token, or interception Tunnel`,
    );
  const other = NOT_A_TOKEN.find((field) => field in user);
  if (other !== undefined) throw failure(`users.user.${other}: only bearer tokens pass the proxy: token, tokenFile or exec`);
  if (!TOKENS.some((field) => field in user)) throw failure("users.user: it has none of token, tokenFile and exec");
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [
      {
        name,
        cluster: {
          server: `https://127.0.0.1:${API_PORT}${CLUSTERS_PATH}${name}`,
          "certificate-authority": `${SERVICE_ACCOUNT_DIR}/ca.crt`,
        },
      },
    ],
    users: [{ name, user }],
    contexts: [{ name, context: { ...context, cluster: name, user: name } }],
  };
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
