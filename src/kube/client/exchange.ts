// One request and its answer: headers, time limit and safe retries. A write is sent again only if the server
// said that it refused the write (429 or 503 with Retry-After). A GET is sent again once if its pooled
// connection was closed.
import { onAbort } from "../../base/abort.ts";
import { type Clock, sleep, type Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { JSON_TYPE } from "../media-types.ts";
import { StatusError } from "../status.ts";
import { responseError, retryAfterMs } from "./response-error.ts";
import { connectionError, isConnectionReset, type Transport, type TransportResponse } from "./transport.ts";
import type { RawRequest } from "./types.ts";

export interface ExchangeContext extends Pick<ProcessContext, "clock" | "random"> {
  readonly transport: Transport;
  readonly host: string;
  readonly timeoutMs: number;
  readonly maxRetries: number;
}

// A longer wait is left to the caller.
const MAX_RETRY_AFTER_MS = 10_000;

export async function exchange(context: ExchangeContext, request: RawRequest): Promise<unknown> {
  for (let attempt = 0, resets = 0; ; ) {
    try {
      return await exchangeOnce(context, request);
    } catch (error) {
      if (request.method === "GET" && resets === 0 && isConnectionReset(error)) {
        resets++;
        continue;
      }
      const delayMs = attempt < (request.maxRetries ?? context.maxRetries) ? retryDelayMs(error) : undefined;
      if (delayMs === undefined) throw error;
      attempt++;
      // The random part keeps apart callers that were refused together.
      await sleep(context.clock, delayMs * (1 + context.random() / 10), request.signal).catch((aborted) => {
        throw request.signal?.aborted ? request.signal.reason : aborted;
      });
    }
  }
}

function retryDelayMs(error: unknown): number | undefined {
  if (!(error instanceof StatusError) || (error.status.code !== 429 && error.status.code !== 503)) return undefined;
  const delayMs = retryAfterMs(error);
  return delayMs === undefined || delayMs > MAX_RETRY_AFTER_MS ? undefined : delayMs;
}

async function exchangeOnce(context: ExchangeContext, request: RawRequest): Promise<unknown> {
  const { method, path, headers, body, doing = `${method} ${path}` } = request;
  using limit = createTimeLimit(context.clock, request.timeoutMs ?? context.timeoutMs, doing, request.signal);
  const response = await context.transport.send({
    method,
    path,
    headers: { accept: JSON_TYPE, ...(body === undefined ? {} : { "content-type": JSON_TYPE }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: limit.signal,
  });
  const text = await readText(context, response, limit.signal);
  if (response.statusCode >= 300) throw errorOf(response, text, doing);
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    // A health endpoint answers "ok" as text. An answer with a JSON content type must be JSON.
    if (!String(response.headers["content-type"] ?? "").includes("json")) return text;
    throw new MeshError("KUBE_MALFORMED", `${doing}: the answer is not JSON`, { cause });
  }
}

/** Opens a stream and resolves at its headers. Throws the StatusError of a refusal. */
export async function openStream(
  context: ExchangeContext,
  { path, accept, signal, doing }: Record<"path" | "accept" | "doing", string> & { readonly signal: AbortSignal },
): Promise<TransportResponse> {
  const response = await context.transport.send({ method: "GET", path, headers: { accept }, signal });
  if (response.statusCode === 200) return response;
  throw errorOf(response, await readText(context, response, signal), doing);
}

function errorOf(response: TransportResponse, text: string, doing: string): StatusError {
  const retryAfter = response.headers["retry-after"];
  return responseError(response.statusCode, text, typeof retryAfter === "string" ? retryAfter : undefined, doing);
}

async function readText(context: ExchangeContext, response: TransportResponse, signal: AbortSignal): Promise<string> {
  try {
    return await response.body.text();
  } catch (cause) {
    throw connectionError(cause, signal, context.host);
  }
}

/** A time limit. After `dispose` no timer and no listener remains. */
export type TimeLimit = ReturnType<typeof createTimeLimit>;

/** Its signal fires with `KUBE_TIMEOUT` after `timeoutMs` without a touch, or with the reason of `parent`. */
export function createTimeLimit(clock: Clock, timeoutMs: number, doing: string, parent?: AbortSignal) {
  const controller = new AbortController();
  let touchedMs = clock.monotonicMs();
  let timer: Timer;
  // One timer checks the time of the last touch, so that a chunk does not start a new timer.
  const arm = (delayMs: number) => {
    timer = clock.after(delayMs, () => {
      const leftMs = touchedMs + timeoutMs - clock.monotonicMs();
      if (leftMs > 0) arm(leftMs);
      else controller.abort(new MeshError("KUBE_TIMEOUT", `${doing}: nothing arrived for ${timeoutMs} ms`));
    });
  };
  arm(timeoutMs);
  const unlink = parent && onAbort(parent, () => controller.abort(parent.reason));
  return {
    signal: controller.signal,
    /** Restarts the time limit, since something arrived. */
    touch(): void {
      touchedMs = clock.monotonicMs();
    },
    [Symbol.dispose]() {
      timer.cancel();
      unlink?.();
    },
  };
}
