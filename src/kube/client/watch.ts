// One watch: a stream of events until the server ends it. Every event is passed on as sent and in order.
// Silence, a reset, an incomplete line and an ERROR event throw. Called by client.ts.
import { MeshError } from "../../base/errors.ts";
import type { KubeObject } from "../types.ts";
import { createDeadline, type Deadline } from "./deadline.ts";
import { type ExchangeContext, openStream } from "./exchange.ts";
import { parseJsonLines } from "./json-lines.ts";
import { acceptOf, projectionOf } from "./representation.ts";
import { collectionPath, formatQuery, type Resource, resourceName } from "./resource.ts";
import { watchError } from "./response-error.ts";
import { connectionError, type TransportResponse } from "./transport.ts";
import type { WatchEvent, WatchOptions } from "./types.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;
// kube-apiserver sends a bookmark about once a minute. After this time it is overdue.
const DEFAULT_SILENCE_MS = 90_000;

/**
 * Watches a collection. The caller remembers the resourceVersion and starts again; see
 * src/runtime/reflector.ts.
 */
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
  using deadline = createDeadline(context.clock, options.silenceMs ?? DEFAULT_SILENCE_MS, doing, options.signal);
  const response = await openStream(context, {
    path: collectionPath(resource, namespace) + query,
    accept: acceptOf(resource, "watch"),
    signal: deadline.signal,
    doing,
  });
  const project = projectionOf(resource);
  try {
    for await (const lines of parseJsonLines(chunksOf(context, response, deadline))) {
      for (const line of lines) yield readEvent(line, project, doing);
    }
  } finally {
    response.body.destroy(); // also frees the connection when the consumer stops early
  }
}

async function* chunksOf(context: ExchangeContext, response: TransportResponse, deadline: Deadline): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body) {
      deadline.touch();
      yield chunk;
    }
  } catch (cause) {
    throw connectionError(cause, deadline.signal, context.host);
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
