// The proxy's configuration: environment variables and flags of the same meaning, read once into plain values. Invariant:
// everything is checked before a port is bound, and every problem is told at once. A flag wins over its variable.
import { parseArgs } from "node:util";
import { z } from "zod";
import { parseConfig } from "../base/config.ts";
import type { Env } from "../base/env.ts";
import { MeshError } from "../base/errors.ts";
import type { ListenAddress } from "./server/listener.ts";

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** One setting: flag, variable, default and meaning. The order is that of `--help`. */
interface Setting {
  readonly flag: string;
  readonly env: string;
  readonly fallback?: string;
  readonly help: string;
}

const SETTINGS = {
  apiServer: {
    flag: "api-server",
    env: "CTRLMESH_API_SERVER",
    help: "URL of the API server (default: from KUBERNETES_SERVICE_HOST and _PORT)",
  },
  apiServerCa: {
    flag: "api-server-ca",
    env: "CTRLMESH_API_SERVER_CA",
    fallback: `${SERVICE_ACCOUNT}/ca.crt`,
    help: "PEM file with the API server's CA",
  },
  manager: { flag: "manager", env: "CTRLMESH_MANAGER", help: "host:port of ctrlmesh-manager" },
  podName: { flag: "pod-name", env: "CTRLMESH_POD_NAME", help: "name of this pod" },
  podNamespace: { flag: "pod-namespace", env: "CTRLMESH_POD_NAMESPACE", help: "namespace of this pod" },
  podUid: { flag: "pod-uid", env: "CTRLMESH_POD_UID", fallback: "", help: "uid of this pod" },
  dataDir: {
    flag: "data-dir",
    env: "CTRLMESH_DATA_DIR",
    fallback: "/var/lib/ctrlmesh",
    help: "folder for the last snapshot and our own CA",
  },
  listen: {
    flag: "listen",
    env: "CTRLMESH_LISTEN",
    fallback: "127.0.0.1:5443",
    help: "host:port for the operator; port 0 takes a free one",
  },
  tlsCert: { flag: "tls-cert", env: "CTRLMESH_TLS_CERT", fallback: "", help: "PEM file to serve with (default: our own CA)" },
  tlsKey: { flag: "tls-key", env: "CTRLMESH_TLS_KEY", fallback: "", help: "PEM file with the key of --tls-cert" },
  healthListen: {
    flag: "health-listen",
    env: "CTRLMESH_HEALTH_LISTEN",
    fallback: "0.0.0.0:5441",
    help: "host:port for /healthz, /readyz, /metrics",
  },
  logLevel: {
    flag: "log-level",
    env: "CTRLMESH_LOG_LEVEL",
    fallback: "info",
    help: "trace, debug, info, warn, error, fatal or silent",
  },
  accessLog: { flag: "access-log", env: "CTRLMESH_ACCESS_LOG", fallback: "false", help: "true logs every request" },
  drainMs: {
    flag: "drain-ms",
    env: "CTRLMESH_DRAIN_MS",
    fallback: "8000",
    help: "milliseconds for running requests at shutdown",
  },
} as const satisfies Readonly<Record<string, Setting>>;

type SettingName = keyof typeof SETTINGS;

/** What the proxy runs with. */
export interface ProxyConfig {
  /** https://host:port */
  readonly apiServer: string;
  readonly apiServerCa: string;
  /** host:port */
  readonly manager: string;
  readonly podName: string;
  readonly podNamespace: string;
  readonly podUid: string;
  readonly dataDir: string;
  readonly listen: ListenAddress;
  /** Undefined: serve with a certificate of our own CA. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly healthListen: ListenAddress;
  readonly logLevel: string;
  readonly accessLog: boolean;
  readonly drainMs: number;
  /** Print one line of JSON on stdout once ready. */
  readonly printReady: boolean;
}

const required = z.string({ error: "is required" }).min(1, "is required");

const address = z.string().transform((text, context): ListenAddress => {
  const parsed = parseAddress(text);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not host:port (an IPv6 address stands in brackets)` });
  return z.NEVER;
});

const schema = z
  .object({
    apiServer: z.string({ error: "is required outside of a cluster" }).transform((text, context) => {
      const url = URL.parse(text);
      if (url?.protocol === "https:" && url.pathname === "/" && url.search === "" && url.username === "") return url.origin;
      context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not https://host:port` });
      return z.NEVER;
    }),
    apiServerCa: required,
    manager: required.refine((text) => parseAddress(text) !== undefined, "must be host:port"),
    podName: required,
    podNamespace: required,
    podUid: z.string(),
    dataDir: required,
    listen: address,
    tlsCert: z.string(),
    tlsKey: z.string(),
    healthListen: address,
    logLevel: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]),
    accessLog: z.enum(["true", "false"]).transform((text) => text === "true"),
    drainMs: z.coerce.number({ error: "must be a number of milliseconds" }).int().min(0).max(3_600_000),
  })
  .refine(({ tlsCert, tlsKey }) => (tlsCert === "") === (tlsKey === ""), {
    path: ["tlsCert"],
    message: "needs --tls-key, and that needs it",
  });

/** What to do: run, or print the help text. */
export type Invocation =
  | { readonly kind: "run"; readonly config: ProxyConfig }
  | { readonly kind: "help"; readonly text: string };

/**
 * Reads flags and environment.
 * @param argv the arguments behind the program's name
 * @throws MeshError `CONFIG_INVALID` with every problem
 */
export function readInvocation(argv: readonly string[], env: Env): Invocation {
  const flags = readFlags(argv);
  if (flags.help === true) return { kind: "help", text: helpText() };
  const raw: Record<string, string | undefined> = {};
  for (const [name, setting] of entries()) {
    const flag = flags[setting.flag];
    raw[name] = (typeof flag === "string" ? flag : env[setting.env] || undefined) ?? setting.fallback;
  }
  raw.apiServer ??= inClusterUrl(env);
  const { tlsCert, tlsKey, ...config } = withNames(() => parseConfig(schema, raw));
  const tls = tlsCert === "" ? undefined : { cert: tlsCert, key: tlsKey };
  return { kind: "run", config: { ...config, tls, printReady: flags["print-ready"] === true } };
}

function readFlags(argv: readonly string[]): Readonly<Record<string, string | boolean | undefined>> {
  const options: Record<string, { type: "string" | "boolean" }> = {
    help: { type: "boolean" },
    "print-ready": { type: "boolean" },
  };
  for (const [, setting] of entries()) options[setting.flag] = { type: "string" };
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: false }).values as Record<
      string,
      string | boolean | undefined
    >;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new MeshError("CONFIG_INVALID", `reading configuration:\n  ${why}\n  see --help`, { cause });
  }
}

// Problems are told by the names that users set: --api-server (CTRLMESH_API_SERVER).
function withNames<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    const message = error.message.replace(/^ {2}(\w+):/gm, (line, name: string) => {
      const setting: Setting | undefined = Object.hasOwn(SETTINGS, name) ? SETTINGS[name as SettingName] : undefined;
      return setting === undefined ? line : `  --${setting.flag} (${setting.env}):`;
    });
    throw new MeshError(error.code, message);
  }
}

function entries(): [SettingName, Setting][] {
  return Object.entries(SETTINGS) as [SettingName, Setting][];
}

function inClusterUrl(env: Env): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  if (host === undefined || host === "") return undefined;
  return `https://${host.includes(":") ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT || "443"}`;
}

/** Reads host:port; an IPv6 address stands in brackets. Undefined if it is neither. */
export function parseAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

function helpText(): string {
  const rows = entries().map(([, { flag, env, fallback, help }]) => {
    const given = fallback === undefined || fallback === "" ? "" : ` (default: ${fallback})`;
    return `  --${flag.padEnd(15)} ${env.padEnd(24)} ${help}${given}`;
  });
  return [
    "ctrlmesh-proxy: stands between an operator and the API server",
    "",
    `  ${"FLAG".padEnd(17)} ${"VARIABLE".padEnd(24)} MEANING`,
    ...rows,
    `  --${"print-ready".padEnd(15)} ${"".padEnd(24)} print one line of JSON on stdout once ready: url, healthUrl, ca`,
    `  --${"help".padEnd(15)} ${"".padEnd(24)} print this`,
    "",
  ].join("\n");
}
