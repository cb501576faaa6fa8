// Connections from a kubeconfig. @kubernetes/client-node reads it; that library takes 90 MB of memory, so it
// is loaded only if there is a kubeconfig. Invariant: a kubeconfig that needs an unsupported feature, such as
// a forward proxy, is refused.
import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { delimiter, dirname, join, resolve } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import { z } from "zod";
import type { Env } from "../base/env.ts";
import { MeshError } from "../base/errors.ts";
import { inClusterConnection, type KubeConnection } from "../kube/client/connection.ts";

interface LoadConnectionOptions {
  /** Path of a kubeconfig; takes precedence over everything else. */
  readonly kubeconfig?: string;
  /** Only KUBECONFIG, KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and HOME are read. */
  readonly env: Env;
  readonly userAgent: string;
  /** Name of the context; default: the current context of the file. */
  readonly context?: string;
  /** For tests; default SERVICE_ACCOUNT_DIR. */
  readonly serviceAccountDir?: string;
}

/**
 * The connection to use: the first that exists of the given kubeconfig, KUBECONFIG, the pod's service
 * account, and ~/.kube/config.
 * @throws MeshError `KUBECONFIG_INVALID` if the file cannot be read or used, `NOT_IN_CLUSTER` if none of them
 * exists
 */
export async function loadConnection(options: LoadConnectionOptions): Promise<KubeConnection> {
  const { kubeconfig, env, userAgent, serviceAccountDir } = options;
  const named = kubeconfig ? [kubeconfig] : (env.KUBECONFIG ?? "").split(delimiter).filter((path) => path !== "");
  if (named.length > 0) return fromFiles(named, options);
  if (env.KUBERNETES_SERVICE_HOST || !env.HOME) {
    const more = serviceAccountDir === undefined ? {} : { serviceAccountDir };
    return inClusterConnection(env, (path) => readFile(path, "utf8"), { userAgent, ...more });
  }
  return fromFiles([join(env.HOME, ".kube", "config")], options);
}

async function fromFiles(paths: readonly string[], { context, userAgent }: LoadConnectionOptions): Promise<KubeConnection> {
  try {
    const config = await readConfig(paths);
    if (context !== undefined) config.library.setCurrentContext(context);
    return await connectionOf(config, userAgent);
  } catch (cause) {
    throw new MeshError("KUBECONFIG_INVALID", `reading kubeconfig ${paths.join(delimiter)}`, { cause: withoutContent(cause) });
  }
}

/** The error of a YAML parser shows the line, which may have a token. */
function withoutContent(error: unknown): unknown {
  if (!(error instanceof Error) || !/YAML/.test(error.name)) return error;
  const line = /at line (\d+)|\((\d+):\d+\)/.exec(error.message);
  return new Error(`it is no valid YAML${line === null ? "" : `, at line ${line[1] ?? line[2]}`}`);
}

interface Config {
  readonly library: KubeConfig;
  /** Token files by user name; the library does not know the field `tokenFile`. */
  readonly tokenFiles: ReadonlyMap<string, string>;
}

const TOKEN_FILES = z.object({
  users: z.array(z.object({ name: z.string(), user: z.object({ tokenFile: z.string().optional() }).nullish() })).nullish(),
});

// The first file that names a cluster, user or context takes precedence, as in kubectl.
async function readConfig(paths: readonly string[]): Promise<Config> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const library = new KubeConfig();
  const tokenFiles = new Map<string, string>();
  for (const path of paths) {
    const text = await readFile(path, "utf8");
    for (const { name, user } of TOKEN_FILES.parse(parse(text)).users ?? []) {
      if (user?.tokenFile && !library.getUser(name)) tokenFiles.set(name, resolve(dirname(path), user.tokenFile));
    }
    const next = new KubeConfig();
    next.loadFromString(text);
    next.makePathsAbsolute(resolve(dirname(path)));
    for (const cluster of next.clusters) if (!library.getCluster(cluster.name)) library.addCluster(cluster);
    for (const user of next.users) if (!library.getUser(user.name)) library.addUser(user);
    for (const entry of next.contexts) if (!library.getContextObject(entry.name)) library.addContext(entry);
    library.currentContext ||= next.currentContext;
  }
  return { library, tokenFiles };
}

async function connectionOf({ library, tokenFiles }: Config, userAgent: string): Promise<KubeConnection> {
  const cluster = library.getCurrentCluster();
  const user = library.getCurrentUser();
  if (cluster === null) throw new Error(`context ${JSON.stringify(library.currentContext)} names no cluster`);
  if (cluster.proxyUrl) throw new Error("proxy-url is not supported");
  if (user?.username) throw new Error("basic authentication is not supported");
  if (user?.impersonateUser) throw new Error("impersonation (as) is not supported");
  const tokenFile = user === null ? undefined : tokenFiles.get(user.name);
  const plugin = user?.exec || user?.authProvider ? await askPlugin(library) : undefined;
  return {
    server: cluster.server,
    token: tokenSource(library, tokenFile, plugin !== undefined),
    userAgent,
    caPem: await pemOf(cluster.caFile, cluster.caData),
    clientCert: (await pemOf(user?.certFile, user?.certData)) ?? plugin?.cert,
    clientKey: (await pemOf(user?.keyFile, user?.keyData)) ?? plugin?.key,
    skipTlsVerify: cluster.skipTLSVerify,
    tlsServerName: cluster.tlsServerName || undefined,
    namespace: library.getContextObject(library.currentContext)?.namespace || undefined,
  };
}

function tokenSource(library: KubeConfig, tokenFile: string | undefined, hasPlugin: boolean): KubeConnection["token"] {
  if (tokenFile !== undefined) return async () => (await readFile(tokenFile, "utf8")).trim();
  const fixed = (library.getCurrentUser()?.token ?? "").trim();
  if (fixed !== "" || !hasPlugin) return () => fixed;
  return async () => (await askPlugin(library)).token; // the library caches the token until it expires
}

async function askPlugin(library: KubeConfig): Promise<{ token: string; cert: string | undefined; key: string | undefined }> {
  const options: RequestOptions = {};
  await library.applyToHTTPSOptions(options);
  const headers = (options.headers ?? {}) as Readonly<Record<string, unknown>>;
  const { cert, key } = options;
  return {
    token: String(headers.Authorization ?? "").replace(/^Bearer /, ""),
    cert: cert?.toString(),
    key: key?.toString(),
  };
}

async function pemOf(file: string | null | undefined, base64: string | null | undefined): Promise<string | undefined> {
  if (file) return await readFile(file, "utf8");
  return base64 ? Buffer.from(base64, "base64").toString("utf8") : undefined;
}
