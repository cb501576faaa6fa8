// The only reader of the process environment, and of what the machine gives to the process. Configuration
// modules take an Env, so that tests pass their own.

export type Env = Readonly<Record<string, string | undefined>>;

/** libuv reads it once, before its first use of a thread. A value that is set already stays. */
export function setThreadPoolSize(threads: number): void {
  process.env.UV_THREADPOOL_SIZE ??= String(threads);
}

/** How much of a CPU this process has had since its start. More than 1 with several threads. */
export function cpuShare(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 / process.uptime();
}

export function processEnv(): Env {
  return process.env;
}
