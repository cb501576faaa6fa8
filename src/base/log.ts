// Logging: pino JSON lines on stderr. Constant messages, values as fields; no bodies, no tokens; an error is logged once,
// where it is handled.
import { type Logger, pino, stdSerializers } from "pino";

export type { Logger };

export interface LogOptions {
  /** Name of the service, a field of every line. */
  readonly name: string;
  /** pino level; default "info". */
  readonly level?: string;
}

/** A logger to stderr (stdout belongs to data). Errors go under the field `err`. */
export function createLogger(options: LogOptions): Logger {
  return pino(
    { name: options.name, level: options.level ?? "info", serializers: { err: stdSerializers.errWithCause } },
    pino.destination({ dest: 2, sync: true }),
  );
}

/** A logger that writes nothing, for tests. */
export function silentLogger(): Logger {
  return pino({ level: "silent" });
}
