// One watch: a stream of events until the server ends it. Every event is passed on as sent and in order.
// Silence, a reset, an incomplete line and an ERROR event throw.
import { MeshError } from "../../base/errors.ts";
import type { KubeObject } from "../types.ts";
import { createTimeLimit, type ExchangeContext, openStream, type TimeLimit } from "./exchange.ts";
import { acceptOf, collectionPath, formatQuery, projectionOf, type Resource, resourceName } from "./resource.ts";
import { watchError } from "./response-error.ts";
import { connectionError, type TransportResponse } from "./transport.ts";
import type { WatchEvent, WatchOptions } from "./types.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;
// kube-apiserver sends a bookmark about once a minute. After this time it is overdue.
const DEFAULT_SILENCE_MS = 90_000;
const NEWLINE = 0x0a;
/** An etcd value is at most a few MB. A longer line is not a watch event. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;

export async function* watchCollection<T extends KubeObject>(
  context: ExchangeContext,
  resource: Resource<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const doing = `watching ${resourceName(resource)}`;
  const { namespace, labelSelector, fieldSelector, resourceVersion, timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = options;
  const query = formatQuery({
    watch: true,
    allowWatchBookmarks: true,
    labelSelector,
    fieldSelector,
    resourceVersion,
    timeoutSeconds,
  });
  using limit = createTimeLimit(context.clock, options.silenceMs ?? DEFAULT_SILENCE_MS, doing, options.signal);
  const response = await openStream(context, {
    path: collectionPath(resource, namespace) + query,
    accept: acceptOf(resource, "watch"),
    signal: limit.signal,
    doing,
  });
  const project = projectionOf(resource);
  try {
    for await (const lines of parseJsonLines(chunksOf(context, response, limit))) {
      for (const line of lines) yield readEvent(line, project, doing);
    }
  } finally {
    response.body.destroy(); // also frees the connection when the consumer stops early
  }
}

async function* chunksOf(context: ExchangeContext, response: TransportResponse, limit: TimeLimit): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body) {
      limit.touch();
      yield chunk;
    }
  } catch (cause) {
    throw connectionError(cause, limit.signal, context.host);
  }
}

function readEvent<T extends KubeObject>(line: unknown, project: (object: KubeObject) => T, doing: string): WatchEvent<T> {
  const { type, object } = (line ?? {}) as { type?: unknown; object?: KubeObject };
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      if (!object?.metadata?.name) throw new MeshError("WATCH_MALFORMED", `${doing}: an event has no object`);
      return { type, object: project(object) };
    case "BOOKMARK":
      if (!object?.metadata) throw new MeshError("WATCH_MALFORMED", `${doing}: a bookmark has no metadata`);
      return { type, object };
    case "ERROR":
      throw watchError(object, doing);
    default:
      throw new MeshError("WATCH_MALFORMED", `${doing}: the event type is unknown: ${JSON.stringify(type)}`);
  }
}

/**
 * The values of the complete lines of each chunk. The boundaries of the chunks do not change the values.
 * @throws MeshError `WATCH_TRUNCATED` if the stream ends inside a line, `WATCH_MALFORMED` for a line that is
 * no JSON or too long
 */
export async function* parseJsonLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<unknown[]> {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  for await (const chunk of chunks) {
    const values: unknown[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = Buffer.concat([...pending, chunk.subarray(start, end)]);
      pending = [];
      pendingBytes = 0;
      start = end + 1;
      if (!isBlank(line)) values.push(parseLine(line));
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      pendingBytes += chunk.length - start;
    }
    if (pendingBytes > maxLineBytes)
      throw new MeshError("WATCH_MALFORMED", `reading a watch: a line is over ${maxLineBytes} bytes`);
    if (values.length > 0) yield values;
  }
  if (!isBlank(Buffer.concat(pending))) throw new MeshError("WATCH_TRUNCATED", "reading a watch: it ended inside an event");
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09);
}

function parseLine(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch (cause) {
    throw new MeshError("WATCH_MALFORMED", "reading a watch: a line is not JSON", { cause });
  }
}
