// The client to the API server as a part of the process: trust, pools, and the one way to send a call. Invariant: the
// destination is the configured server, whatever the request's Host header or target says, and the credentials are the
// caller's own or none. Made in app.ts; the pipeline's upstream handler and discovery call `send`.
import type { Dispatcher } from "undici";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
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
   * Sends a call and resolves with the response's head. Of a write that was sent it settles only with that head, a failure, or
   * after a minute, though its client be gone: until then it is in flight.
   * @throws MeshError `UPSTREAM_UNREACHABLE` if nothing was sent, `UPSTREAM_BROKEN` if the connection broke under the
   * request, `UPSTREAM_TIMEOUT`, `BAD_REQUEST`, `ABORTED`
   */
  send(call: Call): Promise<Reply>;
}

/** The API server gives up a request after a minute. */
const ABANDONED_MS = 60_000;

/** Makes the client; `start` fails if the CA cannot be read. */
export function createUpstream({ apiServer, caFile, clock, log, timeouts = DEFAULT_TIMEOUTS }: UpstreamOptions): Upstream {
  const origin = new URL(apiServer);
  const trust = createTrustStore(caFile, log);
  const pools = createPools(origin.origin, trust);
  let reachable = true;

  const sendOnce = async (call: Call): Promise<Reply> => {
    const started = clock.monotonicMs();
    try {
      const { signal } = call;
      const { abandonedMs = ABANDONED_MS } = timeouts;
      return await exchange(pools.for(call.record), dispatchOptions(call, timeouts), { signal, clock, abandonedMs });
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
        } catch (error) {
          if (!(error instanceof MeshError)) throw error;
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
