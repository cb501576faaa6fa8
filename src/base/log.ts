// Logs: one line of JSON on stderr for each message. Invariant: messages are constant, with values as fields;
// no bodies and no tokens are logged; an error is logged once, where it is handled.
import { type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";

export type { Logger };

/** The keys of every line. A parser would read only one of two equal keys, so the compiler refuses them as fields. */
declare module "pino" {
  interface LogFnFields extends Readonly<Partial<Record<"level" | "time" | "pid" | "hostname" | "name" | "msg", never>>> {}
}

/** Each line has the level as a word, the time in RFC 3339, and an error with its causes under `err`. */
export const LOG_FORMAT = {
  formatters: { level: (level: string) => ({ level }) },
  timestamp: stdTimeFunctions.isoTime,
  serializers: { err: stdSerializers.errWithCause },
};

/**
 * A logger to stderr, since stdout is for data.
 * @param options.name of the service, a field of every line
 * @param options.level the lowest that is written, as pino names it; default "info"
 */
export function createLogger({ name, level = "info" }: { readonly name: string; readonly level?: string }): Logger {
  return pino({ name, level, ...LOG_FORMAT }, pino.destination({ dest: 2, sync: true }));
}

export function silentLogger(): Logger {
  return pino({ level: "silent" });
}
