// The settings of the operator: flags, and two variables from the downward API.
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { parseArgs } from "node:util";

/** Exit code for wrong usage (sysexits.h EX_USAGE). */
export const EXIT_USAGE = 64;

const MAX_PORT = 65_535;
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

export interface Settings {
  readonly podName: string;
  readonly lease: { readonly name: string; readonly namespace: string };
  /** How long other processes wait for a leader that does not renew. */
  readonly leaseDurationMs: number;
  /** How long the leader tries to renew before it stops leading. */
  readonly renewDeadlineMs: number;
  /** How often the process tries to acquire or renew the lease. */
  readonly retryPeriodMs: number;
  /** Undefined if the operator has no webhook. */
  readonly webhook: { readonly host: string; readonly port: number; readonly certDir: string } | undefined;
}

/** Wrong usage. The message names the problem. */
export class UsageError extends Error {}

export const HELP = `foo-operator: keeps a ConfigMap for each Foo
  --leader-election-id NAME         name of the lease (default: foo-operator)
  --leader-election-namespace NAME  its namespace (default: $POD_NAMESPACE, else the service account's)
  --lease-duration-ms N             how long others wait for a silent leader (default: 15000)
  --renew-deadline-ms N             how long the leader tries to renew (default: 10000)
  --retry-period-ms N               how often the lease is tried or renewed (default: 2000)
  --webhook-listen HOST:PORT        serve a webhook that defaults Foos (default: no webhook)
  --webhook-cert-dir DIR            its tls.crt and tls.key
  --help                            print this
The cluster is that of $KUBECONFIG, of ~/.kube/config or the pod's own. $POD_NAME names the pod (default: the host's name).
`;

/**
 * Reads flags and environment. Undefined if help is requested.
 * @throws UsageError
 */
export function readSettings(argv: readonly string[], env: NodeJS.ProcessEnv): Settings | undefined {
  const flags = readFlags(argv);
  if (flags.help === true) return undefined;
  const settings = {
    podName: env.POD_NAME || hostname(),
    lease: {
      name: flags["leader-election-id"] ?? "foo-operator",
      namespace: flags["leader-election-namespace"] ?? (env.POD_NAMESPACE || ownNamespace()),
    },
    leaseDurationMs: milliseconds("lease-duration-ms", flags["lease-duration-ms"], 15_000),
    renewDeadlineMs: milliseconds("renew-deadline-ms", flags["renew-deadline-ms"], 10_000),
    retryPeriodMs: milliseconds("retry-period-ms", flags["retry-period-ms"], 2_000),
    webhook: readWebhook(flags["webhook-listen"], flags["webhook-cert-dir"]),
  };
  if (settings.leaseDurationMs <= settings.renewDeadlineMs || settings.renewDeadlineMs <= settings.retryPeriodMs) {
    throw new UsageError("--lease-duration-ms must be above --renew-deadline-ms, and that above --retry-period-ms");
  }
  return settings;
}

function readFlags(argv: readonly string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...argv],
      options: {
        "leader-election-id": text,
        "leader-election-namespace": text,
        "lease-duration-ms": text,
        "renew-deadline-ms": text,
        "retry-period-ms": text,
        "webhook-listen": text,
        "webhook-cert-dir": text,
        help: { type: "boolean" },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function milliseconds(flag: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isInteger(value) || value <= 0) throw new UsageError(`--${flag} must be a number of milliseconds`);
  return value;
}

function readWebhook(listen: string | undefined, certDir: string | undefined): Settings["webhook"] {
  if (listen === undefined && certDir === undefined) return undefined;
  if (listen === undefined || certDir === undefined)
    throw new UsageError("--webhook-listen and --webhook-cert-dir belong together");
  const [, host = "", port] = /^(.+):(\d+)$/.exec(listen) ?? [];
  if (host === "" || Number(port) > MAX_PORT) throw new UsageError("--webhook-listen must be HOST:PORT");
  return { host, port: Number(port), certDir };
}

function ownNamespace(): string {
  try {
    return readFileSync(NAMESPACE_FILE, "utf8").trim();
  } catch {
    throw new UsageError("neither --leader-election-namespace nor $POD_NAMESPACE is set");
  }
}
