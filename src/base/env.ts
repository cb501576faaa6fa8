// The only reader of the process environment. Configuration modules take an Env, so that tests pass their
// own.

export type Env = Readonly<Record<string, string | undefined>>;

export function processEnv(): Env {
  return process.env;
}
