// The flags that every command takes. Their names and meanings are kubectl's.
import { parseDuration } from "../../base/clock.ts";
import type { ClusterOptions } from "./cluster.ts";
import { type Flags, type FlagValues, usageError } from "./command.ts";

export const COMMON_FLAGS: Flags = {
  namespace: { type: "string", short: "n", value: "NAMESPACE", help: "default: the namespace of the context" },
  context: { type: "string", value: "NAME", help: "the context of the kubeconfig" },
  kubeconfig: { type: "string", value: "FILE", help: "the kubeconfig" },
  as: { type: "string", value: "USER", help: "the user to impersonate" },
  "request-timeout": { type: "string", value: "DURATION", help: "how long one request may take, 100ms to 10m; default 5s" },
  output: { type: "string", short: "o", value: "json", help: "json: one document for programs" },
  help: { type: "boolean", short: "h", help: "show this text" },
};

export const ALL_NAMESPACES: Flags = {
  "all-namespaces": { type: "boolean", short: "A", help: "in all namespaces" },
};

export const DRY_RUN: Flags = {
  "dry-run": { type: "boolean", help: "change nothing; the API server checks the change" },
};

/** @throws MeshError `USAGE` for -n "", as of a variable that is not set */
export function namespaceOf(flags: FlagValues, ofContext: string): string {
  const named = flags.text("namespace");
  if (named === "") throw usageError("-n: the name of the namespace is empty");
  return named ?? ofContext;
}

/** @param more the formats of the command beside json */
export function isJson(flags: FlagValues, more: readonly string[] = []): boolean {
  const format = flags.text("output");
  if (format !== undefined && format !== "json" && !more.includes(format))
    throw usageError(`-o: "${format}" is not known; there is ${["json", ...more].join(", ")}, and text without it`);
  return format === "json";
}

const [DEFAULT_TIMEOUT, LEAST_MS, MOST_MS] = ["5s", 100, 600_000];

export function clusterOptions(flags: FlagValues): ClusterOptions {
  const timeout = flags.text("request-timeout") ?? DEFAULT_TIMEOUT;
  const ms = Math.round(parseDuration(timeout) ?? 0);
  if (ms < LEAST_MS || ms > MOST_MS)
    throw usageError(`--request-timeout: "${timeout}" is no duration from 100ms to 10m, such as 5s`);
  return { kubeconfig: flags.text("kubeconfig"), context: flags.text("context"), as: flags.text("as"), requestTimeoutMs: ms };
}

/** The flags of kubectl for the same cluster and user. */
export function accessFlags({ kubeconfig, context, as }: Pick<ClusterOptions, "kubeconfig" | "context" | "as">): string[] {
  return Object.entries({ kubeconfig, context, as }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  );
}
