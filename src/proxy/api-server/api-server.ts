// One API server as the proxy uses it: the way to send calls, tunnels, and what the proxy learns about the
// server. Invariant: no state about an API server lives outside of this object, so a second cluster is a
// second object.
import type { Runnable } from "../../base/lifecycle.ts";
import type { Tunnel } from "../http/handler.ts";
import { createDiscovery, type Discovery } from "./discovery.ts";
import { createServerFeatures, type ServerFeatures } from "./server-features.ts";
import { createTunnel } from "./tunnel.ts";
import { createUpstream, type Upstream, type UpstreamOptions } from "./upstream.ts";

export interface ApiServer extends Runnable, Pick<Upstream, "send"> {
  readonly tunnel: Tunnel;
  readonly discovery: Discovery;
  /** The kinds of filters that the servers behind this address have shown not to know. */
  readonly features: ServerFeatures;
}

export type ApiServerOptions = UpstreamOptions;

/** Makes the parts. Nothing is connected before the first call; `start` fails if the CA cannot be read. */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const { clock, log } = options;
  const upstream = createUpstream(options);
  const { name, origin, trust, adopt, send, start, stop } = upstream;
  return {
    name,
    start,
    stop,
    send,
    tunnel: createTunnel({ origin, trust, log, onConnected: adopt }),
    discovery: createDiscovery({ send, clock }),
    features: createServerFeatures(clock),
  };
}
