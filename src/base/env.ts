// The only reader of the process environment. Configuration modules take an Env, so that tests pass their
// own.

export type Env = Readonly<Record<string, string | undefined>>;

/** libuv reads it once, before its first use of a thread. A value that is set already stays. */
export function setThreadPoolSize(threads: number): void {
  process.env.UV_THREADPOOL_SIZE ??= String(threads);
}

export function processEnv(): Env {
  return process.env;
}
