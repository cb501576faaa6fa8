// The settings of a service, from flags and environment variables. Invariant: all settings are checked before
// a port is bound, and all problems are reported together, under the names that users set; a flag takes
// precedence over its variable.
import { parseArgs } from "node:util";
import { z } from "zod";
import type { Env } from "./env.ts";
import { MeshError } from "./errors.ts";
import type { ListenAddress } from "./listener.ts";

/** Exit code for wrong usage or configuration (sysexits.h EX_USAGE). */
export const EXIT_USAGE = 64;

/** `dataDir` is set by --data-dir, or by CTRLMESH_DATA_DIR if the prefix is CTRLMESH. */
export interface Setting {
  /** Checks the raw text, and turns it into the value. */
  readonly type: z.ZodType;
  /** The raw text if nobody sets one. Without it the type decides whether the setting is required. */
  readonly fallback?: string;
  readonly help: string;
}

export type Settings = Readonly<Record<string, Setting>>;

/** The schema of an object with the raw texts of all settings. */
export function schemaOf<S extends Settings>(settings: S) {
  const types = Object.entries(settings).map(([name, { type }]) => [name, type]);
  return z.object(Object.fromEntries(types) as { [Name in keyof S]: S[Name]["type"] });
}

export interface CommandLine<S extends z.ZodType> {
  /** The first line of `--help`: "ctrlmesh-proxy: ...". */
  readonly title: string;
  /** Of the environment variables. */
  readonly prefix: string;
  /** In the order of `--help`. */
  readonly settings: Settings;
  /** `schemaOf(settings)`, with the rules between several of them. */
  readonly schema: S;
  /** Values from other environment variables, for settings without a flag or a variable. */
  readonly derive?: (env: Env) => Readonly<Record<string, string | undefined>>;
}

export type Invocation<C> =
  | { readonly kind: "run"; readonly config: C; readonly printReady: boolean }
  | { readonly kind: "help"; readonly text: string };

/**
 * @param argv the arguments after the program's name
 * @throws MeshError `CONFIG_INVALID` with every problem
 */
export function readInvocation<S extends z.ZodType>(
  commandLine: CommandLine<S>,
  argv: readonly string[],
  env: Env,
): Invocation<z.output<S>> {
  const { prefix, settings, schema, derive } = commandLine;
  const flags = readFlags(settings, argv);
  if (flags.help === true) return { kind: "help", text: helpText(commandLine) };
  const derived = derive?.(env) ?? {};
  const raw: Record<string, string | undefined> = {};
  for (const [name, setting] of Object.entries(settings)) {
    const flag = flags[flagOf(name)];
    raw[name] =
      (typeof flag === "string" ? flag : env[variableOf(prefix, name)] || undefined) ?? derived[name] ?? setting.fallback;
  }
  const result = schema.safeParse(raw);
  if (!result.success)
    throw invalid(result.error.issues.map((issue) => `${settingText(commandLine, issue.path)}: ${issue.message}`));
  return { kind: "run", config: result.data, printReady: flags["print-ready"] === true };
}

function readFlags(settings: Settings, argv: readonly string[]): Readonly<Record<string, string | boolean | undefined>> {
  const options: Record<string, { type: "string" | "boolean" }> = {
    help: { type: "boolean" },
    "print-ready": { type: "boolean" },
  };
  for (const name of Object.keys(settings)) options[flagOf(name)] = { type: "string" };
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: false }).values as Record<
      string,
      string | boolean | undefined
    >;
  } catch (cause) {
    throw invalid([cause instanceof Error ? cause.message : String(cause), "see --help"]);
  }
}

function invalid(problems: readonly string[]): MeshError {
  return new MeshError("CONFIG_INVALID", `reading configuration:\n${problems.map((line) => `  ${line}`).join("\n")}`);
}

function flagOf(name: string): string {
  return name.replaceAll(/[A-Z]+/g, (capitals) => `-${capitals.toLowerCase()}`);
}

function variableOf(prefix: string, name: string): string {
  return `${prefix}_${flagOf(name).replaceAll("-", "_").toUpperCase()}`;
}

/** What users call a setting: its flag, without dashes, and its environment variable. */
export function settingNames(prefix: string, name: string): { readonly flag: string; readonly variable: string } {
  return { flag: flagOf(name), variable: variableOf(prefix, name) };
}

function settingText({ prefix, settings }: CommandLine<z.ZodType>, path: readonly PropertyKey[]): string {
  const name = String(path[0] ?? "(all)");
  return Object.hasOwn(settings, name) ? `--${flagOf(name)} (${variableOf(prefix, name)})` : name;
}

function helpText({ title, prefix, settings }: CommandLine<z.ZodType>): string {
  const rows = Object.entries(settings).map(([name, { fallback = "", help }]) => {
    const given = fallback === "" ? "" : ` (default: ${fallback})`;
    return `  --${flagOf(name).padEnd(20)} ${variableOf(prefix, name).padEnd(28)} ${help}${given}`;
  });
  return [
    title,
    "",
    `  ${"FLAG".padEnd(22)} ${"VARIABLE".padEnd(28)} MEANING`,
    ...rows,
    `  --${"print-ready".padEnd(20)} ${"".padEnd(28)} print one line of JSON on stdout once ready`,
    `  --${"help".padEnd(20)} ${"".padEnd(28)} print this`,
    "",
  ].join("\n");
}

/** A duration, both bounds included. */
export function milliseconds(least: number, most: number) {
  const error = `must be a whole number of milliseconds, ${least} to ${most}`;
  return z.coerce.number({ error }).int({ error }).min(least, { error }).max(most, { error });
}

export const requiredText = z.string({ error: "is required" }).min(1, "is required");

/** host:port; an IPv6 address is in brackets. */
export const listenAddress = requiredText.transform((text, context): ListenAddress => {
  const parsed = parseAddress(text);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not host:port (write an IPv6 address in brackets)` });
  return z.NEVER;
});

/** Addresses with commas between them; "" for none. */
export const listenAddresses = z
  .string()
  .transform((text) => (text === "" ? [] : text.split(",").map((each) => each.trim())))
  .pipe(z.array(listenAddress));

export const logLevel = z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]);

/** Reads host:port. Undefined for any other text. */
export function parseAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** Writes host:port, with an IPv6 address in brackets. */
export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** An address to which a process of this host can connect, for one at which a server listens. */
export function localAddress({ host, port }: ListenAddress): ListenAddress {
  return { host: host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host, port };
}
