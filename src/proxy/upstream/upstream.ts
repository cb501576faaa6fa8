// The client to the API server as a part of the process: trust, pools, and the one way to send a call. Invariant: the
// destination is the configured server, whatever the request's Host header or target says, and the credentials are the
// caller's own or none. Made in app.ts; the pipeline's upstream handler and discovery call `send`.
import type { Dispatcher } from "undici";
import type { Clock } from "../../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import type { Call, Reply } from "../pipeline/handler.ts";
import { createTrustStore, type TrustStore } from "./connector.ts";
import { exchange } from "./exchange.ts";
import { forwardedHeaders } from "./headers.ts";
import { createPools, DEFAULT_TIMEOUTS, isLongRunning, type Timeouts } from "./pools.ts";
import { readableOf } from "./request-body.ts";

export interface UpstreamOptions {
  /** https://host:port of the API server. */
  readonly apiServer: string;
  /** PEM file with the CA that signed its certificate. */
  readonly caFile: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly timeouts?: Timeouts;
}

export interface Upstream extends Runnable {
  readonly origin: URL;
  readonly trust: TrustStore;
  /**
   * Sends a call and resolves with the response's head.
   * @throws MeshError `UPSTREAM_UNREACHABLE` if nothing was sent, `UPSTREAM_BROKEN` if the connection broke under the
   * request, `UPSTREAM_TIMEOUT`, `BAD_REQUEST`, `ABORTED`
   */
  send(call: Call): Promise<Reply>;
}

/** Makes the client; `start` fails if the CA cannot be read. */
export function createUpstream({ apiServer, caFile, clock, log, timeouts = DEFAULT_TIMEOUTS }: UpstreamOptions): Upstream {
  const origin = new URL(apiServer);
  const trust = createTrustStore(caFile, log);
  const pools = createPools(origin.origin, trust);
  let reachable = true;

  const sendOnce = async (call: Call): Promise<Reply> => {
    const started = clock.monotonicMs();
    try {
      return await exchange(pools.for(call.record), dispatchOptions(call, timeouts), call.signal);
    } finally {
      call.record.waitedMs = (call.record.waitedMs ?? 0) + clock.monotonicMs() - started;
    }
  };

  const noteReachable = (now: boolean, error?: MeshError) => {
    if (now === reachable) return;
    reachable = now;
    if (now) log.info({ apiServer: origin.origin }, "the API server is reachable again");
    else log.warn({ err: error, apiServer: origin.origin }, "the API server is not reachable");
  };

  return {
    name: "upstream",
    origin,
    trust,
    async start() {
      await trust.current();
    },
    stop: () => pools.destroy(),
    async send(call) {
      for (let attempt = 0; ; attempt++) {
        try {
          const reply = await sendOnce(call);
          noteReachable(true);
          return reply;
        } catch (cause) {
          const error = upstreamError(cause);
          // An idle connection that the server closed just now: reading twice does no harm.
          if (error.code === "UPSTREAM_BROKEN" && attempt === 0 && isRead(call)) continue;
          if (error.code === "UPSTREAM_UNREACHABLE") noteReachable(false, error);
          throw error;
        }
      }
    },
  };
}

function dispatchOptions(call: Call, timeouts: Timeouts): Dispatcher.DispatchOptions {
  const { method, target, body } = call;
  const streamed = body !== null && !(body instanceof Uint8Array);
  return {
    method,
    path: target,
    headers: forwardedHeaders(call.headers, streamed),
    body: streamed ? readableOf(body) : body,
    headersTimeout: timeouts.headersMs,
    bodyTimeout: isLongRunning(call.info) ? 0 : timeouts.bodyMs,
    // undici would close the connection after each DELETE with a body; the API server reads such bodies.
    ...(method === "HEAD" ? {} : { reset: false }),
  };
}

/** True if the call may be sent again after an unknown outcome. */
function isRead(call: Call): boolean {
  return (call.method === "GET" || call.method === "HEAD") && call.body === null && !call.signal.aborted;
}

const BROKEN = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);
const TIMEOUTS = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);
const BAD_REQUEST = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED", "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"]);
const BROKEN_RESPONSE = /^(HPE_|UND_ERR_(RES_|HEADERS_OVERFLOW|INFO|ABORTED))/;

function upstreamError(cause: unknown): MeshError {
  if (isMeshError(cause, "ABORTED") || isMeshError(cause, "REQUEST_BODY_BROKEN")) return cause;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (BAD_REQUEST.has(code)) return new MeshError("BAD_REQUEST", "forwarding the request: it is not valid HTTP", { cause });
  if (TIMEOUTS.has(code)) return new MeshError("UPSTREAM_TIMEOUT", "waiting for the API server: timed out", { cause });
  // A reset while connecting also lands here; to treat it as a possibly sent request is the careful reading.
  if (BROKEN.has(code) || BROKEN_RESPONSE.test(code)) {
    return new MeshError("UPSTREAM_BROKEN", "waiting for the API server: the connection broke", { cause });
  }
  return new MeshError("UPSTREAM_UNREACHABLE", `connecting to the API server: ${errorMessage(cause)}`);
}
