// What every command of ctrlmesh is, and what it gets.
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Cluster } from "./cluster.ts";
import type { ExitCode } from "./exit.ts";
import type { Output } from "./output.ts";

export interface Flag {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** It may be given several times. */
  readonly multiple?: true;
  /** What stands for the value in the usage, for example "FILE". */
  readonly value?: string;
  readonly help: string;
}

export type Flags = Readonly<Record<string, Flag>>;

export interface Command {
  /** One or two words: "status", "explain owner". */
  readonly name: string;
  /** The arguments as in the usage: "[APP]". */
  readonly args: string;
  readonly maxArgs: number;
  readonly summary: string;
  /** Beside the common ones (flags.ts). */
  readonly flags: Flags;
  /** What -o takes beside "json". */
  readonly formats?: readonly string[];
  run(call: Call): Promise<ExitCode>;
}

export interface Call {
  readonly args: readonly string[];
  readonly flags: FlagValues;
  readonly output: Output;
  readonly clock: Clock;
  /** Connects at the first call. */
  cluster(): Promise<Cluster>;
  /** Aborted at Ctrl-C. From this call on, Ctrl-C does not end the process: the command ends by itself. */
  interrupted(): AbortSignal;
  /** The text of a file, or of stdin for "-". */
  readFile(path: string): Promise<string>;
}

export interface FlagValues {
  /** The last value. */
  text(name: string): string | undefined;
  texts(name: string): readonly string[];
  isSet(name: string): boolean;
}

/** The name in "NAME" or "KIND/NAME", as kubectl takes both; "" for none. */
export function nameOf(target: string | undefined, kinds: readonly string[]): string {
  const [kind, name] = target?.split(/\/(.*)/s) ?? [""];
  return name !== undefined && kinds.includes(kind ?? "") ? name : (target ?? "");
}

export const [POD_WORDS, NAMESPACE_WORDS] = [
  ["po", "pod", "pods"],
  ["ns", "namespace", "namespaces"],
];

/** The error for a command line that the command cannot take: ends with exit code 64. */
export function usageError(message: string): MeshError {
  return new MeshError("USAGE", message);
}

/** The error for something that a user can change: ends with exit code 1. */
export function failure(message: string, cause?: unknown): MeshError {
  return new MeshError("COMMAND_FAILED", message, cause === undefined ? {} : { cause });
}

/** The error for a server that cannot be reached, or does not answer: a later attempt may succeed. */
export function noAnswer(message: string, cause?: unknown): MeshError {
  return new MeshError("NO_ANSWER", message, cause === undefined ? {} : { cause });
}

/** The error for a user that the API server does not know: any other request would end in the same way. */
export function notLoggedIn(why: string): MeshError {
  return new MeshError("NOT_LOGGED_IN", `${why}: log in again, or check the user of the kubeconfig`);
}

export const CREDENTIALS_REFUSED = "the API server does not accept the user's credentials (Unauthorized)";

export function noAnswerWithin(timeoutMs: number): MeshError {
  return noAnswer(`the API server has not answered within ${timeoutMs / 1_000} s; check it with: kubectl get --raw /readyz`);
}
