// Logs to stderr, one JSON object on each line.

export type Fields = Readonly<Record<string, unknown>>;

export interface Log {
  info(message: string, fields?: Fields): void;
  error(message: string, error: unknown, fields?: Fields): void;
}

/** A log with the fields of `base` in every line. */
export function createLog(base: Fields): Log {
  const write = (level: string, msg: string, fields: Fields) =>
    process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, msg, ...base, ...fields })}\n`);
  return {
    info: (message, fields = {}) => void write("info", message, fields),
    error: (message, error, fields = {}) => void write("error", message, { ...fields, error: describe(error) }),
  };
}

// The message of an ApiException has all headers; the Status in its body has the useful message.
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, body } = error as Error & { readonly code?: unknown; readonly body?: unknown };
  if (typeof body === "string") return `${String(code)} ${statusMessage(body)}`;
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

function statusMessage(body: string): string {
  try {
    return String((JSON.parse(body) as { readonly message?: unknown }).message ?? body);
  } catch {
    return body;
  }
}
