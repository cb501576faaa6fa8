// The only reader of the process environment. Configuration modules take its result as a value, so tests pass their own.

/** Environment variables by name. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The environment of this process. */
export function processEnv(): Env {
  return process.env;
}
