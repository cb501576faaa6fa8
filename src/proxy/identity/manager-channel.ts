// One gRPC connection to one manager replica, and what the errors of its calls mean. Invariant: after `close`
// no connection is in a handshake.
import type { Socket } from "node:net";
import {
  ChannelCredentials,
  type ChannelOptions,
  Client,
  connectivityState,
  type Deadline,
  type experimental,
  status,
} from "@grpc/grpc-js";
import { errorMessage } from "../../base/errors.ts";
import { plainText } from "../../base/plain-text.ts";
import { MAX_MESSAGE_BYTES } from "../../wire/load-proto.ts";
import type { ManagerPass } from "./manager-access.ts";

/**
 * A manager that is gone without a word (a stopped process, a lost node, a cut network) is noticed within the
 * sum of the two, in milliseconds: before its lease of 15 s is over. A thousand proxies send their manager
 * 200 pings a second. Five seconds are longer than a manager may be busy.
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

/** To be closed by the code that opens it. */
export type ManagerChannel = Pick<Client, "close" | "waitForReady" | "makeBidiStreamRequest" | "makeUnaryRequest">;

export function openManagerChannel(endpoint: string, { credentials, channelOptions }: ManagerPass): ManagerChannel {
  return new ManagerClient(endpoint, new EndingCredentials(credentials), { ...CHANNEL_OPTIONS, ...channelOptions });
}

/** Unlike gRPC's own client, its `close` also ends a connection that is still being made. */
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

type Connector = experimental.SecureConnector;

/**
 * Credentials of one channel that end with it. gRPC leaves a connection open if its channel is closed during
 * the TLS handshake, and that connection holds one of the manager's places. When a thousand proxies give up
 * on a busy manager, no other proxy gets in.
 */
class EndingCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials;
  readonly #handshakes = new Set<Socket>();
  readonly #sockets = new Set<Socket>();
  #isOver = false;

  constructor(inner: ChannelCredentials) {
    super();
    this.#inner = inner;
  }

  /** @param isUp the connection is up, so gRPC itself ends it after its last message */
  end(isUp: boolean): void {
    this.#isOver = true;
    for (const socket of isUp ? this.#handshakes : this.#sockets) socket.destroy();
  }

  override _isSecure(): boolean {
    return this.#inner._isSecure();
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...how: Parameters<ChannelCredentials["_createSecureConnector"]>): Connector {
    const inner = this.#inner._createSecureConnector(...how);
    return {
      connect: (socket) => this.#connect(inner, socket),
      waitForReady: () => inner.waitForReady(),
      getCallCredentials: () => inner.getCallCredentials(),
      destroy: () => inner.destroy(),
    };
  }

  // After the end the promise stays pending: upon an error gRPC would try again for some seconds.
  #connect(inner: Connector, socket: Socket): ReturnType<Connector["connect"]> {
    if (this.#isOver) socket.destroy();
    else this.#keep(socket);
    return new Promise((resolve, reject) => {
      if (this.#isOver) return;
      inner
        .connect(socket)
        .finally(() => this.#handshakes.delete(socket))
        .then(
          (result) => this.#isOver || resolve(result),
          (error: unknown) => this.#isOver || reject(error),
        );
    });
  }

  #keep(socket: Socket): void {
    this.#handshakes.add(socket);
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

const MAX_CHARS = 300;
/** grpc-js adds the time to its text about a connection. Without the time, equal reasons have equal texts. */
const TIME = / \(\d{4}-\d{2}-\d{2}T[\d:.]+Z\)/g;

export function isRefusal(error: unknown): boolean {
  return isUnbelieved(error) || codeOf(error) === status.PERMISSION_DENIED;
}

/** The manager does not accept the pod's token, which lasts until the token is rotated. */
export function isUnbelieved(error: unknown): boolean {
  return codeOf(error) === status.UNAUTHENTICATED;
}

/** One bounded line, for the log and for /readyz. */
export function reasonOf(error: unknown, manager: string): string {
  const text = plainText(errorMessage(error).replaceAll(TIME, ""), MAX_CHARS);
  if (isRefusal(error)) return `the manager at ${manager} refuses this pod: ${text}`;
  return codeOf(error) === status.UNAVAILABLE ? `the manager at ${manager} is not available: ${text}` : text;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
