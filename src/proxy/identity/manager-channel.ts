// One gRPC connection to one manager replica. The session's stream and certify.ts use it.
import { type ChannelOptions, Client, connectivityState, type Deadline } from "@grpc/grpc-js";
import { MAX_MESSAGE_BYTES } from "../../wire/load-proto.ts";
import { EndingCredentials } from "./ending-credentials.ts";
import type { ManagerPass } from "./manager-access.ts";

/**
 * A manager that is gone without a word (a stopped process, a lost node, a cut network) is noticed within the sum of the two, in
 * milliseconds: before its lease of 15 s is over, so that proxies look for the next leader when there is one. A thousand proxies send
 * their manager 200 pings a second, which its HTTP/2 library answers. Five seconds are longer than a manager may be busy.
 */
export const KEEPALIVE = { everyMs: 5_000, timeoutMs: 5_000 };

const CHANNEL_OPTIONS: ChannelOptions = {
  "grpc.keepalive_time_ms": KEEPALIVE.everyMs,
  "grpc.keepalive_timeout_ms": KEEPALIVE.timeoutMs,
  "grpc.keepalive_permit_without_calls": 1,
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  // A new channel gets a new connection, which may lead to another replica of the service.
  "grpc.use_local_subchannel_pool": 1,
  // The session retries by itself, since it follows redirects.
  "grpc.enable_retries": 0,
  // Never through HTTP_PROXY: the manager is in the cluster.
  "grpc.enable_http_proxy": 0,
};

/** A connection to one replica. The code that opens it also closes it. */
export type ManagerChannel = Pick<Client, "close" | "waitForReady" | "makeBidiStreamRequest" | "makeUnaryRequest">;

export function openManagerChannel(endpoint: string, { credentials, channelOptions }: ManagerPass): ManagerChannel {
  return new ManagerClient(endpoint, new EndingCredentials(credentials), { ...CHANNEL_OPTIONS, ...channelOptions });
}

/** A client whose close also ends a connection that is still being made, which gRPC's own client leaves open. */
class ManagerClient extends Client {
  readonly #credentials: EndingCredentials;
  #isClosed = false;

  constructor(endpoint: string, credentials: EndingCredentials, options: ChannelOptions) {
    super(endpoint, credentials, options);
    this.#credentials = credentials;
  }

  // As in gRPC, except that a closed channel is not asked again: it would connect once more, for ever.
  override waitForReady(deadline: Deadline, callback: (error?: Error) => void): void {
    const channel = this.getChannel();
    const look = (error?: Error) => {
      if (this.#isClosed) return;
      if (error !== undefined) return callback(error);
      const state = channel.getConnectivityState(true);
      if (state === connectivityState.READY) callback();
      else channel.watchConnectivityState(state, deadline, look);
    };
    setImmediate(look);
  }

  override close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const isUp = this.getChannel().getConnectivityState(false) === connectivityState.READY;
    super.close();
    this.#credentials.end(isUp);
  }
}
