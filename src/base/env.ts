// The only reader of the process environment. Configuration modules take an Env as a value, so that tests
// pass their own.

/** Environment variables by name. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The environment of this process. */
export function processEnv(): Env {
  return process.env;
}
